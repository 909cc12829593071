"""The pipeline agent: carry new telemetry into the lake and gold back, on a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.runs import Result
from lakehouse_core.config.environment import read_machine
from lakehouse_core.pipeline.service import Surroundings, run_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore


def run_once(
    store: TelemetryStore, config: Config, clock: Clock, is_stopping: Callable[[], bool]
) -> Result:
    """One run; its errors are the job's, with stage and reason."""
    around = Surroundings(machine=read_machine(), clock=clock, is_stopping=is_stopping)
    report = run_pipeline(config, store, around)
    return Result(rows=report.rows)
