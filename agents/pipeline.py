"""The pipeline agent: carry new telemetry into the lake and gold back, on a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.runs import Result
from lakehouse_core.config.environment import read_machine
from lakehouse_core.pipeline.service import Surroundings, run_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.watch import Lease
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore


def run_once(
    store: TelemetryStore,
    config: Config,
    clock: Clock,
    lease: Lease,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Result:
    """One run; its errors are the job's, with stage and reason.

    The Spark job is a process of its own: it is ended when this process stops or the run was given
    up, and the next run carries on what it left.
    """
    around = Surroundings(
        machine=read_machine(),
        clock=clock,
        on_progress=lambda at: lease.on_progress(at.done, at.total),
        is_stopping=lambda: lease.is_lost or is_stopping(),
    )
    return Result(rows=run_pipeline(config, store, around).rows)
