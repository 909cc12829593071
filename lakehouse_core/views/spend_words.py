"""Sentences about sums of money that the pages and the command line share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakehouse_core.views.costs import CostFilters, Reconciliation


def sum_words(sums: Reconciliation) -> str:
    """The sum of the rows that are shown, and what the others add to it."""
    words = f"sum of rows {sums.shown:f}"
    if sums.beyond:
        words += f" and {sums.beyond:f} in rows that are not shown"
    if sums.outside:
        words += f" and {sums.outside:f} outside the filters"
    return words


def not_applied(filters: CostFilters, applied: tuple[str, ...]) -> str:
    """Which of the filters that are set a table does not follow; empty when it follows all."""
    ignored = [name for name in filters.set_names if name not in applied]
    if not ignored:
        return ""
    names = ", ".join(name.replace("_", " ") for name in ignored)
    return f"These are figures of the whole: the filter for {names} does not apply here."
