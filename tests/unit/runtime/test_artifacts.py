"""Downloads: only the pinned file is ever taken, a failed one leaves nothing behind."""

from __future__ import annotations

import hashlib
import multiprocessing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.errors import NotInstalledError
from lakehouse_core.runtime.artifacts import (
    Artifact,
    ChecksumError,
    cached_path,
    ensure,
    is_cached,
)
from lakehouse_core.runtime.ivy import Coordinates, DownloadError, Ivy
from lakehouse_core.runtime.java import find_javas
from lakehouse_core.runtime.report import SilentReporter
from tests.unit.runtime.machines import fake_java, machine

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.environment import Machine

CONTENT = b"exactly these bytes" * 1000
COORDINATES = Coordinates("org.example", "thing", "1.0", "jar")
ARTIFACT = Artifact(COORDINATES, len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


class Heard(SilentReporter):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.done: list[float] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def progress(self, task: str, done: float, total: float) -> None:
        self.done.append(done / total)


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """The file that the fake repository hands out."""
    path = tmp_path / "repository" / "thing-1.0.jar"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def here(tmp_path: Path, served: Path) -> Machine:
    java = fake_java(tmp_path / "jdk", "17.0.15")
    return machine(tmp_path, JAVA_HOME=java, FAKE_IVY=served)


def leftovers(here: Machine) -> set[str]:
    return {path.name for path in here.cache.iterdir()} - {".lock"}


def test_the_pinned_file_is_fetched_once_and_then_kept(here: Machine, served: Path) -> None:
    heard = Heard()
    (path,) = ensure(here, [ARTIFACT], heard)
    assert path.read_bytes() == CONTENT
    assert is_cached(here, ARTIFACT)
    served.unlink()  # a second download would fail
    assert ensure(here, [ARTIFACT], heard) == [path]
    assert leftovers(here) == {"thing-1.0.jar", "thing-1.0.jar.verified"}


def test_another_file_than_the_pinned_one_is_refused(here: Machine, served: Path) -> None:
    served.write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(ChecksumError, match=r"thing-1\.0\.jar was downloaded but refused"):
        ensure(here, [ARTIFACT], SilentReporter())
    assert not is_cached(here, ARTIFACT)
    assert leftovers(here) == set()


def test_without_a_network_the_message_names_file_place_and_mirror(here: Machine) -> None:
    here = replace(here, variables={**here.variables, "FAKE_IVY": "offline"})
    with pytest.raises(DownloadError) as caught:
        ensure(here, [ARTIFACT], SilentReporter())
    text = str(caught.value)
    assert "org.example:thing:1.0:jar" in text
    assert str(cached_path(here, ARTIFACT)) in text
    assert "LAKEHELM_IVY_SETTINGS" in text
    assert "UnknownHostException" in text
    assert leftovers(here) == set()


@pytest.mark.slow
def test_a_download_that_goes_silent_is_given_up(here: Machine, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    env = {**here.variables, "FAKE_IVY": "stall"}
    ivy = Ivy(java=find_javas(here)[0], jar=tmp_path / "ivy.jar", env=env, stall_seconds=0.5)
    with pytest.raises(DownloadError, match="nothing arrived"):
        ivy.fetch(COORDINATES, work, lambda _: None)


def test_the_rest_of_a_killed_download_is_cleared_away(here: Machine) -> None:
    half = here.cache / ".fetch-of-somebody-killed"
    half.mkdir(parents=True)
    (half / "thing.part").write_bytes(CONTENT[:100])
    ensure(here, [ARTIFACT], SilentReporter())
    assert leftovers(here) == {"thing-1.0.jar", "thing-1.0.jar.verified"}


def test_a_file_put_there_by_hand_is_taken_without_a_network_or_java(tmp_path: Path) -> None:
    here = machine(tmp_path, PATH="/nonexistent")
    here.cache.mkdir()
    cached_path(here, ARTIFACT).write_bytes(CONTENT)
    assert not is_cached(here, ARTIFACT)
    ensure(here, [ARTIFACT], SilentReporter())
    assert is_cached(here, ARTIFACT)


@pytest.mark.slow
def test_a_damaged_file_in_the_cache_is_set_aside_and_fetched_again(here: Machine) -> None:
    ensure(here, [ARTIFACT], SilentReporter())
    path = cached_path(here, ARTIFACT)
    path.write_bytes(b"damaged")
    heard = Heard()
    ensure(here, [ARTIFACT], heard)
    assert path.read_bytes() == CONTENT
    assert path.with_name("thing-1.0.jar.corrupt").read_bytes() == b"damaged"
    assert any("not the file that was pinned" in line for line in heard.said)


def test_no_java_to_download_with_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotInstalledError, match="No Java was found"):
        ensure(machine(tmp_path, PATH="/nonexistent"), [ARTIFACT], SilentReporter())


def _fetch(here: Machine) -> None:
    ensure(here, [ARTIFACT], SilentReporter())


def test_processes_that_need_the_same_file_do_not_disturb_each_other(here: Machine) -> None:
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=_fetch, args=(here,)) for _ in range(4)]
    for other in others:
        other.start()
    for other in others:
        other.join(30)
    assert [other.exitcode for other in others] == [0, 0, 0, 0]
    assert cached_path(here, ARTIFACT).read_bytes() == CONTENT
    assert leftovers(here) == {"thing-1.0.jar", "thing-1.0.jar.verified"}
