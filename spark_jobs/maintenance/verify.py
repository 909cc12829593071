"""Are the rows after a rewrite those before? Our snapshot is compared with its parent.

Both are pinned, so whatever other writers append meanwhile does not matter. All rows of the
replaced and the new files are counted; the content of a sample is read and hashed (sample.py).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spark_jobs.maintenance.content import content_of
from spark_jobs.maintenance.report import Check
from spark_jobs.maintenance.sample import choose, why_not

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spark_jobs.maintenance.plan import Verify
    from spark_jobs.maintenance.sample import Sample
    from spark_jobs.maintenance.table import LakeTable, Snapshot

READING = {"file-open-cost": str(256 << 10)}


@dataclass(slots=True)
class _Side:
    """One of the two snapshots: tasks in Java, files in Python, in the same order."""

    tasks: Any
    files: list[dict[str, Any]]
    chosen: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def choose(self, others: set[str], *, is_split: bool) -> None:
        """Keep what the other side has not, by partition."""
        for place, file in enumerate(self.files):
            if file["file-path"] not in others:
                key = f"{file['spec-id']} {file.get('partition')}" if is_split else ""
                self.chosen[key].append(place)

    def paths(self) -> set[str]:
        return {file["file-path"] for file in self.files}

    def with_deletes(self) -> set[str]:
        """The files of which some rows are deleted."""
        # A task counts its data file and the delete files that go with it.
        return {
            file["file-path"]
            for task, file in zip(self.tasks, self.files, strict=True)
            if task.filesCount() > 1
        }

    def size(self, partition: str) -> int:
        return sum(int(self.files[n]["file-size-in-bytes"]) for n in self.chosen.get(partition, ()))

    def rows(self) -> int | None:
        """How many rows the manifests say; None when some are deleted."""
        places = [place for one in self.chosen.values() for place in one]
        if any(self.tasks.get(place).filesCount() > 1 for place in places):
            return None
        return sum(int(self.files[place]["record-count"]) for place in places)


def compare(table: LakeTable, snapshot: Snapshot, limits: Verify, seed: str) -> list[Check]:
    """The checks of one of our commits.

    Args:
        table: its handle knows the snapshot and its parent.
        snapshot: what we committed.
        limits: how much is read again.
        seed: which partitions are read when not all can be.
    """
    if snapshot.parent_id is None:
        return []
    before = _side(table, snapshot.parent_id)
    after = _side(table, snapshot.snapshot_id)
    specs = {one["spec-id"] for one in (*before.files, *after.files)}
    had, has = before.paths(), after.paths()
    if had == has:
        # Only deletes or manifests were rewritten: what is read of the same files must be the same.
        deleted = before.with_deletes() | after.with_deletes()
        had = has = had - deleted
    for side, others in ((before, has), (after, had)):
        side.choose(others, is_split=len(specs) == 1)
    return [*_counted(table, before, after), *_hashed(table, before, after, limits, seed)]


def _side(table: LakeTable, snapshot_id: int) -> _Side:
    tasks = table.tasks(snapshot_id)
    return _Side(tasks, table.files_of(tasks))


def _counted(table: LakeTable, before: _Side, after: _Side) -> list[Check]:
    expected, found = before.rows(), after.rows()
    everything = sorted({*before.chosen, *after.chosen})
    if expected is None:
        expected = _count(table, before, everything)
    if found is None:
        found = _count(table, after, everything)
    return [Check(name="row_count", expected=expected, found=found, ok=expected == found)]


def _hashed(
    table: LakeTable, before: _Side, after: _Side, limits: Verify, seed: str
) -> list[Check]:
    partitions = {*before.chosen, *after.chosen}
    if not partitions:
        return []
    sizes = {one: before.size(one) + after.size(one) for one in partitions}
    schema = table.metadata().schema["fields"]
    sample = choose(sizes, schema, limits, seed)
    if not sample.partitions:
        reason = why_not(sizes, limits)
        return [Check(name=sample.name, expected=reason, found=reason, ok=True)]
    expected = _content(table, before, sample)
    found = _content(table, after, sample)
    return [Check(name=sample.name, expected=expected, found=found, ok=expected == found)]


def _chosen_tasks(table: LakeTable, side: _Side, partitions: Iterable[str]) -> Any:
    tasks = table.jvm.java.util.ArrayList()
    for partition in partitions:
        for place in side.chosen.get(partition, ()):
            tasks.add(side.tasks.get(place))
    return tasks


def _count(table: LakeTable, side: _Side, partitions: list[str]) -> int:
    tasks = _chosen_tasks(table, side, partitions)
    if tasks.isEmpty():
        return 0
    with table.rows_of(tasks, READING) as (_, rows):
        return int(rows.count())


def _content(table: LakeTable, side: _Side, sample: Sample) -> str:
    tasks = _chosen_tasks(table, side, sample.partitions)
    if tasks.isEmpty():
        return "0 rows"
    with table.rows_of(tasks, READING) as (_, rows):
        content = content_of(rows, sample.columns)
    return f"{content.rows} rows {content.hash}"
