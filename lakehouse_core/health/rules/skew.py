"""Partition skew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.health.rules.base import Signal

if TYPE_CHECKING:
    from lakehouse_core.health.rules.base import Facts


class Skew:
    """One partition far larger than the others: queries on it wait for a few tasks. Repartition."""

    id = "skew"

    def evaluate(self, facts: Facts) -> Signal | None:
        """Bytes of the largest partition over the mean of all."""
        skew = facts.metrics.skew
        if skew is None:
            return None
        count = facts.metrics.partitions
        message = f"the largest of {count:,} partitions holds {skew:.1f} times the mean"
        return Signal(skew, facts.thresholds.skew, "times the mean", message)
