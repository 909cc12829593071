"""Small files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.config.units import format_bytes_unit
from lakehouse_core.health.rules.base import Signal

if TYPE_CHECKING:
    from lakehouse_core.health.rules.base import Facts


class SmallFiles:
    """Many small data files: every query opens each of them. Compaction merges them.

    One that is alone in its partition does not count: a small partition has a small file, and
    nothing can be done about it.
    """

    id = "small_file_share"

    def evaluate(self, facts: Facts) -> Signal | None:
        """Share of files that could be put together, once there are enough files to matter."""
        metrics, limits = facts.metrics, facts.thresholds
        if not metrics.data_files or metrics.data_files < limits.min_files:
            return None
        small = metrics.small_files - (metrics.lone_small_files or 0)
        share = small / metrics.data_files
        message = (
            f"{small:,} of {metrics.data_files:,} data files ({share:.0%}) are smaller than "
            f"{format_bytes_unit(limits.small_file_bytes)} and could be put together"
        )
        return Signal(share, limits.small_file_share, "share", message)
