"""Rules about the table: it is the one that was approved, and it can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.catalog.contents import losses
from lakehouse_core.maintenance.rules.base import Finding

if TYPE_CHECKING:
    from lakehouse_core.maintenance.rules.base import Facts


class SameTable:
    """The table is the very one that was approved, not another of the same name."""

    id = "same-table"

    def evaluate(self, facts: Facts) -> Finding | None:
        """See `Rule`."""
        plan, found = facts.action.plan, facts.look.metadata.table_uuid
        if found == plan.table_uuid:
            return None
        return Finding(
            rule=self.id,
            verdict="void",
            message=f"{plan.table_id} was dropped and made anew since it was approved "
            f"(table {plan.table_uuid}, now {found})",
        )


class BaseSnapshot:
    """The snapshot the plan was made from is part of the table's history."""

    id = "base-snapshot"

    def evaluate(self, facts: Facts) -> Finding | None:
        """See `Rule`."""
        base, metadata = facts.action.plan.base_snapshot_id, facts.look.metadata
        if base is None or any(one.snapshot_id == base for one in metadata.history):
            return None
        is_kept = any(one.snapshot_id == base for one in metadata.snapshots)
        what = (
            "is no ancestor of the current one: the table was rolled back" if is_kept
            else "was expired"
        )  # fmt: skip
        return Finding(
            rule=self.id,
            verdict="void",
            message=f"Snapshot {base}, from which this was planned, {what}. It is planned anew "
            "when the table is looked at next",
        )


class Readable:
    """Every file that the table reaches is there: what cannot be read is not cleaned up."""

    id = "readable"

    def evaluate(self, facts: Facts) -> Finding | None:
        """See `Rule`."""
        if facts.look.files is None:
            return None
        lost = losses(facts.look.files)
        if not lost:
            return None
        first = lost[0]
        what = "is missing" if first.found_bytes is None else (
            f"has {first.found_bytes} bytes instead of {first.recorded_bytes}"
        )  # fmt: skip
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        return Finding(
            rule=self.id,
            verdict="refuse",
            message=f"{first.location} {what}{more}: nothing is deleted from a table that is "
            "damaged already",
        )
