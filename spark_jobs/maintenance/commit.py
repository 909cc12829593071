"""Replacing files by new ones in one commit, with Iceberg's own commit manager.

It validates from the snapshot that was planned on and keeps that snapshot's sequence number for
the new files: a row-level delete that came meanwhile fails the commit, an equality delete that
came meanwhile still applies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spark_jobs.maintenance.groups import Rewritten
    from spark_jobs.maintenance.table import LakeTable


def commit_groups(
    table: LakeTable, snapshot_id: int, groups: Sequence[Rewritten], properties: Mapping[str, str]
) -> None:
    """Commit rewritten groups; their new files are set in Java."""
    manager = table.iceberg.actions.RewriteDataFilesCommitManager(
        table.java, snapshot_id, True, dict(properties), "main"
    )
    together = table.jvm.java.util.HashSet()
    for group in groups:
        together.add(group.java)
    manager.commitFileGroups(together)


def roll_back(table: LakeTable, snapshot_id: int, parent_id: int) -> bool:
    """Take main back to the parent of a snapshot; False when somebody committed on top of it.

    Compare and swap on the metadata: a plain rollback would be applied again on top of a commit
    that came in between, and lose it.
    """
    operations = table.java.operations()
    base = operations.refresh()
    current = base.currentSnapshot()
    if current is None or current.snapshotId() != snapshot_id:
        return False
    metadata = table.iceberg.TableMetadata
    updated = metadata.buildFrom(base).setBranchSnapshot(parent_id, "main").build()
    try:
        operations.commit(base, updated)
    except Exception as error:
        if "CommitFailedException" in str(error):
            return False
        raise
    return True
