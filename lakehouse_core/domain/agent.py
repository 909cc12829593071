"""What agents leave behind: runs, watermarks, dead letters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

RunOutcome = Literal["running", "ok", "partial", "failed"]


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
