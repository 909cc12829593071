"""Number of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.health.rules.base import Signal

if TYPE_CHECKING:
    from lakehouse_core.health.rules.base import Facts


class Snapshots:
    """Many snapshots: each commit rewrites their list and old files stay. Expire them."""

    id = "snapshots"

    def evaluate(self, facts: Facts) -> Signal | None:
        """Snapshots that the metadata still lists, without those that a branch or tag is for."""
        kept = len(facts.metrics.ref_snapshot_ids or ())
        count = facts.metrics.snapshots - kept
        message = f"{count:,} snapshots kept"
        if kept:
            message += f", beside {kept:,} of branches and tags"
        return Signal(count, facts.thresholds.snapshots, "snapshots", message)
