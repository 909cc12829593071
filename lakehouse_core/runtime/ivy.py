"""Fetching one artifact through Apache Ivy, which ships inside PySpark.

Ivy knows the public Maven repository by itself, so no host is named here. Metadata files are not
read (`usepoms="false"`): the parent POM of some artifacts imports hundreds of others, which takes
minutes and tells us nothing about a file whose checksum we already know.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from lakehouse_core.domain.errors import LakehouseError, NotInstalledError, Transient
from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.processes import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse_core.runtime.java import Java

DEFAULT_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="public"/>
  <resolvers>
    <ibiblio name="public" m2compatible="true" usepoms="false" useMavenMetadata="false"/>
  </resolvers>
</ivysettings>
"""
STALL_SECONDS = 120.0
POLL_SECONDS = 0.2


class DownloadError(Transient, LakehouseError):
    """Raised when an artifact could not be downloaded; says what to do by hand."""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """What Maven calls an artifact; `classifier` tells several of one name apart."""

    group: str
    name: str
    version: str
    ext: str
    classifier: str | None = None

    @property
    def file_name(self) -> str:
        """Its name in a Maven repository."""
        kind = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{kind}.{self.ext}"

    def __str__(self) -> str:
        kind = f":{self.classifier}" if self.classifier else ""
        return f"{self.group}:{self.name}:{self.version}:{self.ext}{kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ivy:
    """How to run Ivy on this machine."""

    java: Java
    jar: Path
    env: Mapping[str, str]
    settings: Path | None = None
    stall_seconds: float = STALL_SECONDS

    def fetch(self, what: Coordinates, work_dir: Path, on_bytes: Callable[[int], None]) -> Path:
        """Download into `work_dir` (empty, ours) and return the file.

        Raises:
            DownloadError: the repository cannot be reached, does not have it, or went silent.
        """
        settings = self.settings
        if settings is None:
            settings = work_dir / "ivysettings.xml"
            settings.write_text(DEFAULT_SETTINGS, encoding="utf-8")
        request = work_dir / "ivy.xml"
        request.write_text(_ivy_file(what), encoding="utf-8")
        log = work_dir / "ivy.log"
        command = (
            str(self.java.executable),
            f"-Divy.default.ivy.user.dir={work_dir / 'user'}",
            "-jar",
            str(self.jar),
            "-settings",
            str(settings),
            "-cache",
            str(work_dir / "cache"),
            "-ivy",
            str(request),
            "-retrieve",
            f"{work_dir / 'out'}/[artifact]-[revision](-[classifier]).[ext]",
        )
        process = ChildProcess(Command(argv=command), self.env, log)
        try:
            stalled = self._watch(process, work_dir / "cache", on_bytes)
        finally:
            process.kill()
        result = work_dir / "out" / what.file_name
        if stalled:
            raise DownloadError(f"{what}: nothing arrived for {self.stall_seconds:.0f} s")
        if process.exit_code() != 0 or not result.is_file():
            raise DownloadError(f"{what}: {_reason(log)}")
        return result

    def _watch(self, process: ChildProcess, cache: Path, on_bytes: Callable[[int], None]) -> bool:
        """Report the growing file until Ivy ends; True when it stopped growing for too long."""
        seen = 0
        last_growth = time.monotonic()
        while process.exit_code() is None:
            now = _largest_file(cache)
            if now > seen:
                seen = now
                last_growth = time.monotonic()
                on_bytes(seen)
            elif time.monotonic() - last_growth > self.stall_seconds:
                return True
            time.sleep(POLL_SECONDS)
        return False


def ivy_jar() -> Path:
    """The Ivy jar of the installed PySpark.

    Raises:
        NotInstalledError: PySpark is not installed or has no Ivy.
    """
    spec = find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        for jar in sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar")):
            return jar
    raise NotInstalledError(
        "Apache Ivy was not found inside PySpark; install the requirements again: make setup"
    )


def _largest_file(folder: Path) -> int:
    sizes = [0]
    for path in folder.rglob("*"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:  # Ivy renames its part file when it is done
            continue
    return max(sizes)


def _ivy_file(what: Coordinates) -> str:
    org, name, rev, ext = map(quoteattr, (what.group, what.name, what.version, what.ext))
    kind = f" m:classifier={quoteattr(what.classifier)}" if what.classifier else ""
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="lakehelm" module="artifacts"/>\n'
        f'<dependencies><dependency org={org} name={name} rev={rev} transitive="false">'
        f"<artifact name={name} type={ext} ext={ext}{kind}/>"
        "</dependency></dependencies></ivy-module>\n"
    )


def _reason(log: Path) -> str:
    """The lines of Ivy's log that say why, without its tables and dots."""
    wanted = ("exception", "not found", "failed", "error", "refused", "unknown host", "timed out")
    lines = [
        line.strip(" \t:")
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
        if any(word in line.lower() for word in wanted)
    ]
    distinct = list(dict.fromkeys(line for line in lines if line))
    return "; ".join(distinct[:3]) or "Ivy ended without the file and without a reason"
