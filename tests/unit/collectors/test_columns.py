"""The lake's columns for whoever reads texts: asked now and then, kept while the store is away."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from collectors.columns import ASK_EVERY, LakeColumns
from lakehouse_core.domain.errors import StoreUnavailableError
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, lake_table
from tests.stores import emptied

if TYPE_CHECKING:
    import pyarrow as pa

    from lakehouse_core.store.owner import OwnerStore

T = ("lake", "demo", "t")


class Flaky:
    """A store that can be away."""

    def __init__(self, store: OwnerStore) -> None:
        self.store = store
        self.is_away = False

    def read(self, sql: str, **params: Any) -> pa.Table:
        if self.is_away:
            raise StoreUnavailableError("away")
        return self.store.read(sql, **params)

    def upsert(self, table: str, rows: pa.Table) -> int:
        return self.store.upsert(table, rows)

    def close(self) -> None:
        self.store.close()


@pytest.fixture
def store(shared_store: OwnerStore) -> Flaky:
    return Flaky(emptied(shared_store))


def collect(store: Flaky, **given: Any) -> None:
    store.upsert("lake_table", to_arrow("lake_table", [lake_table(**given)]))


def test_columns_are_asked_anew_after_a_while_and_kept_while_the_store_is_away(
    store: Flaky,
) -> None:
    now: list[datetime] = [NOW]
    columns = LakeColumns(store, lambda: now[0])
    assert columns() is None
    collect(store, table_id="lake.demo.t", columns=("id", "Name"))
    assert columns() is None
    now[0] += ASK_EVERY
    known = columns()
    assert known is not None
    assert known.columns(T) == ("id", "name")
    store.is_away = True
    now[0] += ASK_EVERY
    assert columns() is known
    store.is_away = False
    collect(store, table_id="lake.demo.t", columns=("id",), dropped_at=NOW)
    now[0] += ASK_EVERY + timedelta(seconds=1)
    assert columns() is None
