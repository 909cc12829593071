"""What every source promises, of the one that reads tables instead of queries."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agents.collect import CollectReport, read_watermark, run_once
from lakehouse_core.domain.errors import SourceUnavailableError
from lakehouse_core.store.tables import TABLES
from tests.contract.sources.iceberg_world import FILES, IcebergWorld
from tests.contract.sources.tallies import content, letters
from tests.factories import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.slow

TOTALS = """
SELECT (SELECT count(*) FROM lake_table WHERE error IS NULL) AS tables,
  (SELECT count(*) FROM snapshot_commit) AS commits,
  (SELECT sum(added_files)::BIGINT FROM snapshot_commit) AS added,
  (SELECT sum(data_files)::BIGINT FROM table_metrics JOIN lake_table USING (table_id)
    WHERE snapshot_id = current_snapshot_id) AS files
"""


@pytest.fixture
def lake(tmp_path: Path, store: OwnerStore) -> Iterator[IcebergWorld]:
    made = IcebergWorld(tmp_path, store)
    yield made
    made.close()


def collect(lake: IcebergWorld, store: OwnerStore) -> CollectReport:
    return run_once(lake.source(), store, lambda: NOW, timeout=timedelta(minutes=1))


def totals(store: OwnerStore) -> tuple[int, ...]:
    return tuple(store.read(TOTALS).to_pylist()[0].values())


def complete(tables: int, commits: int) -> tuple[int, ...]:
    return (tables, commits, commits * FILES, commits * FILES)


def test_tables_arrive_with_columns_metrics_and_commits(
    lake: IcebergWorld, store: OwnerStore
) -> None:
    for number in (1, 2, 3, 4, 1):
        lake.commit(number)
    assert collect(lake, store).error is None
    assert totals(store) == complete(4, 5)
    columns = store.read("SELECT DISTINCT columns FROM lake_table").to_pylist()
    assert columns == [{"columns": ["id", "region", "at"]}]


def test_collecting_again_changes_nothing(lake: IcebergWorld, store: OwnerStore) -> None:
    for number in range(4):
        lake.commit(number)
    assert collect(lake, store).rows > 0
    before = content(store)
    again = collect(lake, store)
    assert content(store) == before
    assert (again.rows, again.error) == (0, None)


def test_a_pull_without_a_watermark_yields_the_same_keys(
    lake: IcebergWorld, store: OwnerStore
) -> None:
    for number in range(4):
        lake.commit(number)
    batches = [batch for batch in lake.source().pull(None) if batch.rows]
    collect(lake, store)
    for batch in batches:
        for table, rows in batch.rows.items():
            if table != "lake_table":  # it says when the table was looked at
                assert store.upsert(table, rows) == 0
    assert totals(store) == complete(4, 4)


def test_only_what_is_new_is_taken_the_next_time(lake: IcebergWorld, store: OwnerStore) -> None:
    for number in range(3):
        lake.commit(number)
    collect(lake, store)
    changed = lake.commit(1)
    batches = list(lake.source().pull(read_watermark(store, "iceberg")))
    pages = [b.rows["lake_table"].column("table_id") for b in batches if "lake_table" in b.rows]
    assert {str(key) for page in pages for key in page} == {changed}


def test_batches_in_another_order_and_twice_give_the_same_totals(
    lake: IcebergWorld, store: OwnerStore
) -> None:
    for number in range(7):
        lake.commit(number)
    batches = list(lake.source().pull(None))
    for batch in [*reversed(batches), *batches]:
        for table, rows in batch.rows.items():
            store.upsert(table, rows)
    assert totals(store) == complete(7, 7)


def test_a_bad_table_becomes_a_letter_and_stops_nothing(
    lake: IcebergWorld, store: OwnerStore
) -> None:
    lake.commit(1)
    lake.spoil()
    lake.commit(2)
    report = collect(lake, store)
    assert (report.error, report.dead_letters) == (None, 1)
    assert report.result.outcome == "partial"
    assert totals(store) == complete(2, 2)
    collect(lake, store)
    assert len(letters(store)) == 1


def test_a_catalog_that_is_gone_says_where_it_was_sought(
    lake: IcebergWorld, store: OwnerStore
) -> None:
    lake.commit(1)
    collect(lake, store)
    lake.vanish()
    with pytest.raises(SourceUnavailableError, match=re.escape(lake.place)):
        list(lake.source().pull(None))
    report = collect(lake, store)
    assert report.is_unreachable
    assert report.result.outcome == "failed"
    assert totals(store) == complete(1, 1)


def test_a_position_of_another_release_makes_it_read_all_tables_again(
    lake: IcebergWorld, store: OwnerStore
) -> None:
    lake.commit(1)
    collect(lake, store)
    watermark = read_watermark(store, "iceberg")
    assert watermark is not None
    foreign = type(watermark)(source="iceberg", position='{"v":1}', event_at=None, updated_at=NOW)
    batches = list(lake.source().pull(foreign))
    assert any("table_metrics" in batch.rows for batch in batches)
    assert batches[-1].watermark is not None
    assert batches[-1].watermark.position == watermark.position


def test_the_watermark_tells_the_newest_commit(lake: IcebergWorld, store: OwnerStore) -> None:
    lake.commit(1)
    report = collect(lake, store)
    newest = store.read("SELECT max(committed_at) AS at FROM snapshot_commit").to_pylist()[0]["at"]
    assert report.watermark == newest
    assert report.newest_event_age_seconds is not None


def test_it_fills_the_tables_it_says_it_fills(lake: IcebergWorld) -> None:
    lake.commit(1)
    source = lake.source()
    filled = {table for batch in source.pull(None) for table in batch.rows}
    assert filled == set(source.capabilities.tables) <= set(TABLES)
