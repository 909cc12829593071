"""Iceberg's own actions with a moment of ours right before their commit.

An action plans, writes and commits in one call. Given the table of a transaction it commits into
the transaction; then the lease is asked for once more, and only then the transaction is committed.

Iceberg 1.12 allows that for manifests, position deletes and dangling deletes. `rewriteDataFiles`
scans its table, and the table of a transaction cannot be scanned: see `reordered`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_jobs.maintenance.table import LakeTable


def commit_fenced(
    transaction: Any,
    *,
    check: Callable[[], None],
    may_live: Callable[[Exception], bool],
    discard: Callable[[], None],
) -> None:
    """Commit a transaction if the lease still holds; what it wrote goes when it was not committed.

    Args:
        transaction: Iceberg's, with all that is to be committed.
        check: raises when nothing may be committed any more.
        may_live: whether a commit that raised may have happened all the same.
        discard: deletes what the transaction wrote.
    """
    try:
        check()
    except BaseException:
        discard()
        raise
    try:
        transaction.commitTransaction()
    except Exception as error:
        if not may_live(error):
            discard()
        raise


def written_files(table: LakeTable, transaction: Any) -> list[str]:
    """The files that only the snapshots of an open transaction refer to: those they added."""
    io = table.java.io()
    known = {one.snapshotId() for one in _iterate(table.java.snapshots())}
    found: set[str] = set()
    for snapshot in _iterate(transaction.table().snapshots()):
        if snapshot.snapshotId() in known:
            continue
        found.add(str(snapshot.manifestListLocation()))
        found |= {
            str(one.path())
            for one in _iterate(snapshot.allManifests(io))
            if one.snapshotId() == snapshot.snapshotId()
        }
        found |= {str(file.location()) for file in _iterate(snapshot.addedDeleteFiles(io))}
    return sorted(found)


def _iterate(found: Any) -> Any:
    iterator = found.iterator()
    while iterator.hasNext():
        yield iterator.next()
