from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.jobs import Progress, read_progress, run_job

if TYPE_CHECKING:
    from pathlib import Path


def script(text: str) -> Command:
    return Command(argv=(sys.executable, "-c", text))


def test_progress_lines_are_told_and_everything_is_in_the_log(tmp_path: Path) -> None:
    told: list[Progress] = []
    log = tmp_path / "job.log"
    text = "print('hello'); print('progress 1/2 a b'); print('progress 2/2 c'); raise SystemExit(7)"
    end = run_job(script(text), {}, log, on_progress=told.append)
    assert (end.exit_code, end.stopped) == (7, None)
    assert told == [Progress(1, 2, "a b"), Progress(2, 2, "c")]
    assert log.read_text(encoding="utf-8").startswith("hello\n")


@pytest.mark.parametrize("line", ["progress", "progress 1/0 x", "progress a/b", "done 1/2 x", ""])
def test_other_lines_are_no_progress(line: str) -> None:
    assert read_progress(line) is None


def test_a_job_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    text = "import time; time.sleep(60)"
    end = run_job(script(text), {}, tmp_path / "job.log", timeout=timedelta(seconds=0.3))
    assert end.exit_code is None
    assert "longer than 0:00:00.3" in str(end.stopped)


def test_a_job_ends_with_the_process_that_wants_it(tmp_path: Path) -> None:
    text = "import time; print('progress 0/1 x', flush=True); time.sleep(60)"
    told: list[Progress] = []
    end = run_job(
        script(text),
        {},
        tmp_path / "job.log",
        on_progress=told.append,
        is_stopping=lambda: bool(told),
    )
    assert (end.exit_code, end.stopped) == (None, "this process is stopping")
