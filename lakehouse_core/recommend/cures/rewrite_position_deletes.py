"""Many position delete files on large data: put the delete files together, leave the data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse_core.domain.maintenance import Change, Kind
from lakehouse_core.maintenance.plan import build_plan
from lakehouse_core.recommend.cures.base import Remedy

if TYPE_CHECKING:
    from lakehouse_core.recommend.facts import Subject

# Below this share of deleted rows, reading all data again to drop them is not worth it.
FEW_DELETED = 0.02
RISK = (
    "Rewrites delete files only; data files and rows stay the same. A writer that deletes "
    "meanwhile wins, and it is tried again. Undo: roll back to the snapshot before."
)


def wants_position_rewrite(subject: Subject) -> bool:
    """Whether putting delete files together is enough: few rows, position deletes, large files."""
    metrics = subject.metrics
    is_position_only = metrics.position_delete_files == metrics.delete_files > 0
    if not is_position_only or not metrics.total_rows or not metrics.data_files:
        return False
    if not metrics.mergeable_delete_files:
        return False  # one delete file per data file: only applying them leaves fewer
    if subject.suffers_from("small_file_share", "data_files"):
        return False  # the data is written again anyway, and the deletes applied with it
    is_enough = _left(subject) / metrics.data_files < subject.limits.delete_ratio.warning
    return is_enough and metrics.deleted_rows / metrics.total_rows < FEW_DELETED


class RewritePositionDeletes:
    """Many position delete files that delete few rows: those that belong together are merged."""

    def remedy(self, subject: Subject) -> Remedy | None:
        """Rewrite delete files when that alone brings the ratio below its limit."""
        reasons = subject.suffers_from("delete_ratio")
        if not reasons or not wants_position_rewrite(subject):
            return None
        metrics, left = subject.metrics, _left(subject)
        after = replace(
            metrics,
            delete_files=left,
            position_delete_files=left,
            delete_ratio=left / metrics.data_files,
        )
        change = Change(
            name="delete_files",
            unit="files",
            before=metrics.delete_files,
            after=left,
            low=0,
            high=min(2 * left, metrics.delete_files),
        )
        return Remedy(
            kind=Kind.REWRITE_POSITION_DELETES,
            plan=build_plan(Kind.REWRITE_POSITION_DELETES, subject.table, metrics, subject.config),
            title=f"Put {metrics.delete_files:,} position delete files together",
            reason="; ".join(reasons),
            risk=RISK,
            after=after,
            live=after,
            changes=(change,),
        )


def _left(subject: Subject) -> int:
    return subject.metrics.delete_files - (subject.metrics.mergeable_delete_files or 0)
