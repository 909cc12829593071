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
        """Snapshots that the metadata still lists, of all branches."""
        count = facts.metrics.snapshots
        return Signal(count, facts.thresholds.snapshots, "snapshots", f"{count:,} snapshots kept")
