"""Is the store safe: its newest backup, and what became of a file that was damaged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakehouse_core.store.recover import backups_of
from lakehouse_core.views.formatting import ago, moment
from lakehouse_core.views.freshness import is_late
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

TOLD_FOR = timedelta(days=14)

RECOVERIES_SQL = """
SELECT recovered_at, reason, quarantined, restored_from FROM store_recovery
WHERE recovered_at >= $since::TIMESTAMPTZ ORDER BY recovered_at DESC
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecovery:
    """A damaged store file; `restored_from` None: history began anew, with nothing."""

    recovered_at: datetime
    reason: str
    quarantined: tuple[str, ...]
    restored_from: str | None

    def sentence(self) -> str:
        """What happened, in words."""
        source = (
            f"it was rebuilt from {self.restored_from}; what came later is lost unless sources "
            "still have it"
            if self.restored_from
            else "there was nothing to rebuild it from: history begins anew"
        )
        aside = ", ".join(self.quarantined) or "nothing"
        return (
            f"The store file was damaged on {moment(self.recovered_at)}: {self.reason}. "
            f"Put aside: {aside}; {source}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """The newest backup of the store; None where there is none.

    Attributes:
        path: below the home folder, where it is there.
    """

    path: Path | None
    made_at: datetime | None
    is_late: bool
    at: datetime

    def sentence(self) -> str:
        """Which it is and how old."""
        if self.path is None or self.made_at is None:
            return "No backup of the store yet"
        return f"Newest backup of the store: {ago(self.made_at, self.at)}, {self.path}"


def recoveries(store: TelemetryStore, *, clock: Clock) -> tuple[StoreRecovery, ...]:
    """What became of damaged store files in the last two weeks, newest first."""
    return records(StoreRecovery, store.read(RECOVERIES_SQL, since=clock() - TOLD_FOR))


def newest_backup(config: Config, clock: Clock) -> Backup:
    """The newest backup, as the folder has it."""
    now = clock()
    path = next(iter(backups_of(config.store)), None)
    made_at = None if path is None else datetime.fromtimestamp(path.stat().st_mtime, UTC)
    age = None if made_at is None else now - made_at
    late = is_late(age, config.agents.backup_every)
    if path is not None and path.is_relative_to(config.home):
        path = path.relative_to(config.home)
    return Backup(path=path, made_at=made_at, is_late=late, at=now)
