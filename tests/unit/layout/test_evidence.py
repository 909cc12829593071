"""Which conditions of real texts count, and what is said of the others."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakehouse_core.catalog.metadata import TableMetadata
from lakehouse_core.catalog.schema import Field
from lakehouse_core.layout.evidence import read_workload, understand
from lakehouse_core.layout.usable import Columns
from lakehouse_core.layout.workload import columns_tested, from_json, to_json
from lakehouse_core.sql.condition import ALWAYS, ColumnTest
from lakehouse_core.sql.inspector import Inspector
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, query_event
from tests.stores import new_store

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore

TABLE = "lake.demo.t"
SELECT = "SELECT count(*) FROM t WHERE "
FIELDS = {
    "id": "long",
    "region": "string",
    "at": "timestamptz",
    "day": "date",
    "amount": "decimal(9, 2)",
    "place": "struct<city: string>",
    "shape": "geometry",
    "quiet": "string",
}


def metadata(**changes: Any) -> TableMetadata:
    fields = tuple(
        Field(n, name, kind, is_column=True) for n, (name, kind) in enumerate(FIELDS.items(), 1)
    )
    return replace(
        TableMetadata(
            location="file:/m.json",
            size_bytes=1,
            table_uuid="u",
            format_version=2,
            snapshots=(),
            current=None,
            fields=(*fields, Field(99, "place.city", "string", is_column=False)),
            partition_names={},
            sort_order=None,
            properties={"write.metadata.metrics.column.quiet": "none"},
        ),
        **changes,
    )


def text(sql: str, template: str = "t1", **more: Any) -> dict[str, Any]:
    return {
        "template_id": template,
        "sql_text": sql,
        "dialect": "trino",
        "default_catalog": "lake",
        "default_namespace": "demo",
        "runs": 1,
        "is_frequent": True,
        "other_runs": None,
    } | more


def understood(sql: str) -> Any:
    columns = Columns.of(metadata())
    return understand(TABLE, columns, [text(sql)], {"t1": 5}, Inspector())


def columns_used(sql: str) -> set[str]:
    scans = understood(sql).scans.get("t1", ())
    return {column for scan in scans for column in columns_tested(scan.condition)}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id = 5", {"id"}),
        ("id BETWEEN 1 AND 3 AND region = 'eu'", {"id", "region"}),
        ("region LIKE 'eu-%'", {"region"}),
        ("region IS NULL", {"region"}),
        ("id IN (1, 2, 3)", {"id"}),
        ("id = 1 OR id = 7", {"id"}),
        ("amount >= 10.5", {"amount"}),
        ("day = DATE '2026-01-01'", {"day"}),
        ("date(at) = DATE '2026-01-01'", {"at"}),
        ("CAST(at AS DATE) BETWEEN DATE '2026-01-01' AND DATE '2026-01-03'", {"at"}),
        ("date_trunc('month', day) >= DATE '2026-01-01'", {"day"}),
        ("date(at) IN (DATE '2026-01-01', DATE '2026-02-01') OR id = 3", {"at", "id"}),
    ],
)
def test_condition_that_bounds_decide_is_used(condition: str, expected: set[str]) -> None:
    assert columns_used(SELECT + condition) == expected


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("year(at) = 2026", "wrapped in YEAR"),
        ("date(at) <> DATE '2026-01-01'", "wrapped in CAST AS DATE"),
        ("date(region) = DATE '2026-01-01'", "wrapped in CAST AS DATE"),
        ("date_trunc('fortnight', at) = DATE '2026-01-01'", "wrapped in DATE_TRUNC"),
        ("lower(region) = 'eu'", "wrapped in LOWER"),
        ("id = ?", "only known when the query runs"),
        ("gone = 5", "dropped or renamed"),
        ("quiet = 'x'", "keep no bounds"),
        ("place.city = 'Ulm'", "nested"),
        ("shape = 'x'", "no order"),
        ("id = 1 OR (at > TIMESTAMP '2026-01-01 00:00:00' OR gone = 3)", "dropped or renamed"),
        ("region LIKE '%eu'", "cannot decide like"),
        ("region <> 'eu'", "negated"),
        ("day = 'garbage'", "no date"),
        ("id = 1 OR lower(region) = 'eu'", "may matter all the same"),
        pytest.param(
            f"id IN ({', '.join(map(str, range(10_000)))})", "10,000 values", marks=pytest.mark.slow
        ),
    ],
)
def test_condition_that_spares_nothing_is_listed_with_its_reason(
    condition: str, reason: str
) -> None:
    found = understood(SELECT + condition)
    assert found.scans["t1"][0].condition == ALWAYS
    assert any(reason in one.reason for one in found.unusable), found.unusable
    assert all(one.runs == 5 for one in found.unusable)
    assert (
        len({one.reason for one in found.unusable if one.column == found.unusable[0].column}) == 1
    )


@pytest.mark.parametrize(
    ("dialect", "condition", "expected"),
    [
        ("trino", "at >= current_timestamp - interval '7' day", NOW - timedelta(days=7)),
        ("spark", "at >= current_timestamp() - interval 7 days", NOW - timedelta(days=7)),
        ("duckdb", "at >= now() - interval 7 day", NOW - timedelta(days=7)),
        ("trino", "day = current_date", NOW.date()),
        ("spark", "day >= date_sub(current_date(), 7)", NOW.date() - timedelta(days=7)),
    ],
)
def test_rolling_window_is_taken_as_of_the_run(dialect: str, condition: str, expected: Any) -> None:
    ran = text(SELECT + condition, dialect=dialect, ran_at=NOW)
    columns, inspector = Columns.of(metadata()), Inspector()
    found = understand(TABLE, columns, [ran], {"t1": 5}, inspector)
    (scan,) = found.scans["t1"]
    assert isinstance(scan.condition, ColumnTest)
    assert scan.condition.values == (expected,)
    assert found.unusable == []
    # The next run of the same text has a window of its own.
    later = ran | {"ran_at": NOW + timedelta(days=3)}
    (again,) = understand(TABLE, columns, [later], {"t1": 5}, inspector).scans["t1"]
    assert isinstance(again.condition, ColumnTest)
    assert again.condition.values == (expected + timedelta(days=3),)


def test_rolling_window_of_a_run_at_an_unknown_time_is_not_usable() -> None:
    found = understood(SELECT + "day = current_date")
    assert found.scans["t1"][0].condition == ALWAYS
    assert "only known when the query runs" in found.unusable[0].reason


def test_table_read_twice_keeps_two_conditions() -> None:
    found = understood("SELECT 1 FROM t WHERE id = 1 UNION ALL SELECT 2 FROM t WHERE id = 2")
    assert len(found.scans["t1"]) == 2
    assert sum(scan.weight for scan in found.scans["t1"]) == pytest.approx(2.0)


def test_text_nobody_understands_gives_no_scan() -> None:
    assert understood("SELEC nonsense FROM").scans == {}


@pytest.mark.slow
def test_workload_is_read_back_from_its_json(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        _fill(store)
        found = read_workload(
            store, TABLE, Columns.of(metadata()), NOW - timedelta(days=30), NOW + timedelta(hours=1)
        )
    again = from_json(to_json(found))
    assert again.conditions == found.conditions
    assert [one.readers for one in again.patterns] == [one.readers for one in found.patterns]


def test_readers_have_their_engines_and_their_literals(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        _fill(store)
        found = read_workload(
            store, TABLE, Columns.of(metadata()), NOW - timedelta(days=30), NOW + timedelta(hours=1)
        )
    (pattern,) = found.patterns
    assert {one.engine_id: one.runs for one in pattern.readers} == {"trino": 30, "duckdb": 10}
    assert sum(scan.weight for scan in pattern.scans) == pytest.approx(1.0)
    often = max(pattern.scans, key=lambda scan: scan.weight)
    assert often.condition == ColumnTest("id", "=", (7,))
    assert often.weight == pytest.approx(0.5)
    # Twenty texts ran once each: some stand for all of them.
    assert len(pattern.scans) < 25


def _fill(store: OwnerStore) -> None:
    inspector = Inspector()
    template = inspector.fingerprint(SELECT.replace("FROM t", f"FROM {TABLE}") + "id = 7", "trino")
    events = []
    for number in range(40):
        value = 7 if number < 20 else number
        events.append(
            query_event(
                engine_id="trino" if number % 4 else "duckdb",
                query_id=f"q{number}",
                dialect="trino",
                template_id=template.template_id,
                sql_text=SELECT.replace("FROM t", f"FROM {TABLE}") + f"id = {value}",
                submitted_at=NOW - timedelta(hours=number + 1),
            )
        )
    store.upsert("query_event", to_arrow("query_event", events))
    known = {"template_id": [template.template_id]}
    store.upsert(
        "query_template",
        pa.table(
            known
            | {
                "dialect": ["trino"],
                "template": ["SELECT …"],
                "statement_kind": ["select"],
                "parse_error": pa.nulls(1, pa.string()),
                "seen_at": [NOW],
                "parse_reason": pa.nulls(1, pa.string()),
            }
        ),
    )
    used = {"table_name": [TABLE], "column_name": ["id"], "role": ["filter_eq"]}
    store.upsert("column_usage", pa.table(known | used))
