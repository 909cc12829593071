"""Every run of a job leaves a row: when, how it ended, what it wrote, in one line why it failed."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.agent import AgentRun
from lakehouse_core.domain.errors import LakehouseError, StoreError, Transient
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.domain.agent import RunOutcome
    from lakehouse_core.domain.circuit import Reach
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

MAX_ERROR = 500
_log = structlog.get_logger(__name__)

OPEN_RUNS_SQL = """
SELECT run_id, agent, started_at, ended_at, outcome, rows_written, dead_letters, error
FROM agent_run WHERE outcome = 'running'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a job did.

    Attributes:
        rows: rows that were new or different.
        dead_letters: payloads that could not be understood.
        error: what went wrong, if something did.
        is_partial: some of it was done all the same.
        reach: whether what it works on answered (domain/circuit.py).
    """

    rows: int = 0
    dead_letters: int = 0
    error: str | None = None
    is_partial: bool = False
    reach: Reach = "answered"

    @property
    def outcome(self) -> RunOutcome:
        """In a word."""
        if self.error is not None and not self.is_partial:
            return "failed"
        return "partial" if self.is_partial or self.dead_letters else "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run that is over, and whether what it works on answered."""

    run: AgentRun
    reach: Reach = "answered"


def record_run(
    store: TelemetryStore, clock: Clock, agent: str, work: Callable[[], Result]
) -> AgentRun:
    """Run a job and write down how it went; an error of the job is recorded, not raised.

    A store that cannot take the row does not stop the job: its own writes will say so.
    """
    return run_job(store, clock, agent, work).run


def run_job(store: TelemetryStore, clock: Clock, agent: str, work: Callable[[], Result]) -> Ended:
    """As `record_run`; says beside it whether the source answered."""
    started_at = clock()
    run = AgentRun(
        run_id=f"{started_at:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}",
        agent=agent,
        started_at=started_at,
        ended_at=None,
        outcome="running",
        rows_written=0,
        dead_letters=0,
        error=None,
    )
    _write(store, run)
    result = result_of(agent, work)
    run = replace(
        run,
        ended_at=clock(),
        outcome=result.outcome,
        rows_written=result.rows,
        dead_letters=result.dead_letters,
        error=result.error,
    )
    _write(store, run)
    _report(run)
    return Ended(run=run, reach=result.reach)


def close_interrupted_runs(store: TelemetryStore, clock: Clock) -> int:
    """Runs that a killed process left open are closed as what they are."""
    open_runs = records(AgentRun, store.read(OPEN_RUNS_SQL))
    if not open_runs:
        return 0
    now = clock()
    closed = [
        replace(run, ended_at=now, outcome="failed", error="its process ended while it ran")
        for run in open_runs
    ]
    return store.upsert("agent_run", to_arrow("agent_run", closed))


def one_line(error: BaseException) -> str:
    """An error as one bounded line, without a traceback."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= MAX_ERROR else f"{text[: MAX_ERROR - 1]}…"


def result_of(agent: str, work: Callable[[], Result]) -> Result:
    """What the work returns; what it raises, as a result."""
    try:
        return work()
    except LakehouseError as error:
        return Result(error=one_line(error), reach=reach_of(error))
    except Exception as error:  # noqa: BLE001 the edge of a job: shown, logged with its traceback
        _log.exception("agent.bug", agent=agent)
        text = f"internal error: {type(error).__name__}: {one_line(error)}"
        return Result(error=text, reach="untold")


def reach_of(error: LakehouseError | None) -> Reach:
    """What an error tells about the source: our own store's troubles tell nothing."""
    if isinstance(error, StoreError):
        return "untold"
    return "silent" if isinstance(error, Transient) else "answered"


def _write(store: TelemetryStore, run: AgentRun) -> None:
    try:
        store.upsert("agent_run", to_arrow("agent_run", [run]))
    except StoreError as error:
        _log.error("agent.run_not_recorded", agent=run.agent, detail=one_line(error))


def _report(run: AgentRun) -> None:
    seconds = (run.ended_at - run.started_at).total_seconds() if run.ended_at else None
    level = {"ok": "debug", "partial": "warning", "failed": "error"}[run.outcome]
    getattr(_log, level)(
        "agent.run",
        agent=run.agent,
        run_id=run.run_id,
        outcome=run.outcome,
        rows=run.rows_written,
        dead_letters=run.dead_letters,
        seconds=seconds,
        error=run.error,
    )
