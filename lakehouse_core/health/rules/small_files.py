"""Small files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.config.units import format_bytes_unit
from lakehouse_core.health.rules.base import Signal

if TYPE_CHECKING:
    from lakehouse_core.health.rules.base import Facts


class SmallFiles:
    """Many small data files: every query opens each of them. Compaction merges them."""

    id = "small_file_share"

    def evaluate(self, facts: Facts) -> Signal | None:
        """Share of data files below the size limit, once there are enough files to matter."""
        metrics, limits = facts.metrics, facts.thresholds
        if not metrics.data_files or metrics.data_files < limits.min_files:
            return None
        share = metrics.small_files / metrics.data_files
        message = (
            f"{metrics.small_files:,} of {metrics.data_files:,} data files ({share:.0%}) are "
            f"smaller than {format_bytes_unit(limits.small_file_bytes)}"
        )
        return Signal(share, limits.small_file_share, "share", message)
