"""A real store that nobody serves, and a clock that stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW
from tests.stores import emptied
from tests.ui.scenario import rows_of

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from lakehouse_core.store.owner import OwnerStore
    from lakehouse_core.store.port import TelemetryStore


class Shelf:
    """A store with a short way to put records in."""

    def __init__(self, store: TelemetryStore) -> None:
        self.store = store

    def add(self, table: str, *records: object) -> None:
        self.store.upsert(table, to_arrow(table, records))

    def add_rows(self, table: str, *rows: dict[str, Any]) -> None:
        self.store.upsert(table, rows_of(table, list(rows)))

    def read(self, sql: str, **params: Any) -> pa.Table:
        return self.store.read(sql, **params)

    def upsert(self, table: str, rows: pa.Table) -> int:
        return self.store.upsert(table, rows)

    def close(self) -> None:
        self.store.close()


@pytest.fixture
def store(shared_store: OwnerStore) -> Shelf:
    return Shelf(emptied(shared_store))


def clock() -> datetime:
    return NOW
