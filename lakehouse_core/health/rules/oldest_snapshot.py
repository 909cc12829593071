"""Age of the oldest snapshot."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.health.rules.base import Signal

if TYPE_CHECKING:
    from lakehouse_core.health.rules.base import Facts


class OldestSnapshot:
    """A very old snapshot keeps files that were replaced since. Expire snapshots."""

    id = "oldest_snapshot_days"

    def evaluate(self, facts: Facts) -> Signal | None:
        """Days since the oldest snapshot, unless it is the only one: then nothing could expire."""
        oldest = facts.metrics.oldest_snapshot_at
        if oldest is None or facts.metrics.snapshots < 2:
            return None
        days = max((facts.now - oldest) / timedelta(days=1), 0.0)
        message = f"the oldest of {facts.metrics.snapshots:,} snapshots is {days:,.1f} days old"
        return Signal(days, facts.thresholds.oldest_snapshot_days, "days", message)
