"""How Spark lays its event logs out: rolling folders, single files, what is finished, what is not.

eventlog_v2_<app>/appstatus_<app>[.inprogress]
eventlog_v2_<app>/events_<n>_<app>[.<codec>][.compact]
<app>[.<codec>][.inprogress]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FOLDER = "eventlog_v2_"
_EVENTS = "events_"
_STATUS = "appstatus_"
_IN_PROGRESS = ".inprogress"
_COMPACT = ".compact"
_CODECS = ("zstd", "lz4", "lzf", "snappy")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of events; `codec` None is plain text."""

    index: int
    path: Path
    codec: str | None
    is_compacted: bool = False


@dataclass(frozen=True, slots=True)
class AppLog:
    """The log of one application (attempt), its files oldest first."""

    name: str
    path: Path  # its folder, or its only file
    files: tuple[LogFile, ...]
    is_complete: bool
    started: float  # when its log was begun, as far as the file system tells
    modified: float


def list_apps(folder: Path) -> list[AppLog]:
    """Every application with a log in the folder, the one that was changed longest ago first.

    Raises:
        OSError: the folder cannot be listed.
    """
    apps = [app for entry in folder.iterdir() if (app := _app(entry)) is not None]
    return sorted(apps, key=lambda app: (app.modified, app.name))


def _app(entry: Path) -> AppLog | None:
    if entry.name.startswith("."):
        return None  # checksums of Hadoop's file system, and files being moved in
    try:
        return _rolling(entry) if entry.is_dir() else _single(entry)
    except FileNotFoundError:
        return None  # renamed or removed while we looked: the next look will tell


def _rolling(folder: Path) -> AppLog | None:
    if not folder.name.startswith(_FOLDER):
        return None
    names = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    files = sorted(_event_files(names), key=lambda f: (f.index, not f.is_compacted))
    status = [e.name for e in names if e.name.startswith(_STATUS)]
    times = [f.path.stat().st_mtime for f in files] or [folder.stat().st_mtime]
    return AppLog(
        name=folder.name.removeprefix(_FOLDER),
        path=folder,
        files=_without_compacted_away(files),
        is_complete=any(not name.endswith(_IN_PROGRESS) for name in status),
        started=min(times),
        modified=max(times),
    )


def _event_files(entries: list[Path]) -> Iterator[LogFile]:
    for entry in entries:
        name = entry.name
        number = name.removeprefix(_EVENTS).split("_", maxsplit=1)[0]
        if name.startswith(_EVENTS) and number.isdigit():
            is_compacted = name.endswith(_COMPACT)
            codec = _codec(name.removesuffix(_COMPACT))
            yield LogFile(int(number), entry, codec, is_compacted)


def _without_compacted_away(files: list[LogFile]) -> tuple[LogFile, ...]:
    """The newest compacted file stands for all files up to its number."""
    compacted = [f for f in files if f.is_compacted]
    if not compacted:
        return tuple(files)
    newest = compacted[-1]
    return (newest, *(f for f in files if f.index > newest.index))


def _single(file: Path) -> AppLog | None:
    name = file.name.removesuffix(_IN_PROGRESS)
    codec = _codec(name)
    app = name.removesuffix(f".{codec}") if codec else name
    if not app or app.startswith((_EVENTS, _STATUS)) or not file.is_file():
        return None
    modified = file.stat().st_mtime
    return AppLog(
        name=app,
        path=file,
        files=(LogFile(1, file, codec),),
        is_complete=not file.name.endswith(_IN_PROGRESS),
        started=file.stat().st_ctime,
        modified=modified,
    )


def _codec(name: str) -> str | None:
    return next((codec for codec in _CODECS if name.endswith(f".{codec}")), None)
