"""Small files and delete files: put together and apply."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse_core.domain.maintenance import Change, Kind
from lakehouse_core.maintenance.plan import build_plan
from lakehouse_core.recommend.cures.base import Remedy
from lakehouse_core.recommend.cures.rewrite_position_deletes import wants_position_rewrite

if TYPE_CHECKING:
    from lakehouse_core.domain.table import TableMetrics
    from lakehouse_core.recommend.facts import Subject

RULES = ("small_file_share", "data_files", "delete_ratio")
RISK = (
    "Reads and writes the files again; rows stay the same. A writer that changes the same files "
    "meanwhile wins, and the compaction is tried again. Partitions written within the quiet period "
    "are left out. Undo: roll back to the snapshot before, which stays until it expires."
)


class Compact:
    """Many small files, or many delete files: files are put together, deletes applied."""

    def remedy(self, subject: Subject) -> Remedy | None:
        """Compact when it leaves clearly fewer files, or fewer deletes to apply."""
        metrics = subject.metrics
        reasons = subject.suffers_from(*RULES)
        if not reasons or wants_position_rewrite(subject):
            return None
        plan = build_plan(Kind.COMPACT, subject.table, metrics, subject.config)
        estimate = plan.stages[0].estimate
        taken, made = int(estimate["input_files"]), int(estimate["output_files"])
        after = _after(subject, taken, made, plan.input_bytes)
        least = subject.config.maintenance.min_difference * metrics.data_files
        has_deletes = bool(subject.suffers_from("delete_ratio"))
        is_fewer = metrics.data_files - after.data_files > least
        if not (is_fewer or has_deletes):
            return None
        return Remedy(
            kind=Kind.COMPACT,
            plan=plan,
            title=_title(metrics, taken, has_deletes=has_deletes),
            reason="; ".join(reasons),
            risk=RISK,
            after=after,
            live=_live(after, metrics, taken),
            changes=_changes(metrics, after, made),
        )


def _title(metrics: TableMetrics, taken: int, *, has_deletes: bool) -> str:
    if not has_deletes:
        return f"Put {taken:,} small files together"
    return f"Apply {metrics.delete_files:,} delete files and put small files together"


def _after(subject: Subject, taken: int, made: int, size: int) -> TableMetrics:
    metrics = subject.metrics
    live = 1.0
    if metrics.delete_files and metrics.total_rows:
        live = 1 - min(metrics.deleted_rows / metrics.total_rows, 1.0)
    files = metrics.data_files - taken + made
    is_small = bool(made) and size / made < subject.limits.small_file_bytes
    left_small = max(metrics.small_files - taken, 0) + (made if is_small else 0)
    total = int(metrics.total_bytes * live)
    return replace(
        metrics,
        data_files=files,
        small_files=min(left_small, files),
        lone_small_files=min(left_small, files, max(metrics.partitions, 1)),
        total_bytes=total,
        avg_file_bytes=total / files if files else None,
        delete_files=0,
        position_delete_files=0,
        equality_delete_files=0,
        deletion_vectors=0,
        deleted_rows=0,
        delete_ratio=0.0 if files else None,
    )


def _live(after: TableMetrics, before: TableMetrics, taken: int) -> TableMetrics:
    """Manifests whose files were all replaced stay in the list for a while; no query opens them."""
    kept = (before.data_files - taken) / before.data_files if before.data_files else 0.0
    return replace(after, manifests=min(math.ceil(before.manifests * kept) + 1, before.manifests))


def _changes(before: TableMetrics, after: TableMetrics, made: int) -> tuple[Change, ...]:
    found = [
        Change(
            name="data_files",
            unit="files",
            before=before.data_files,
            after=after.data_files,
            low=max(after.data_files - made + 1, 1),
            # Partitions that are written just then keep their files: one more each, at a guess.
            high=max(
                after.data_files, min(after.data_files + before.partitions, before.data_files)
            ),
        ),
        Change(
            name="total_bytes",
            unit="bytes",
            before=before.total_bytes,
            after=after.total_bytes,
            low=after.total_bytes * 0.7,  # larger row groups pack better
            high=before.total_bytes,
        ),
    ]
    if before.delete_files:
        found.append(
            Change(
                name="delete_files",
                unit="files",
                before=before.delete_files,
                after=0,
                low=0,
                high=min(before.delete_files, before.partitions),
            )
        )
    return tuple(found)
