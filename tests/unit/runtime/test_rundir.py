"""One supervisor per home; what a killed one left behind is found and ended, nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest

from lakehouse_core.runtime.report import SilentReporter
from lakehouse_core.runtime.rundir import (
    RUN_ID_VARIABLE,
    AlreadyRunningError,
    ProcessStatus,
    RunDir,
    RunStatus,
    processes_of,
    sweep,
)
from lakehouse_core.runtime.up import stop_running
from tests.unit.runtime.supervision import is_running, wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(300)

# A supervisor in a process of its own: two children, one of which has a child itself.
SUPERVISOR = """
import os, sys, signal
from pathlib import Path
from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.processes import ProcessSpec
from lakehouse_core.runtime.readiness import file_exists
from lakehouse_core.runtime.report import SilentReporter
from lakehouse_core.runtime.supervisor import Supervisor, Surroundings

folder = Path(sys.argv[1])
inner = folder / "inner"
scripts = {
    "one": f"sleep 600 & echo $! > {inner}.new; mv {inner}.new {inner}; wait",
    "two": "exec sleep 600",
}
specs = [
    ProcessSpec(name=name, command=Command(argv=("/bin/sh", "-c", script)),
                ready=file_exists(inner))
    for name, script in scripts.items()
]
around = Surroundings(log_dir=folder, env=dict(os.environ), reporter=SilentReporter(),
                      on_change=lambda _: None)
supervisor = Supervisor(specs, around, {})
signal.signal(signal.SIGTERM, lambda *_: supervisor.request_stop())
supervisor.bring_up()
pids = [str(status.pid) for status in supervisor.statuses()] + [inner.read_text().strip()]
(folder / "pids.new").write_text(" ".join(pids))
(folder / "pids.new").rename(folder / "pids")
supervisor.supervise()
supervisor.stop()
"""


def run_status(**given: object) -> RunStatus:
    values: dict[str, object] = {
        "run_id": uuid.uuid4().hex,
        "supervisor_pid": os.getpid(),
        "supervisor_created": psutil.Process().create_time(),
        "started_at": "2026-11-16T12:00:00+00:00",
        "config": "config/lakehelm.yaml",
        "profile": "demo",
        "phase": "up",
    }
    return RunStatus(**values | given)  # type: ignore[arg-type]


def start_supervisor(tmp_path: Path, run_id: str) -> tuple[subprocess.Popen[bytes], list[int]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(tmp_path)],
        env={**os.environ, RUN_ID_VARIABLE: run_id},
    )
    pids = tmp_path / "pids"
    wait_for(lambda: pids.exists() or process.poll() is not None, "the supervisor starts")
    assert process.poll() is None
    return process, [int(pid) for pid in pids.read_text(encoding="ascii").split()]


@pytest.mark.slow
def test_processes_die_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    run_id = uuid.uuid4().hex
    process, (one, two, grandchild) = start_supervisor(tmp_path, run_id)
    process.kill()
    process.wait()
    wait_for(lambda: not is_running(one) and not is_running(two), "the kernel ends its children")
    # The kernel ends children only; what they had started is found by the run's id.
    assert sweep(run_id) == [grandchild]
    wait_for(lambda: not is_running(grandchild), "the sweep ends the rest")
    assert processes_of(run_id) == []


@pytest.mark.slow
def test_a_terminated_supervisor_ends_everything_itself(tmp_path: Path) -> None:
    process, pids = start_supervisor(tmp_path, uuid.uuid4().hex)
    process.terminate()
    assert process.wait(60) == 0
    assert not any(is_running(pid) for pid in pids)


def test_a_sweep_touches_nobody_else(tmp_path: Path) -> None:
    del tmp_path
    other = subprocess.Popen(
        ["sleep", "600"], env={**os.environ, RUN_ID_VARIABLE: uuid.uuid4().hex}
    )
    try:
        assert sweep(uuid.uuid4().hex) == []
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_second_supervisor_on_the_same_home_is_refused_by_name(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    with run.locked():
        run.write(run_status())
        with pytest.raises(AlreadyRunningError) as caught, RunDir(tmp_path).locked():
            pass
    text = str(caught.value)
    assert f"pid {os.getpid()}" in text
    assert "lakehelm down" in text
    with RunDir(tmp_path).locked():  # free again
        pass


def test_the_status_survives_a_round_trip(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    process = ProcessStatus(name="ui", state="ready", pid=7, restarts=2, url="http://127.0.0.1:1")
    status = run_status(processes=(process,))
    run.write(status)
    assert run.read() == status
    assert run.read().is_alive  # type: ignore[union-attr]


def test_a_status_of_a_reused_pid_is_not_alive() -> None:
    assert not replace(run_status(), supervisor_created=1.0).is_alive


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run_id": 1}', '{"processes": [{"x": 1}]}'])
def test_a_status_nobody_understands_is_no_status(tmp_path: Path, text: str) -> None:
    run = RunDir(tmp_path)
    run.path.mkdir()
    run.status_path.write_text(text, encoding="utf-8")
    assert run.read() is None


def test_down_ends_the_supervisor_that_runs(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "600"])
    created = psutil.Process(process.pid).create_time()
    RunDir(tmp_path).write(run_status(supervisor_pid=process.pid, supervisor_created=created))
    assert stop_running(tmp_path, SilentReporter())
    assert process.poll() is not None


def test_down_without_anything_running_says_so(tmp_path: Path) -> None:
    assert stop_running(tmp_path, SilentReporter()) is False
    RunDir(tmp_path).write(run_status(supervisor_created=1.0))
    assert stop_running(tmp_path, SilentReporter()) is False


def test_down_clears_up_after_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    status = run_status(supervisor_created=1.0)
    RunDir(tmp_path).write(status)
    orphan = subprocess.Popen(["sleep", "600"], env={**os.environ, RUN_ID_VARIABLE: status.run_id})
    assert stop_running(tmp_path, SilentReporter()) is True
    assert orphan.poll() is not None


def test_the_status_file_is_plain_json_for_other_programs(tmp_path: Path) -> None:
    RunDir(tmp_path).write(run_status(processes=(ProcessStatus(name="ui", state="ready"),)))
    raw = json.loads((tmp_path / "run" / "status.json").read_text(encoding="utf-8"))
    assert raw["phase"] == "up"
    assert raw["processes"][0]["name"] == "ui"
