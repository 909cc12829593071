"""What only a Flink job has: slots it holds over time, checkpoints, what its tasks exchange."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakehouse_core.domain.query import EngineId

# Iceberg's committer writes this as checkpoint id of the commit at the end of a bounded input.
END_OF_INPUT = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkJob:
    """A job as it was when last seen; a row of `flink_job`.

    Attributes:
        slots: what it needs at its present parallelism: per slot sharing group, its widest vertex.
        checkpoint_interval_ms: None when it takes none by itself.
        exchanged_records: between its tasks; Flink does not say what sources read or sinks wrote.
    """

    engine_id: EngineId
    job_id: str
    seen_at: datetime
    job_name: str | None
    state: str
    job_type: str | None
    slots: int | None
    parallelism: int | None
    checkpoint_interval_ms: int | None
    checkpoint_mode: str | None
    checkpoints_completed: int | None
    checkpoints_failed: int | None
    checkpoints_restored: int | None
    exchanged_records: int | None
    exchanged_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTime:
    """Slots held from one moment to another; a row of `flink_slot_time`."""

    engine_id: EngineId
    job_id: str
    started_at: datetime
    ended_at: datetime
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkCheckpoint:
    """One checkpoint or savepoint; a row of `flink_checkpoint`."""

    engine_id: EngineId
    job_id: str
    checkpoint_id: int
    revision: int  # 0 while in progress
    status: str
    triggered_at: datetime
    ended_at: datetime | None
    duration_ms: float | None
    state_bytes: int | None
    checkpointed_bytes: int | None
    is_savepoint: bool
    checkpoint_type: str | None
    failure: str | None
