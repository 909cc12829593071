"""Work beside writers and readers: which partitions are left alone, which snapshots are kept, when.

The job is handed the outcome as `guards`: they only ever take away from an approved plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.maintenance import Kind
from lakehouse_core.maintenance.activity import committed_at, flink_checkpoints

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse_core.catalog.contents import WrittenPartition
    from lakehouse_core.catalog.metadata import Snapshot, TableMetadata
    from lakehouse_core.config.models import MaintenanceConfig
    from lakehouse_core.domain.maintenance import Action
    from lakehouse_core.maintenance.activity import Activity, Stream
    from lakehouse_core.maintenance.look import Look, Lookout

REWRITES = frozenset(
    {Kind.COMPACT, Kind.SORT, Kind.ZORDER, Kind.HILBERT, Kind.REWRITE_POSITION_DELETES}
)
# A Flink job that did not commit for so long is not waited for.
FLINK_MEMORY = timedelta(days=30)
# A gap between commits that a Spark job can hit: it takes some ten seconds to start.
LEAST_GAP = timedelta(minutes=2)
# The part of a gap in which work may begin, so that it ends before the next commit.
GAP_SHARE = 0.5
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)
# Writers name the engine so; a batch job's commit is its last word on what it wrote.
BATCH_ENGINES = frozenset({"spark"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """What the job has to leave alone.

    Attributes:
        protected_partitions: field → value as stored; a file in one of them is not rewritten.
        keep_snapshot_ids: never expired, whatever their age.
        older_than: what is younger stays: snapshots of an expiry, files of an orphan removal.
        hot: partitions written lately by appends alone, which are worked on for lack of others.
    """

    protected_partitions: tuple[Mapping[str, Any], ...] = ()
    keep_snapshot_ids: tuple[int, ...] = ()
    older_than: datetime | None = None
    min_snapshots: int = 1
    max_attempts: int = 3
    hot: int = 0

    def to_json(self) -> dict[str, Any]:
        """As the plan file has them."""
        return {
            "protected_partitions": [dict(one) for one in self.protected_partitions],
            "keep_snapshot_ids": list(self.keep_snapshot_ids),
            "older_than": self.older_than.isoformat() if self.older_than else None,
            "min_snapshots": self.min_snapshots,
            "max_attempts": self.max_attempts,
        }


def guards_for(
    action: Action, look: Look, lookout: Lookout, activity: Activity, settings: MaintenanceConfig
) -> Guards:
    """What an action has to leave alone at this moment.

    Raises:
        MetadataUnreadableError: a manifest of a late commit is missing or broken; names it.
    """
    protected: tuple[Mapping[str, Any], ...] = ()
    hot = 0
    if action.kind in REWRITES:
        late = late_commits(look.metadata, look.at - settings.quiet_period, activity)
        written = lookout.written(look, [one.snapshot_id for one in late])
        protected, hot = protected_partitions(written, late, look.metrics.partitions)
    return Guards(
        protected_partitions=protected,
        keep_snapshot_ids=tuple(sorted(snapshots_in_use(look.metadata, activity, look.at))),
        older_than=_older_than(action, look, activity, settings),
        min_snapshots=settings.min_snapshots,
        max_attempts=settings.max_attempts,
        hot=hot,
    )


def late_commits(
    metadata: TableMetadata, since: datetime, activity: Activity
) -> tuple[Snapshot, ...]:
    """Commits of writers within the quiet period whose writer may not be done yet.

    A batch job that has no statement running has finished: what it wrote may be put together at
    once, which is the best moment to do so.
    """
    busy = {one.engine_id for one in activity.running if one.is_writing}
    return tuple(
        one
        for one in metadata.history
        if committed_at(one) >= since
        and one.summary.get("operation") != "replace"
        and not (_is_batch(one) and not busy)
    )


def protected_partitions(
    written: Sequence[WrittenPartition], late: Sequence[Snapshot], partitions: int
) -> tuple[tuple[Mapping[str, Any], ...], int]:
    """Partitions to leave alone, and how many late ones are worked on all the same.

    A rewrite never conflicts with an append, only with what deletes or replaces rows. So where
    there is nothing but partitions that a stream appends to, they are worked on in its gaps:
    waiting for quiet would be waiting for ever.
    """
    appends = {one.snapshot_id for one in late if one.summary.get("operation") == "append"}
    unique = {(one.spec_id, repr(sorted(one.values.items()))): one for one in written}
    changed = {
        key
        for one in written
        if one.snapshot_id not in appends
        for key in [(one.spec_id, repr(sorted(one.values.items())))]
    }
    is_all = len(unique) >= max(1, partitions)
    chosen = changed if is_all else set(unique)
    protected = tuple(unique[key].values for key in sorted(chosen))
    return protected, len(unique) - len(chosen)


def snapshots_in_use(metadata: TableMetadata, activity: Activity, now: datetime) -> set[int]:
    """Snapshots that somebody reads, goes on from, or planned from.

    What a running query reads is known from its engine, or it is any that was current since it
    began. Engines tell late or never: what was current within the longest query seen is kept too.
    """
    keep = {one for query in activity.running for one in query.snapshot_ids}
    keep |= set(metadata.refs.values())
    keep |= flink_checkpoints(metadata.snapshots, now - FLINK_MEMORY)
    keep |= {
        one.base_snapshot_id
        for one in activity.earlier
        if one.ended_at is None and one.base_snapshot_id is not None
    }
    starts = [one.started_at for one in activity.running if not one.snapshot_ids]
    since = min([now - activity.longest_query, *starts])
    superseded_at: datetime | None = None
    for snapshot in metadata.history:  # newest first
        if superseded_at is not None and superseded_at < since:
            break
        keep.add(snapshot.snapshot_id)
        superseded_at = committed_at(snapshot)
    return keep & {one.snapshot_id for one in metadata.snapshots}


def next_gap(streams: Sequence[Stream], now: datetime) -> datetime | None:
    """When to begin so as to work between two commits of a stream; None: now is as good.

    A stream that commits every few seconds leaves no gap that a job could hit: its appends do not
    conflict with a rewrite, and what deletes is kept away by the quiet period.
    """
    waits = [
        stream.next_at(now)
        for stream in streams
        if stream.every >= LEAST_GAP and now - stream.last_at > stream.every * GAP_SHARE
    ]
    return max(waits, default=None)


def rest_until(activity: Activity) -> datetime | None:
    """Until when a table with live writers is left to them after maintenance.

    Maintenance takes at most every second stretch of time, so that writers never starve.
    """
    if not activity.streams:
        return None
    ends = [
        one.ended_at + (one.ended_at - one.started_at) for one in activity.earlier if one.ended_at
    ]
    return max(ends, default=None)


def pause_after(attempts: int) -> timedelta:
    """How long to stay away from a table after meeting a writer for the nth time."""
    doublings = min(max(attempts - 1, 0), 10)
    return min(LONGEST_PAUSE, FIRST_PAUSE * float(2**doublings))


def orphan_age(settings: MaintenanceConfig, activity: Activity) -> timedelta:
    """How old a file must be before it may be an orphan: no writer is as slow as that."""
    return max(settings.orphan_age, 2 * activity.longest_write)


def _older_than(
    action: Action, look: Look, activity: Activity, settings: MaintenanceConfig
) -> datetime | None:
    planned = next(
        (
            one.arguments["older_than"]
            for one in action.plan.stages
            if "older_than" in one.arguments
        ),
        None,
    )
    if planned is None:
        return None
    age = (
        orphan_age(settings, activity)
        if action.kind is Kind.REMOVE_ORPHANS
        else max(settings.keep_snapshots, activity.longest_query)
    )
    return min(datetime.fromisoformat(planned), look.at - age)


def _is_batch(snapshot: Snapshot) -> bool:
    return snapshot.summary.get("engine-name") in BATCH_ENGINES
