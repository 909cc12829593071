"""Whether figures differ so much that it matters: a small difference changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lakehouse_core.domain.maintenance import Change
    from lakehouse_core.domain.table import TableMetrics

# A few files more or less are a large share of a small table, and nothing to worry about.
_SMALLEST = {"data_files": 5.0, "delete_files": 5.0, "manifests": 5.0, "snapshots": 10.0}


def figures_of(metrics: TableMetrics) -> dict[str, float]:
    """The figures of a table that proposals are about."""
    return {
        "data_files": float(metrics.data_files),
        "total_bytes": float(metrics.total_bytes),
        "delete_files": float(metrics.delete_files),
        "manifests": float(metrics.manifests),
        "snapshots": float(metrics.snapshots),
    }


def material_difference(
    changes: Iterable[Change], now: Mapping[str, float], share: float
) -> str | None:
    """The first figure that is not what it was when it was predicted from; None: none differs.

    Args:
        changes: figures with what they were before.
        now: what they are now, by name; others are not compared.
        share: how large a difference does not count, as a share of the larger value.
    """
    for change in changes:
        found = now.get(change.name)
        if found is None or change.before is None:
            continue
        if is_material(change.name, change.before, found, share):
            return f"{change.name.replace('_', ' ')} {change.before:,.0f} then, {found:,.0f} now"
    return None


def is_material(name: str, before: float, now: float, share: float) -> bool:
    """Whether two values of a figure differ by more than the share and by more than a few."""
    difference = abs(now - before)
    return difference > _SMALLEST.get(name, 0.0) and difference > share * max(before, now)
