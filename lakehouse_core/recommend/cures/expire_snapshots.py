"""Many or old snapshots: let go of those nobody needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse_core.domain.maintenance import Change, Kind
from lakehouse_core.maintenance.plan import build_plan
from lakehouse_core.recommend.cures.base import Remedy
from lakehouse_core.recommend.model import Span

if TYPE_CHECKING:
    from lakehouse_core.recommend.facts import OldSnapshots, Subject

RISK = (
    "Deletes files that only expired snapshots need: it cannot be undone, and time travel ends at "
    "the oldest snapshot that stays. Kept are snapshots of branches and tags, those running "
    "queries read, the last Flink checkpoint, and those younger than the configured age."
)


class ExpireSnapshots:
    """Many snapshots, or very old ones: files that were replaced long ago are still stored."""

    def remedy(self, subject: Subject) -> Remedy | None:
        """Expire when snapshots are old enough to go, and more than the least number would stay."""
        metrics, old = subject.metrics, subject.old
        reasons = subject.suffers_from("snapshots", "oldest_snapshot_days")
        if not reasons or old is None:
            return None
        least = subject.config.maintenance.min_snapshots
        free = metrics.snapshots - len(metrics.ref_snapshot_ids or ())
        going = min(old.count, free - least)
        if going < 1:
            return None
        left = metrics.snapshots - going
        oldest = old.oldest_kept_at or metrics.latest_snapshot_at
        freed = _freed(subject, old)
        change = Change(
            name="snapshots",
            unit="snapshots",
            before=metrics.snapshots,
            after=left,
            low=left,
            high=metrics.snapshots,  # a reader or a stream may keep any of them
        )
        stored = Change(
            name="freed_bytes",
            unit="bytes",
            before=0,
            after=freed.likely,
            low=freed.low,
            high=freed.high,
        )
        after = replace(
            metrics,
            snapshots=left,
            oldest_snapshot_at=oldest,
            oldest_free_snapshot_at=oldest,
        )
        return Remedy(
            kind=Kind.EXPIRE_SNAPSHOTS,
            plan=build_plan(
                Kind.EXPIRE_SNAPSHOTS,
                subject.table,
                metrics,
                subject.config,
                # The cut the old ones were counted with: a table may not have been read since long.
                parameters={"older_than": subject.now - subject.config.maintenance.keep_snapshots},
            ),
            title=f"Expire {going:,} of {metrics.snapshots:,} snapshots",
            reason="; ".join(reasons),
            risk=RISK,
            after=after,
            live=after,
            changes=(change, stored),
            freed_bytes=freed,
        )


def _freed(subject: Subject, old: OldSnapshots) -> Span:
    """What old snapshots wrote and is not in the table any more, as far as commits tell.

    At least what they wrote beyond the size of the whole table; at most all they wrote.
    """
    written = float(old.added_bytes or 0)
    certain = max(written - subject.metrics.total_bytes, 0.0)
    return Span(certain, 0.0, written)
