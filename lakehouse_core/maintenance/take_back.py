"""An action whose proof failed is taken back: the table is as before it, if nobody wrote since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import CatalogError
from lakehouse_core.maintenance.verify import operation_snapshots

if TYPE_CHECKING:
    from lakehouse_core.catalog.metadata import TableMetadata
    from lakehouse_core.domain.maintenance import Action
    from lakehouse_core.maintenance.look import Lookout


def take_back(action: Action, lookout: Lookout) -> str:
    """Roll back what an action committed; says in words what the table is now."""
    try:
        metadata = lookout.metadata(action.table_id)
        ours = operation_snapshots(metadata, action.operation_id)
        if not ours:
            return "It left no snapshot that could be taken back"
        base = _before(metadata, ours)
        if base is not None and lookout.roll_back(action.table_id, head=ours[0], to=base):
            return f"The table was taken back to snapshot {base}"
    except CatalogError as error:
        return f"It was NOT taken back: {error}"
    return "It was NOT taken back, because another writer has committed since"


def _before(metadata: TableMetadata, ours: list[int]) -> int | None:
    """The snapshot before all of ours; None when they are not the newest of the history.

    Args:
        metadata: of the table.
        ours: snapshots of one operation, newest first.
    """
    line = [one.snapshot_id for one in metadata.history]  # newest first
    is_newest = line[: len(ours)] == ours
    return line[len(ours)] if is_newest and len(line) > len(ours) else None
