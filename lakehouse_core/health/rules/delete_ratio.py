"""Delete files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.health.rules.base import Signal

if TYPE_CHECKING:
    from lakehouse_core.health.rules.base import Facts


class DeleteRatio:
    """Many delete files per data file: each query merges them. Compaction applies them."""

    id = "delete_ratio"

    def evaluate(self, facts: Facts) -> Signal | None:
        """Delete files per data file."""
        metrics = facts.metrics
        if metrics.delete_ratio is None:
            return None
        kinds = (
            (metrics.position_delete_files, "position"),
            (metrics.equality_delete_files, "equality"),
            (metrics.deletion_vectors, "vectors"),
        )
        parts = ", ".join(f"{count:,} {kind}" for count, kind in kinds if count)
        message = (
            f"{metrics.delete_files:,} delete files ({parts or 'none'}) on "
            f"{metrics.data_files:,} data files: {metrics.delete_ratio:.2f} each"
        )
        return Signal(metrics.delete_ratio, facts.thresholds.delete_ratio, "ratio", message)
