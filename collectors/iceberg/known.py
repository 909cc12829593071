"""What the store knows of the lake's tables: the state a sweep compares the catalogs with."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.table import LakeTable

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore

_KNOWN = """
SELECT t.*, m.latest_snapshot_at
FROM lake_table t
LEFT JOIN table_metrics m
  ON m.table_id = t.table_id AND m.snapshot_id = coalesce(t.current_snapshot_id, 0)
"""


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table as the store has it, and its newest snapshot then."""

    table: LakeTable
    latest_snapshot_at: datetime | None


def known_tables(store: TelemetryStore) -> dict[str, KnownTable]:
    """All tables the store has, dropped ones too, by id.

    Raises:
        StoreUnavailableError: the owner of the store cannot be reached.
    """
    names = [field.name for field in fields(LakeTable)]
    return {
        row["table_id"]: KnownTable(_table(row, names), row["latest_snapshot_at"])
        for row in store.read(_KNOWN).to_pylist()
    }


def _table(row: dict[str, Any], names: list[str]) -> LakeTable:
    columns = row["columns"]
    values = {name: row[name] for name in names}
    return LakeTable(**values | {"columns": None if columns is None else tuple(columns)})
