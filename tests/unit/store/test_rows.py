"""Records become rows with the column types of the migrations."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakehouse_core.domain.errors import StoreError
from lakehouse_core.domain.query import QueryEvent, QueryStatus
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.schema import schemas
from lakehouse_core.store.tables import TABLES
from tests import factories

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore

RECORDS = {
    "agent_run": factories.agent_run,
    "dead_letter": factories.dead_letter,
    "engine_probe": factories.engine_probe,
    "health": factories.table_health,
    "lake_table": factories.lake_table,
    "query_event": factories.query_event,
    "snapshot_commit": factories.snapshot_commit,
    "table_metrics": factories.table_metrics,
    "watermark": factories.watermark,
}


@pytest.mark.parametrize("table", sorted(RECORDS))
def test_a_record_of_every_kind_can_be_stored_and_read_back(store: OwnerStore, table: str) -> None:
    rows = to_arrow(table, [RECORDS[table]()])
    assert store.upsert(table, rows) == 1
    found = store.read(f"SELECT * FROM {table}")  # noqa: S608 names from above
    assert found.to_pylist() == rows.to_pylist()
    assert found.schema.types == rows.schema.types


def test_the_fields_of_a_query_event_are_the_columns_of_its_table() -> None:
    # `known_by` is the store's own: from whom each value comes.
    names = [field.name for field in fields(QueryEvent)]
    assert names == [name for name in schemas()["query_event"].names if name != "known_by"]


def test_every_table_has_its_key_columns_and_they_are_required() -> None:
    for name, spec in TABLES.items():
        for column in (*spec.key, *spec.noise, spec.revision, spec.retention_time):
            if column is not None:
                assert column in schemas()[name].names, (name, column)
        assert not any(schemas()[name].field(key).nullable for key in spec.key), name


def test_times_are_utc_microseconds_wherever_they_come_from() -> None:
    east = timezone(timedelta(hours=2))
    event = factories.query_event(
        submitted_at=datetime(2026, 11, 16, 14, 0, 0, 123_456, tzinfo=east)
    )
    column = to_arrow("query_event", [event]).column("submitted_at")
    assert column.type == pa.timestamp("us", tz="UTC")
    assert column[0].as_py() == datetime(2026, 11, 16, 12, 0, 0, 123_456, tzinfo=UTC)


def test_enums_tuples_and_structures_become_plain_values() -> None:
    event = factories.query_event(
        status=QueryStatus.FAILED, tags=("a", "b"), snapshot_ids=(2**62, 1)
    )
    row = to_arrow("query_event", [event]).to_pylist()[0]
    assert (row["status"], row["tags"], row["snapshot_ids"]) == ("failed", ["a", "b"], [2**62, 1])
    health = to_arrow("health", [factories.table_health()]).to_pylist()[0]
    assert json.loads(health["contributors"])[0]["rule"] == "small_file_share"


def test_no_records_make_an_empty_table_with_all_columns() -> None:
    assert to_arrow("query_event", []).schema.names == schemas()["query_event"].names


def test_a_naive_time_is_refused() -> None:
    event = factories.query_event(submitted_at=datetime(2026, 11, 16))  # noqa: DTZ001 on purpose
    with pytest.raises(StoreError, match="has no zone"):
        to_arrow("query_event", [event])


def test_a_value_that_does_not_fit_names_its_column() -> None:
    with pytest.raises(StoreError, match=r"query_event\.bytes_scanned"):
        to_arrow("query_event", [factories.query_event(bytes_scanned=2**63)])


def test_a_field_the_table_has_not_is_named() -> None:
    @dataclass(frozen=True)
    class Odd:
        source: str
        colour: str

    with pytest.raises(StoreError, match="watermark has no column colour"):
        to_arrow("watermark", [Odd("a", "red")])


def test_an_unknown_table_is_named_with_the_known_ones() -> None:
    with pytest.raises(StoreError, match=r"no table 'queries'.*query_event"):
        to_arrow("queries", [])


def test_half_a_character_costs_that_character_and_no_other_row() -> None:
    events = [
        factories.query_event(query_id="torn", sql_text="SELECT 'a\ud800'", tags=("x\udfff",)),
        factories.query_event(query_id="whole", sql_text="SELECT '\U0001f600'"),
    ]
    rows = to_arrow("query_event", events).to_pylist()
    assert [row["sql_text"] for row in rows] == ["SELECT 'a\ufffd'", "SELECT '\U0001f600'"]
    assert rows[0]["tags"] == ["x\ufffd"]
