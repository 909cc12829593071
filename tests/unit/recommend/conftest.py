"""A real store with tables that are sick in known ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.schema import schema_of
from tests.factories import NOW, lake_table, table_metrics
from tests.stores import emptied

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from lakehouse_core.store.owner import OwnerStore


class Lake:
    """A store with a short way to say how a table is."""

    def __init__(self, store: OwnerStore) -> None:
        self.store = store
        self.now = NOW

    def clock(self) -> datetime:
        return self.now

    def table(self, name: str, **metrics: Any) -> None:
        """A table at its newest snapshot, as it was collected now."""
        table_id = f"lake.demo.{name}"
        values = {"snapshot_id": 1, "collected_at": self.now, **metrics, "table_id": table_id}
        seen = lake_table(
            table_id=table_id, seen_at=self.now, current_snapshot_id=values["snapshot_id"]
        )
        self.add("lake_table", seen)
        self.add("table_metrics", table_metrics(**values))

    def add(self, table: str, *records: object) -> None:
        self.store.upsert(table, to_arrow(table, records))

    def add_rows(self, table: str, *rows: dict[str, Any]) -> None:
        self.store.upsert(table, pa.Table.from_pylist(list(rows), schema=schema_of(table)))

    def template(self, template_id: str, table: str, kind: str = "select") -> None:
        """A template that reads a table."""
        self.add_rows(
            "query_template",
            {
                "template_id": template_id,
                "dialect": "trino",
                "template": f"SELECT {template_id}",
                "statement_kind": kind,
                "seen_at": self.now,
            },
        )
        self.add_rows(
            "template_table", {"template_id": template_id, "table_name": f"lake.demo.{table}"}
        )

    def wait(self, length: timedelta) -> None:
        self.now += length


@pytest.fixture
def lake(shared_store: OwnerStore) -> Lake:
    """The store, empty."""
    return Lake(emptied(shared_store))
