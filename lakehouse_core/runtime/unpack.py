"""Unpacking a part of a tar archive whose members are hard links to members outside that part.

The Trino server archive stores each jar once, in the first plugin that has it by name, and links
to it from all others. A plain partial extraction would therefore miss files.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def unpack_part(archive: Path, parts: Iterable[str], target: Path) -> int:
    """Extract the named folders (below the archive's top folder) into `target`.

    Returns:
        How many files there are now, links included.

    Raises:
        tarfile.TarError: the archive is broken or a name in it leads outside of `target`.
    """
    wanted = tuple(PurePosixPath(part).parts for part in parts)
    members, links = _inventory(archive, wanted)
    # Where each stored file shall appear: its own place, if wanted, and that of every link to it.
    places: dict[str, list[str]] = {name: [name] for name in members}
    for name, source in links.items():
        places.setdefault(source, []).append(name)
    count = 0
    with tarfile.open(archive, "r|gz") as stream:
        for member in stream:
            for_this = places.pop(member.name, None) if member.isreg() else None
            if not for_this:
                continue
            first, *others = (_inside(target, name) for name in for_this)
            _write(stream, member, first)
            for other in others:
                other.parent.mkdir(parents=True, exist_ok=True)
                other.hardlink_to(first)
            count += 1 + len(others)
    if places:
        raise tarfile.ReadError(f"{archive} links to files it does not hold: {sorted(places)[:3]}")
    return count


def _inventory(
    archive: Path, wanted: tuple[tuple[str, ...], ...]
) -> tuple[set[str], dict[str, str]]:
    """Names of wanted stored files, and wanted links with the name of what they link to."""
    members: set[str] = set()
    links: dict[str, str] = {}
    sources: dict[str, str] = {}
    with tarfile.open(archive, "r|gz") as stream:
        for member in stream:
            if member.islnk():
                sources[member.name] = sources.get(member.linkname, member.linkname)
            if not any(_below_top(member.name)[: len(part)] == part for part in wanted):
                continue
            if member.isreg():
                members.add(member.name)
            elif member.islnk():
                links[member.name] = sources[member.name]
    return members, links


def _below_top(name: str) -> tuple[str, ...]:
    return PurePosixPath(name).parts[1:]


def _inside(target: Path, name: str) -> Path:
    parts = _below_top(name)
    if ".." in parts or PurePosixPath(name).is_absolute():
        raise tarfile.OutsideDestinationError(tarfile.TarInfo(name), str(target))
    return target.joinpath(*parts)


def _write(stream: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = stream.extractfile(member)
    if source is None:
        raise tarfile.ReadError(f"{member.name} has no content")
    with source, path.open("wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
    path.chmod(0o755 if member.mode & 0o100 else 0o644)
