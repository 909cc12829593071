"""Taking a table back to an earlier snapshot, unless somebody wrote in between."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import CatalogError

if TYPE_CHECKING:
    from lakehouse_core.catalog.port import LakeCatalog
    from lakehouse_core.domain.table import TableName

MAIN = "main"


def roll_back(catalog: LakeCatalog, table: TableName, *, head: int, to: int) -> bool:
    """Make an earlier snapshot the current one; False when `head` is not current any more.

    The catalog compares and swaps: what another writer commits in this very moment is not lost.

    Raises:
        CatalogError: the catalog does not answer, or refuses it for another reason; says why.
    """
    from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415 the driver
    from pyiceberg.table.refs import SnapshotRefType  # noqa: PLC0415 as above
    from pyiceberg.table.update import (  # noqa: PLC0415 as above
        AssertRefSnapshotId,
        AssertTableUUID,
        SetSnapshotRefUpdate,
    )

    try:
        with closing(catalog.iceberg()) as opened:
            found = opened.load_table((*table.namespace, table.name))
            ref = found.metadata.refs[MAIN]
            update = SetSnapshotRefUpdate(
                ref_name=MAIN,
                type=SnapshotRefType.BRANCH,
                snapshot_id=to,
                max_ref_age_ms=ref.max_ref_age_ms,
                max_snapshot_age_ms=ref.max_snapshot_age_ms,
                min_snapshots_to_keep=ref.min_snapshots_to_keep,
            )
            requirements = (
                AssertTableUUID(uuid=found.metadata.table_uuid),
                AssertRefSnapshotId(ref=MAIN, snapshot_id=head),
            )
            opened.commit_table(found, requirements, (update,))
    except CommitFailedException:
        return False
    except Exception as error:
        # The driver lets through whatever its catalog and its file system raise.
        raise CatalogError(f"Table {table} could not be rolled back: {error}") from error
    return True
