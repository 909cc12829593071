"""Which files are rewritten together: Iceberg's own planner decides, by its own rules.

A group is of one partition. Files below 75 % of the target size are candidates, a group of too few
is left alone, files with many deletes are taken whatever their size (`min-input-files`,
`delete-file-threshold`, … are options of the stage). `max-file-size-bytes` says above which size
files are cut up; Iceberg derives from it how large a new file may become as well, half way between
target and maximum, which is not followed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_jobs.maintenance.table import LakeTable

TARGET = "target-file-size-bytes"
# What Iceberg's own default comes to: half way from the target to 180 % of it.
MOST_SHARE = 1.4


class Rewritten(Protocol):
    """What a commit needs of a group."""

    @property
    def java(self) -> Any:
        """Iceberg's `RewriteFileGroup`."""


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one partition that become one or a few new files.

    Attributes:
        java: Iceberg's `RewriteFileGroup`.
        files: its data files, as REST answers describe them.
        has_deletes: some of their rows are deleted.
        split_bytes: how many bytes of input make one new file.
        most_bytes: a new file is not larger than this.
    """

    java: Any
    files: list[dict[str, Any]]
    has_deletes: bool
    split_bytes: int
    most_bytes: int

    @property
    def input_bytes(self) -> int:
        """What is read."""
        return sum(int(one["file-size-in-bytes"]) for one in self.files)


def plan_groups(
    table: LakeTable, snapshot_id: int, options: Mapping[str, str], files: Any
) -> list[Group]:
    """The groups of a snapshot.

    Args:
        table: the table; its handle knows the snapshot.
        snapshot_id: what is planned on, and validated from at the commit.
        options: of the planner.
        files: an Iceberg expression that candidates fulfil.
    """
    planner = table.iceberg.actions.BinPackRewriteFilePlanner(table.java, files, snapshot_id, False)
    planner.init(dict(options))
    chosen = list(_iterate(planner.plan().groups()))
    tasks = table.jvm.java.util.ArrayList()
    counts = []
    for group in chosen:
        own = group.fileScanTasks()
        tasks.addAll(own)
        counts.append(own.size())
    described = table.files_of(tasks)
    has_deletes = _has_delete_manifests(table, snapshot_id)
    groups, start = [], 0
    for group, count in zip(chosen, counts, strict=True):
        groups.append(
            Group(
                java=group,
                files=described[start : start + count],
                has_deletes=has_deletes and _any_deletes(group),
                split_bytes=group.inputSplitSize(),
                most_bytes=most_bytes(group.maxOutputFileSize(), options),
            )
        )
        start += count
    return groups


def most_bytes(planned: int, options: Mapping[str, str]) -> int:
    """How large a new file may become: what the planner says, and not much beyond the target."""
    target = options.get(TARGET)
    return planned if target is None else min(planned, int(int(target) * MOST_SHARE))


def _iterate(found: Any) -> Any:
    iterator = found.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _has_delete_manifests(table: LakeTable, snapshot_id: int) -> bool:
    snapshot = table.java.snapshot(snapshot_id)
    return not snapshot.deleteManifests(table.java.io()).isEmpty()


def _any_deletes(group: Any) -> bool:
    # A task counts its data file and the delete files that go with it.
    return any(task.filesCount() > 1 for task in group.fileScanTasks())
