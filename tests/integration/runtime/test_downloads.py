"""The real Ivy, on a repository in a folder: no network, the same code path as a first start."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config.environment import read_machine
from lakehouse_core.runtime.artifacts import Artifact, ChecksumError, cached_path, ensure
from lakehouse_core.runtime.ivy import Coordinates, DownloadError
from lakehouse_core.runtime.report import PlainReporter, SilentReporter

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.environment import Machine

pytestmark = pytest.mark.spark  # Ivy needs a JVM

SETTINGS = """<ivysettings>
  <settings defaultResolver="mirror"/>
  <resolvers>
    <ibiblio name="mirror" m2compatible="true" usepoms="false" useMavenMetadata="false"
             root="{root}"/>
  </resolvers>
</ivysettings>
"""
CONTENT = bytes(range(256)) * 4_000
JAR = Coordinates("org.example.lake", "thing_2.13", "1.0", "jar")
ARCHIVE = Coordinates("org.example.lake", "server", "476", "tar.gz")


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    """This machine with a cache and a mirror of its own."""
    root = tmp_path / "mirror"
    for what in (JAR, ARCHIVE):
        folder = root / what.group.replace(".", "/") / what.name / what.version
        folder.mkdir(parents=True)
        (folder / what.file_name).write_bytes(CONTENT)
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(SETTINGS.format(root=root.as_uri()), encoding="utf-8")
    real = read_machine()
    return read_machine(
        {
            **real.variables,
            "LAKEHELM_CACHE": str(tmp_path / "cache"),
            "LAKEHELM_IVY_SETTINGS": str(settings),
        }
    )


def pinned(what: Coordinates, content: bytes = CONTENT) -> Artifact:
    return Artifact(what, len(content), hashlib.sha256(content).hexdigest())


def test_jars_and_archives_come_from_the_mirror(here: Machine) -> None:
    said: list[str] = []
    paths = ensure(here, [pinned(JAR), pinned(ARCHIVE)], PlainReporter(said.append))
    assert [path.name for path in paths] == ["thing_2.13-1.0.jar", "server-476.tar.gz"]
    assert all(path.read_bytes() == CONTENT for path in paths)
    assert said[0] == "Downloading thing_2.13-1.0.jar (1 MB)"


def test_a_mirror_that_serves_something_else_is_refused(here: Machine) -> None:
    wanted = pinned(JAR, CONTENT + b"signed")
    with pytest.raises(ChecksumError, match="refused"):
        ensure(here, [wanted], SilentReporter())
    assert not cached_path(here, wanted).exists()


def test_a_mirror_without_the_file_is_told_by_name(here: Machine) -> None:
    gone = pinned(Coordinates("org.example.lake", "gone", "9", "jar"))
    with pytest.raises(DownloadError, match=r"gone-9\.jar could not be downloaded .*not found"):
        ensure(here, [gone], SilentReporter())
    assert not list(here.cache.glob(".fetch-*"))
