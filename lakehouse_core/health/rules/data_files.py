"""Number of data files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.health.rules.base import Signal

if TYPE_CHECKING:
    from lakehouse_core.health.rules.base import Facts


class DataFiles:
    """Very many data files: planning a query reads an entry of each. Compaction leaves fewer."""

    id = "data_files"

    def evaluate(self, facts: Facts) -> Signal | None:
        """Data files of the current snapshot."""
        count = facts.metrics.data_files
        return Signal(count, facts.thresholds.data_files, "files", f"{count:,} data files")
