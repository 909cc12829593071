"""What is downloaded once: three files, pinned by checksum, in a cache outside the tree.

A file under its final name has been checked: downloads land in a folder of their own and are
renamed only after their sha256 matched.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import LakehouseError, Terminal
from lakehouse_core.runtime.ivy import Coordinates, DownloadError, Ivy, ivy_jar
from lakehouse_core.runtime.java import any_java, find_javas

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.runtime.report import Reporter

CHUNK_BYTES = 4 * 2**20


class ChecksumError(Terminal, LakehouseError):
    """Raised when a downloaded file is not the file that was pinned."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file we need, exactly."""

    coordinates: Coordinates
    size_bytes: int
    sha256: str

    @property
    def file_name(self) -> str:
        """Its name in the cache."""
        return self.coordinates.file_name


ICEBERG_SPARK = Artifact(
    Coordinates("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0", "jar"),
    48_309_426,
    "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
)
SQLITE_JDBC = Artifact(
    Coordinates("org.xerial", "sqlite-jdbc", "3.50.3.0", "jar"),
    14_346_720,
    "a3f53a2aa15ae9425a9e793bbe9c8e5288febeb4b65ef5c1a4e80d4c2045cf08",
)
TRINO_SERVER = Artifact(
    Coordinates("io.trino", "trino-server", "476", "tar.gz"),
    821_045_832,
    "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f",
)
SPARK_JARS: tuple[Artifact, ...] = (ICEBERG_SPARK, SQLITE_JDBC)


def cached_path(machine: Machine, artifact: Artifact) -> Path:
    """Where the artifact is, or will be."""
    return machine.cache / artifact.file_name


def is_cached(machine: Machine, artifact: Artifact) -> bool:
    """Whether the artifact is there and was verified as it is now; reads a few bytes only."""
    path = cached_path(machine, artifact)
    return path.is_file() and _read_stamp(path) == _stamp(path, artifact)


def ensure(machine: Machine, artifacts: Sequence[Artifact], reporter: Reporter) -> list[Path]:
    """Have all artifacts in the cache, downloading what is missing; safe to call from anywhere.

    Raises:
        DownloadError: a download failed; says what to fetch by hand and where to put it.
        ChecksumError: a download is not what was pinned.
        NotInstalledError: there is no Java to download with.
    """
    if not all(is_cached(machine, artifact) for artifact in artifacts):
        machine.cache.mkdir(parents=True, exist_ok=True)
        with cache_lock(machine.cache, reporter):
            for artifact in artifacts:
                if not _adopt(machine, artifact, reporter):
                    _download(machine, artifact, reporter)
    return [cached_path(machine, artifact) for artifact in artifacts]


@contextlib.contextmanager
def cache_lock(cache: Path, reporter: Reporter) -> Iterator[None]:
    """Let one process at a time change the cache; the others wait, and say so."""
    with (cache / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reporter.say(f"Another process is filling {cache}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sha256_of(path: Path) -> str:
    """The file's checksum."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _adopt(machine: Machine, artifact: Artifact, reporter: Reporter) -> bool:
    """Take the file that is there already, if it is the right one; set a wrong one aside."""
    path = cached_path(machine, artifact)
    if not path.is_file():
        return False
    if _read_stamp(path) == _stamp(path, artifact):
        return True
    if path.stat().st_size == artifact.size_bytes and sha256_of(path) == artifact.sha256:
        _write_stamp(path, artifact)
        return True
    aside = path.with_name(path.name + ".corrupt")
    path.replace(aside)
    reporter.say(f"{path} is not the file that was pinned; moved to {aside.name}, fetching again")
    return False


def _download(machine: Machine, artifact: Artifact, reporter: Reporter) -> None:
    java = any_java(find_javas(machine))
    ivy = Ivy(java=java, jar=ivy_jar(), env=machine.variables, settings=machine.ivy_settings)
    final = cached_path(machine, artifact)
    for leftover in machine.cache.glob(
        ".fetch-*"
    ):  # of a process that was killed; we hold the lock
        shutil.rmtree(leftover, ignore_errors=True)
    reporter.say(f"Downloading {artifact.file_name} ({artifact.size_bytes / 1e6:.0f} MB)")
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=machine.cache) as work:
        try:
            fetched = ivy.fetch(
                artifact.coordinates,
                final.parent / work,
                lambda done: reporter.progress(artifact.file_name, done, artifact.size_bytes),
            )
        except DownloadError as error:
            raise DownloadError(
                f"{artifact.file_name} could not be downloaded ({error}). Check the network, or "
                f"set LAKEHELM_IVY_SETTINGS to an Ivy settings file that names your mirror, or "
                f"fetch {artifact.coordinates} from a Maven repository by hand and put it at "
                f"{final}."
            ) from error
        finally:
            reporter.forget(artifact.file_name)
        actual = sha256_of(fetched)
        if actual != artifact.sha256:
            raise ChecksumError(
                f"{artifact.file_name} was downloaded but refused: its sha256 is {actual}, "
                f"expected {artifact.sha256}. The repository or a proxy serves another file; "
                f"try again, or put the right file at {final}."
            )
        fetched.replace(final)
        _write_stamp(final, artifact)


def _stamp(path: Path, artifact: Artifact) -> str:
    """What a verified file looks like from outside, so that starts need not hash 800 MB."""
    stat = path.stat()
    return f"{artifact.sha256} {stat.st_size} {stat.st_mtime_ns}"


def _stamp_path(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def _read_stamp(path: Path) -> str | None:
    try:
        return _stamp_path(path).read_text(encoding="ascii")
    except FileNotFoundError:
        return None


def _write_stamp(path: Path, artifact: Artifact) -> None:
    _stamp_path(path).write_text(_stamp(path, artifact), encoding="ascii")
