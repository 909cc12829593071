"""Number of manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.health.rules.base import Signal

if TYPE_CHECKING:
    from lakehouse_core.health.rules.base import Facts


class Manifests:
    """Many manifests: planning a query opens them one by one. Rewrite the manifests."""

    id = "manifests"

    def evaluate(self, facts: Facts) -> Signal | None:
        """Manifests of the current snapshot."""
        count = facts.metrics.manifests
        message = f"{count:,} manifests for {facts.metrics.data_files:,} data files"
        return Signal(count, facts.thresholds.manifests, "manifests", message)
