"""Which tables the layout agent takes up, in which order."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from agents.layout import run_once
from agents.watch import Lease
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.layout import show_layout
from tests.factories import NOW, lake_table

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.config import Config
    from lakehouse_core.store.owner import OwnerStore

TABLES = 12


@pytest.fixture
def read_tables(store: OwnerStore, demo_config: Config) -> list[str]:
    """Tables that are in no catalog any more, so that no look succeeds; the largest are our own."""
    own = demo_config.pipeline
    ours = [f"{own.catalog}.{own.namespace}.t{n}" for n in range(3)]
    theirs = [f"lake.demo.t{n:02}" for n in range(TABLES)]
    store.upsert(
        "lake_table", to_arrow("lake_table", [lake_table(table_id=t) for t in ours + theirs])
    )
    used = [
        {"day": NOW.date(), "table_name": table, "column_name": "id", "role": "filter_eq"}
        | {"engine_id": "trino", "runs": 1, "bytes_scanned": 1_000 - place}
        for place, table in enumerate(ours + theirs)
    ]
    store.upsert("usage_day", pa.Table.from_pylist(used))
    return theirs


def _looked(store: OwnerStore) -> dict[str, datetime]:
    rows = store.read("SELECT * FROM layout_look").to_pylist()
    return {row["table_id"]: row["looked_at"] for row in rows}


@pytest.mark.slow
def test_every_table_has_its_turn_though_none_can_be_read(
    store: OwnerStore, demo_config: Config, read_tables: list[str]
) -> None:
    each = demo_config.layout.tables_per_run
    for number in range(3):
        now = NOW + number * demo_config.layout.every
        found = run_once(store, demo_config, lambda at=now: at, Lease(), lambda: False)
        assert found.rows == 0
        assert found.error is not None
        assert sorted(_looked(store)) == read_tables[: (number + 1) * each]
    # The last run had room for some of the first again.
    assert [t for t, at in _looked(store).items() if at == NOW] == read_tables[3:each]


@pytest.mark.slow
def test_failed_look_is_told_and_waits_for_the_others(
    store: OwnerStore, demo_config: Config, read_tables: list[str]
) -> None:
    run_once(store, demo_config, lambda: NOW, Lease(), lambda: False)
    seen = show_layout(store, read_tables[0])
    assert seen.failed_at == NOW
    assert "does not exist" in str(seen.failure)
    before = _looked(store)
    run_once(store, demo_config, lambda: NOW + timedelta(minutes=5), Lease(), lambda: False)
    after = _looked(store)
    assert {table: after[table] for table in before} == before
    assert len(after) == 2 * len(before)
