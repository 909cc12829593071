"""What agents leave behind: runs, watermarks, dead letters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

RunOutcome = Literal["running", "ok", "partial", "failed"]
CircuitState = Literal["closed", "open", "half-open"]
RequestState = Literal["waiting", "running", "done", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRun:
    """One run of one agent job; a row of `agent_run`."""

    run_id: str
    agent: str  # e.g. "collect:trino", "health"
    started_at: datetime
    ended_at: datetime | None
    outcome: RunOutcome
    rows_written: int
    dead_letters: int
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """How far a source has been read; a row of `watermark`."""

    source: str
    position: str  # opaque to all but the source, JSON
    event_at: datetime | None  # newest event taken
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A payload that could not be mapped; a row of `dead_letter`."""

    source: str
    letter_id: str  # hash of the payload, so that a re-read does not double it
    seen_at: datetime
    reason: str
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """What the schedule knows of a job beyond its runs; a row of `agent_state`.

    Attributes:
        circuit: closed: its source answers; open: it does not, and is left alone until `retry_at`;
            half-open: one run finds out whether it is back.
        failures: how often in a row the source did not answer.
        since: since when the circuit is in this state.
        reason: why it is not closed, or why the job failed last.
        retry_at: when a failing job is tried again; None when its interval decides.
        abandoned: runs that hang and were given up; each holds a thread.
    """

    agent: str
    circuit: CircuitState
    failures: int
    since: datetime
    reason: str | None
    retry_at: datetime | None
    abandoned: int
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """A run that somebody asked for; a row of `agent_request`.

    Attributes:
        taken_at: when the schedule took it up.
        run_id: the run that served it.
        answer: how that ended, or why there was none.
    """

    request_id: str
    agent: str
    asked_at: datetime
    state: RequestState
    taken_at: datetime | None = None
    ended_at: datetime | None = None
    run_id: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProgress:
    """How far the present run of a job is; a row of `agent_progress`."""

    agent: str
    done: int
    total: int | None  # None: nobody can know
    unit: str  # what is counted, e.g. rows
    updated_at: datetime
