"""Rules about the effect: a run that would change nothing is refused, so that work ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.domain.maintenance import Kind
from lakehouse_core.maintenance.activity import committed_at
from lakehouse_core.maintenance.plan import SMALL_SHARE
from lakehouse_core.maintenance.rules.base import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from lakehouse_core.domain.maintenance import Plan
    from lakehouse_core.maintenance.look import Look
    from lakehouse_core.maintenance.rules.base import Facts

_MANIFEST_TARGET = 8 * 2**20


class ChangesSomething:
    """There is something to do; what was done is not done again."""

    id = "changes-something"

    def evaluate(self, facts: Facts) -> Finding | None:
        """See `Rule`."""
        reason = _done_before(facts) or _NOTHING_TO_DO[facts.action.kind](facts)
        if reason is None:
            return None
        return Finding(rule=self.id, verdict="refuse", message=reason)


class QuietPartitions:
    """Partitions that somebody writes to at the moment are left out."""

    id = "quiet-partitions"

    def evaluate(self, facts: Facts) -> Finding | None:
        """See `Rule`."""
        protected = len(facts.guards.protected_partitions)
        if not protected or protected < facts.look.metrics.partitions:
            return None
        newest = facts.look.metadata.history[0]
        return Finding(
            rule=self.id,
            verdict="wait",
            message=f"All {protected} partitions were changed within the quiet period of "
            f"{facts.settings.quiet_period}",
            not_before=committed_at(newest) + facts.settings.quiet_period,
        )


def compaction_gain(look: Look, target: int) -> int:
    """How many files fewer there are when small ones are put together, partition by partition."""
    files = look.live
    small = files.is_data & (files.sizes < target * SMALL_SHARE)
    if not small.any():
        return 0
    _, number = np.unique(files.partition[small], return_inverse=True)
    counts = np.bincount(number)
    sizes = np.bincount(number, weights=files.sizes[small].astype(np.float64))
    return int(np.maximum(counts - np.maximum(np.ceil(sizes / target), 1), 0).sum())


def expirable(facts: Facts, *, keep: Collection[int]) -> int:
    """How many snapshots an expiry would take."""
    limit, metadata = facts.guards.older_than, facts.look.metadata
    if limit is None:
        return 0
    history = metadata.history
    spared = {one.snapshot_id for one in history[: facts.guards.min_snapshots]}
    spared |= set(metadata.refs.values()) | set(keep)
    if metadata.current is not None:
        spared.add(metadata.current.snapshot_id)
    return sum(
        committed_at(one) < limit and one.snapshot_id not in spared for one in metadata.snapshots
    )


def _done_before(facts: Facts) -> str | None:
    current = facts.look.metadata.current
    for one in facts.activity.earlier:
        if one.state == "verified" and one.dedupe_key == facts.action.dedupe_key:
            is_same = current is not None and one.result_snapshot_id == current.snapshot_id
            when = f"{one.started_at:%Y-%m-%d %H:%M}"
            return f"It was done {when} and the table did not change since" if is_same else None
    return None


def _compact(facts: Facts) -> str | None:
    metrics = facts.look.metrics
    target = _option(facts.action.plan, "target-file-size-bytes")
    if metrics.delete_files or compaction_gain(facts.look, target):
        return None
    return (
        f"Its {metrics.data_files} files are as few as files of {target // 2**20} MiB can be, "
        "and it has no deletes to merge"
    )


def _layout(facts: Facts) -> str | None:
    metrics = facts.look.metrics
    if not metrics.data_files:
        return "The table has no files"
    wanted = str(facts.action.plan.stages[-1].arguments["sort_order"]).replace("`", "")
    is_same = metrics.sort_order == wanted and metrics.unsorted_share == 0
    if not is_same or _compact(facts) is None:
        return None
    return f"All files are sorted by {wanted} already"


def _set_order(facts: Facts) -> str | None:
    wanted = str(facts.action.plan.stages[0].arguments["sort_order"]).replace("`", "")
    if facts.look.metrics.sort_order != wanted:
        return None
    return f"Writers are asked for {wanted} already"


def _expire(facts: Facts) -> str | None:
    if expirable(facts, keep=()):
        return None
    return (
        f"Of {facts.look.metrics.snapshots} snapshots none is old enough: the newest "
        f"{facts.guards.min_snapshots} and those younger than {facts.settings.keep_snapshots} stay"
    )


def _manifests(facts: Facts) -> str | None:
    metadata, manifests = facts.look.metadata, facts.look.reading.manifests
    target = int(metadata.properties.get("commit.manifest.target-size-bytes", _MANIFEST_TARGET))
    sizes: dict[tuple[int, int], int] = {}
    for one in manifests:
        key = (one.spec_id, one.content)
        sizes[key] = sizes.get(key, 0) + one.length
    needed = sum(-(-size // max(1, target)) for size in sizes.values())
    if len(manifests) > max(needed, 1):
        return None
    return f"Its {len(manifests)} manifests are as few as they can be"


def _position_deletes(facts: Facts) -> str | None:
    metrics = facts.look.metrics
    if metrics.mergeable_delete_files:
        return None
    return (
        f"It has {metrics.position_delete_files} files of position deletes, no two of the same "
        "data file or partition: there is nothing to put together"
    )


def _orphans(_: Facts) -> str | None:
    return None  # only the listing can tell; the job says when there was none


_NOTHING_TO_DO: dict[Kind, Callable[[Facts], str | None]] = {
    Kind.COMPACT: _compact,
    Kind.SORT: _layout,
    Kind.ZORDER: _layout,
    Kind.HILBERT: _layout,
    Kind.SET_SORT_ORDER: _set_order,
    Kind.EXPIRE_SNAPSHOTS: _expire,
    Kind.REMOVE_ORPHANS: _orphans,
    Kind.REWRITE_MANIFESTS: _manifests,
    Kind.REWRITE_POSITION_DELETES: _position_deletes,
}


def _option(plan: Plan, name: str) -> int:
    for stage in plan.stages:
        if name in stage.arguments.get("options", {}):
            return int(stage.arguments["options"][name])
    return 0
