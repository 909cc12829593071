"""`lakehelm up` that cannot start: a clear word, an exit code, nothing left half done."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from lakehouse_core.domain.errors import ConfigError, PortTakenError
from lakehouse_core.runtime.report import PlainReporter
from lakehouse_core.runtime.rundir import RunDir, processes_of
from lakehouse_core.runtime.up import UpOptions, run_up
from tests.factories import free_port, free_port_pair
from tests.unit.runtime.machines import fake_java
from tests.unit.runtime.supervision import wait_for
from tests.unit.runtime.test_rundir import run_status

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.timeout(120)
LAKEHELM = str(Path(sys.executable).with_name("lakehelm"))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A machine of its own: no Java, empty cache, free ports."""
    ports = (
        *("GATEWAY__ADMIN_PORT", "GATEWAY__SQL__PORT", "GATEWAY__SQL__POSTGRES_PORT", "UI__PORT"),
        *("ENGINES__SPARK__PORT", "ENGINES__SPARK__UI_PORT"),
    )
    return {
        "PATH": "/nonexistent",
        "HOME": str(tmp_path),
        "LAKEHELM_HOME": str(tmp_path / "home"),
        "LAKEHELM_CACHE": str(tmp_path / "cache"),
        "LAKEHELM_JAVA_DIRS": "",
        "LAKEHELM__STORE__PORT": str(free_port_pair()),
        "LAKEHELM__ENGINES__TRINO__PORT": str(free_port()),
        **{f"LAKEHELM__{name}": str(free_port()) for name in ports},
    }


def start(repository: Path, environ: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [LAKEHELM, "up", *arguments],
        env=environ,
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, out + err


@pytest.mark.slow
def test_without_java_and_without_a_lake_it_says_what_to_install(
    repository: Path, environ: dict[str, str]
) -> None:
    code, text = finish(start(repository, environ))
    assert code == 3
    assert "Spark needs Java 17 or 21; no Java was found" in text
    assert "Install a JDK 17 or 21" in text


def test_a_demo_lake_of_another_scale_is_not_dropped_without_a_word(
    environ: dict[str, str], tmp_path: Path
) -> None:
    marker = tmp_path / "home" / "lake" / "BUILT.json"
    marker.parent.mkdir(parents=True)
    marker.write_text('{"format": 1, "scale": 0.5, "seed": 42}')
    said: list[str] = []

    def go(**options: Any) -> None:
        run_up(UpOptions(**options), environ, PlainReporter(said.append), lambda _: None)

    with pytest.raises(ConfigError, match=r"scale 0\.5 and seed 42; --scale 0\.01 .* --rebuild"):
        go(scale=0.01)
    with socket.socket() as server:  # how far it comes is no matter here
        server.bind(("127.0.0.1", int(environ["LAKEHELM__UI__PORT"])))
        server.listen()
        for options in ({}, {"scale": 0.01, "rebuild": True}):
            with pytest.raises(PortTakenError):
                go(**options)
    assert "it is kept" in said[0]
    assert "its tables are dropped and built anew" in said[1]
    assert marker.exists()


@pytest.mark.slow
def test_a_taken_port_is_said_before_anything_is_done(
    repository: Path, environ: dict[str, str]
) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", int(environ["LAKEHELM__UI__PORT"])))
        server.listen()
        code, text = finish(start(repository, environ))
    assert code == 1
    assert f"Port {environ['LAKEHELM__UI__PORT']} for ui is taken by" in text
    assert f"pid {os.getpid()}" in text
    assert not Path(environ["LAKEHELM_CACHE"]).exists()


@pytest.mark.slow
def test_an_unknown_engine_is_a_mistake_of_the_command_line(
    repository: Path, environ: dict[str, str]
) -> None:
    code, text = finish(start(repository, environ, "--without", "trini"))
    assert code == 2
    assert "--without trini: no such engine" in text


@pytest.mark.slow
def test_an_unknown_profile_is_named(repository: Path, environ: dict[str, str]) -> None:
    code, text = finish(start(repository, environ, "--profile", "nowhere"))
    assert code == 2
    assert "there is no config/nowhere.yaml" in text


@pytest.mark.slow
def test_a_home_in_use_is_named(repository: Path, environ: dict[str, str]) -> None:
    run = RunDir(Path(environ["LAKEHELM_HOME"]))
    with run.locked():
        run.write(run_status())
        code, text = finish(start(repository, environ))
    assert code == 1
    assert f"already runs on {environ['LAKEHELM_HOME']} (pid {os.getpid()}" in text


@pytest.mark.slow
@pytest.mark.parametrize("ask", [psutil.Process.terminate, psutil.Process.kill])
def test_a_download_that_is_interrupted_leaves_no_process(
    repository: Path,
    environ: dict[str, str],
    tmp_path: Path,
    ask: Callable[[psutil.Process], None],
) -> None:
    fake_java(tmp_path / "jvm" / "17", "17.0.15")
    environ |= {"LAKEHELM_JAVA_DIRS": str(tmp_path / "jvm" / "*"), "PATH": "/usr/bin:/bin"}
    environ |= {"FAKE_IVY": "stall", "JAVA_HOME": str(tmp_path / "jvm" / "17")}
    process = start(repository, environ, "--without", "trino")
    run = RunDir(Path(environ["LAKEHELM_HOME"]))
    cache = Path(environ["LAKEHELM_CACHE"])
    wait_for(
        lambda: process.poll() is not None or any(cache.glob(".fetch-*/cache/file.part")),
        "the download begins",
    )
    status = run.read()
    assert status is not None
    assert process.poll() is None
    ask(psutil.Process(process.pid))
    process.communicate(timeout=60)
    wait_for(lambda: not processes_of(status.run_id), "the download's process ends")
    if ask is psutil.Process.terminate:
        assert process.returncode == 130
        assert not list(cache.glob(".fetch-*"))
        assert run.read().phase == "stopped"  # type: ignore[union-attr]
