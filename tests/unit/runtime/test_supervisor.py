"""Start order, readiness, restarts and stop, shown on real processes."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import psutil
import pytest

from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.processes import BackOff, ProcessSpec
from lakehouse_core.runtime.readiness import file_exists
from lakehouse_core.runtime.supervisor import ALIVE_SECONDS, MOST_HANGS, BringUpError
from tests.unit.runtime.supervision import Stage, is_running, shell, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.runtime.rundir import ProcessStatus
    from lakehouse_core.runtime.supervisor import Supervisor

pytestmark = pytest.mark.timeout(300)
FOREVER = "exec sleep 600"
AT_ONCE = BackOff(first_seconds=0.01)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "logs")


@pytest.fixture
def hand_clock(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "logs", hand_clock=True)


@pytest.mark.slow
def test_a_process_starts_only_after_those_before_it_are_ready(
    stage: Stage, tmp_path: Path
) -> None:
    mark, seen = tmp_path / "mark", tmp_path / "seen"
    supervisor = stage.supervisor(
        [
            shell(f"sleep 0.3; touch {mark}; {FOREVER}", name="first", ready=file_exists(mark)),
            # It looks for the mark once, at its start.
            shell(f"test -e {mark} && touch {seen}; {FOREVER}", name="second", after=("first",)),
        ]
    )
    try:
        assert supervisor.bring_up()
        wait_for(seen.exists, "the second process sees that the first was ready")
        assert stage.started() == ["first", "second"]
    finally:
        supervisor.stop()


@pytest.mark.slow
def test_stop_is_in_reverse_order_and_leaves_nothing(stage: Stage) -> None:
    supervisor = stage.supervisor(
        [
            shell(FOREVER, name="store"),
            shell(FOREVER, name="engine", after=("store",)),
            shell(FOREVER, name="pages", after=("engine",)),
        ]
    )
    supervisor.bring_up()
    pids = [status.pid for status in supervisor.statuses()]
    supervisor.stop()
    assert stage.stopped() == ["pages", "engine", "store"]
    assert {status.state for status in supervisor.statuses()} == {"stopped"}
    assert not any(is_running(pid) for pid in pids if pid is not None)


@pytest.mark.slow
def test_a_process_that_ignores_the_polite_request_is_killed(stage: Stage, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    deaf = f"trap '' TERM; touch {mark}; while :; do sleep 0.1; done"
    supervisor = stage.supervisor(
        [shell(deaf, name="deaf", ready=file_exists(mark), stop_seconds=0.3)]
    )
    supervisor.bring_up()
    (status,) = supervisor.statuses()
    supervisor.stop()
    assert status.pid is not None
    assert not is_running(status.pid)


def test_asking_twice_for_a_stop_does_not_wait(stage: Stage, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    deaf = f"trap '' TERM; touch {mark}; while :; do sleep 0.1; done"
    supervisor = stage.supervisor(
        [shell(deaf, name="deaf", ready=file_exists(mark), stop_seconds=600)]
    )
    supervisor.bring_up()
    supervisor.request_stop()
    supervisor.request_stop()
    supervisor.stop()  # the time limit of the test is below 600 s
    assert stage.state("deaf") == "stopped"


def test_children_of_a_process_go_with_it(stage: Stage, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {pid_file}.new; mv {pid_file}.new {pid_file}; wait"
    supervisor = stage.supervisor([shell(script, ready=file_exists(pid_file))])
    supervisor.bring_up()
    grandchild = int(pid_file.read_text(encoding="ascii"))
    assert is_running(grandchild)
    supervisor.stop()
    wait_for(lambda: not is_running(grandchild), "the grandchild ends")


def test_children_of_a_process_that_dies_go_with_it(stage: Stage, tmp_path: Path) -> None:
    pid_file, go = tmp_path / "pid", tmp_path / "go"
    script = (
        f"sleep 600 & echo $! > {pid_file}.new; mv {pid_file}.new {pid_file};"
        f"while ! test -e {go}; do sleep 0.05; done; exit 7"
    )
    supervisor = stage.supervisor([shell(script, ready=file_exists(pid_file))])
    supervisor.bring_up()
    grandchild = int(pid_file.read_text(encoding="ascii"))
    go.touch()
    try:
        wait_for(lambda: (supervisor.step(), stage.state("p"))[1] == "backing_off", "it ends")
        wait_for(lambda: not is_running(grandchild), "the grandchild ends")
        assert stage.published[-1]["p"].exit_code == 7
    finally:
        supervisor.stop()


def test_restarts_wait_longer_each_time_and_start_anew_after_a_stable_run(
    hand_clock: Stage, tmp_path: Path
) -> None:
    stay = tmp_path / "stay"
    supervisor = hand_clock.supervisor(
        [shell(f"test -e {stay} && {FOREVER}; exit 3", essential=False)]
    )

    def step_until(state: str) -> None:
        wait_for(lambda: (supervisor.step(), hand_clock.state("p"))[1] == state, state)

    try:
        supervisor.step()
        for delay in (1.0, 2.0, 4.0):
            step_until("backing_off")
            hand_clock.now += delay - 0.01
            supervisor.step()
            assert hand_clock.state("p") == "backing_off"
            hand_clock.now += 0.01
            supervisor.step()
            assert hand_clock.published[-1]["p"].restarts == {1.0: 1, 2.0: 2, 4.0: 3}[delay]
        step_until("backing_off")
        stay.touch()
        hand_clock.now += 8.0
        step_until("ready")
        hand_clock.now += 61.0  # stable: the failures are forgotten
        supervisor.step()
        stay.unlink()
        pid = hand_clock.published[-1]["p"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        step_until("backing_off")
        hand_clock.now += 1.0
        supervisor.step()
        assert hand_clock.published[-1]["p"].restarts == 5
    finally:
        supervisor.stop()


def test_back_off_doubles_up_to_its_bound() -> None:
    back_off = BackOff(first_seconds=1, most_seconds=60)
    assert [back_off.delay(n) for n in (1, 2, 3, 7, 50, 5_000)] == [1, 2, 4, 60, 60, 60]


@pytest.mark.slow
def test_an_essential_process_that_keeps_ending_fails_the_start_with_its_last_words(
    stage: Stage, tmp_path: Path
) -> None:
    stage.back_off = AT_ONCE
    never = file_exists(tmp_path / "never")
    script = "echo the store is locked >&2; exit 1"
    supervisor = stage.supervisor([shell(script, name="agents", ready=never)])
    with pytest.raises(BringUpError, match=r"agents ended with exit code 1(.|\n)*store is locked"):
        supervisor.bring_up()
    supervisor.stop()


def test_an_essential_process_that_never_gets_ready_fails_the_start(
    stage: Stage, tmp_path: Path
) -> None:
    never = file_exists(tmp_path / "never")
    supervisor = stage.supervisor([shell(FOREVER, name="agents", ready=never, ready_seconds=0.3)])
    with pytest.raises(BringUpError, match=r"agents was not ready after 0 s \(never is not there"):
        supervisor.bring_up()
    supervisor.stop()


@pytest.mark.slow
def test_an_engine_that_does_not_come_up_does_not_hold_up_the_rest(
    stage: Stage, tmp_path: Path
) -> None:
    never = file_exists(tmp_path / "never")
    supervisor = stage.supervisor(
        [
            shell(FOREVER, name="trino", ready=never, ready_seconds=0.3, essential=False),
            shell(FOREVER, name="workload", after=("trino",)),
        ]
    )
    try:
        assert supervisor.bring_up()
        assert stage.state("workload") == "ready"
        assert stage.state("trino") in ("backing_off", "starting")
        assert any("trino was not ready after" in line for line in stage.said)
    finally:
        supervisor.stop()


@pytest.mark.slow
def test_a_command_that_does_not_exist_is_named(stage: Stage, tmp_path: Path) -> None:
    stage.back_off = AT_ONCE
    command = Command(argv=("/nonexistent/java", "-version"))
    never = file_exists(tmp_path / "never")
    supervisor = stage.supervisor([ProcessSpec(name="x", command=command, ready=never)])
    with pytest.raises(BringUpError, match="cannot start /nonexistent/java"):
        supervisor.bring_up()
    supervisor.stop()


def test_a_stop_during_the_start_ends_it(stage: Stage, tmp_path: Path) -> None:
    never = file_exists(tmp_path / "never")
    supervisor = stage.supervisor([shell(FOREVER, ready=never, ready_seconds=600)])
    supervisor.step()
    supervisor.request_stop()
    assert supervisor.bring_up() is False
    supervisor.stop()
    assert stage.state("p") == "stopped"


def test_engines_left_out_are_in_the_status_with_the_reason(stage: Stage) -> None:
    supervisor = stage.supervisor([], skipped={"trino": "needs Java 24"})
    (status,) = supervisor.statuses()
    assert (status.name, status.state, status.detail) == ("trino", "skipped", "needs Java 24")


@pytest.mark.slow
def test_logs_of_earlier_starts_are_kept(stage: Stage, tmp_path: Path) -> None:
    for number in range(7):
        mark = tmp_path / f"mark{number}"
        script = f"echo start {number}; touch {mark}; {FOREVER}"
        supervisor = stage.supervisor([shell(script, ready=file_exists(mark))])
        supervisor.bring_up()
        supervisor.stop()
    texts = {path.name: path.read_text(encoding="utf-8") for path in stage.log_dir.iterdir()}
    assert texts["p.log"] == "start 6\n"
    assert texts["p.log.1"] == "start 5\n"
    assert texts["p.log.5"] == "start 1\n"
    assert "p.log.6" not in texts


def watched(stage: Stage, tmp_path: Path, **more: object) -> tuple[Supervisor, Path]:
    """A supervisor of one process that is ready, and the mark whose absence makes it silent."""
    mark = tmp_path / "answers"
    mark.touch()
    spec = shell(FOREVER, alive=file_exists(mark), misses=3, **more)
    supervisor = stage.supervisor([spec])
    supervisor.step()
    wait_for(lambda: (supervisor.step(), stage.state("p"))[1] == "ready", "it is ready")
    return supervisor, mark


def look(stage: Stage, supervisor: Supervisor, times: int = 1) -> ProcessStatus:
    for _ in range(times):
        stage.now += ALIVE_SECONDS
        supervisor.step()
    return supervisor.statuses()[0]


def test_a_process_that_answers_no_more_is_started_again(hand_clock: Stage, tmp_path: Path) -> None:
    supervisor, mark = watched(hand_clock, tmp_path)
    try:
        pid = supervisor.statuses()[0].pid
        mark.unlink()
        status = look(hand_clock, supervisor, 2)
        assert (status.state, status.pid) == ("ready", pid)
        assert "does not answer: answers is not there" in str(status.detail)
        status = look(hand_clock, supervisor)
        assert status.state == "backing_off"
        assert "did not answer 3 times in a row" in hand_clock.said[-1]
        assert pid is not None
        assert not is_running(pid)
        mark.touch()
        hand_clock.now += 1.0
        supervisor.step()
        wait_for(lambda: (supervisor.step(), hand_clock.state("p"))[1] == "ready", "ready again")
        assert supervisor.statuses()[0].pid != pid
    finally:
        supervisor.stop()


def test_a_process_that_is_slow_now_and_then_is_left_alone(
    hand_clock: Stage, tmp_path: Path
) -> None:
    supervisor, mark = watched(hand_clock, tmp_path)
    try:
        pid = supervisor.statuses()[0].pid
        for _ in range(3):
            mark.unlink()
            look(hand_clock, supervisor, 2)
            mark.touch()
            status = look(hand_clock, supervisor)
            assert (status.state, status.pid, status.detail) == ("ready", pid, None)
    finally:
        supervisor.stop()


def test_a_process_that_was_stopped_is_started_again(hand_clock: Stage, tmp_path: Path) -> None:
    supervisor, _ = watched(hand_clock, tmp_path)
    try:
        pid = supervisor.statuses()[0].pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, "it is stopped")
        assert look(hand_clock, supervisor, 3).state == "backing_off"
        assert "the process is stopped" in hand_clock.said[-1]
        assert not is_running(pid)
    finally:
        supervisor.stop()


def test_one_that_hangs_again_and_again_is_left_alone_for_an_hour(
    hand_clock: Stage, tmp_path: Path
) -> None:
    supervisor, mark = watched(hand_clock, tmp_path)
    try:
        mark.unlink()
        for _ in range(MOST_HANGS):
            assert look(hand_clock, supervisor, 3).state == "backing_off"
            hand_clock.now += 60.0
            supervisor.step()
            wait_for(lambda: (supervisor.step(), hand_clock.state("p"))[1] == "ready", "ready")
        status = look(hand_clock, supervisor, 30)
        assert status.state == "ready"
        assert "left alone" in str(status.detail)
        hand_clock.now += 3600.0
        assert look(hand_clock, supervisor).state == "backing_off"
    finally:
        supervisor.stop()
