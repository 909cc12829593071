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
        """Days since the oldest snapshot that no branch or tag keeps.

        Unless it is the only one: then nothing could expire.
        """
        metrics = facts.metrics
        kept = len(metrics.ref_snapshot_ids or ())
        oldest = metrics.oldest_snapshot_at if not kept else metrics.oldest_free_snapshot_at
        if oldest is None or metrics.snapshots - kept < 2:
            return None
        days = max((facts.now - oldest) / timedelta(days=1), 0.0)
        beside = f", beside {kept:,} that branches and tags keep" if kept else ""
        message = f"the oldest of {metrics.snapshots - kept:,} snapshots is {days:,.1f} days old"
        message += beside
        return Signal(days, facts.thresholds.oldest_snapshot_days, "days", message)
