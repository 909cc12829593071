"""The backup agent: a copy of the store a day, and the last few of them kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agents.runs import Result
from lakehouse_core.store.backup import write_backup
from lakehouse_core.store.recover import STAMP

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.models import Config, StoreConfig
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore

# Those that people make (`lakehelm store backup`) have no such ending, and are left alone.
_ENDING = "-scheduled"
_PATTERN = f"telemetry-*{_ENDING}.duckdb"
_PARTIAL = f"telemetry-*{_ENDING}.partial*"
_EARLY = timedelta(minutes=10)  # jobs do not start by the second


def run_once(store: OwnerStore, config: Config, clock: Clock) -> Result:
    """Back the store up when the newest scheduled backup is old enough; then drop the oldest.

    A backup that fails leaves the others: nothing is dropped before a new one is there.
    """
    now = clock()
    known = scheduled_backups(config.store)
    newest = _made_at(known[0]) if known else None
    if newest is not None and now - newest < config.agents.backup_every - _EARLY:
        return Result()
    for leftover in config.store.backups.glob(_PARTIAL):  # of a process that was killed meanwhile
        leftover.unlink(missing_ok=True)
    write_backup(config.store, store.copy_to, f"{now.astimezone(UTC):{STAMP}}{_ENDING}")
    for old in scheduled_backups(config.store)[config.agents.keep_backups :]:
        old.unlink(missing_ok=True)
    return Result(rows=1)


def scheduled_backups(store: StoreConfig) -> list[Path]:
    """The backups this job made, newest first."""
    return sorted(store.backups.glob(_PATTERN), reverse=True)


def _made_at(backup: Path) -> datetime | None:
    stamp = backup.stem.removeprefix("telemetry-").removesuffix(_ENDING)
    try:
        return datetime.strptime(stamp, STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None  # somebody gave it another name: not ours to judge by
