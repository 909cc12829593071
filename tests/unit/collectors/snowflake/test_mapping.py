from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.snowflake import mapping
from collectors.snowflake.texts import understood_rows
from collectors.understanding import Understanding
from tests.factories import NOW
from tests.unit.collectors.snowflake import rows
from tests.unit.collectors.snowflake.rows import SETTINGS, query

CONSOLE = "https://app.snowflake.com/org/one/#/compute/history/queries/"


def mapped(*given: dict[str, Any]) -> list[dict[str, Any]]:
    return mapping.to_queries(rows.queries(*given), CONSOLE).good.to_pylist()


def stored(*given: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    good = mapping.to_queries(rows.queries(*given), CONSOLE).good
    tables = understood_rows(good, SETTINGS, Understanding(), NOW)
    return {name: table.to_pylist() for name, table in tables.items()}


# --- queries -------------------------------------------------------------------------------------


def test_a_finished_query_has_every_figure_snowflake_tells() -> None:
    (row,) = stored(query())["query_event"]
    assert (row["engine_id"], row["status"], row["revision"]) == ("snowflake", "finished", 2)
    assert row["submitted_at"] == NOW
    assert row["started_at"] == NOW + timedelta(milliseconds=420)  # queued and compiled
    assert row["ended_at"] == NOW + timedelta(milliseconds=2_500)
    assert (row["queued_ms"], row["planning_ms"]) == (300.0, 120.0)
    assert (row["execution_ms"], row["elapsed_ms"]) == (2_080.0, 2_500.0)
    assert (row["bytes_scanned"], row["rows_returned"]) == (1_048_576, 42)
    assert (row["spilled_bytes"], row["bytes_written"]) == (1_024, 0)
    assert (row["user_name"], row["dialect"]) == ("ANA", "snowflake")
    assert row["engine_url"] == f"{CONSOLE}{row['query_id']}/detail"
    assert (row["origin"], row["statement_kind"]) == ("real", "select")
    assert row["template_id"]
    assert row["tags"] == [
        "warehouse=BI_WH",
        "warehouse_size=X-Small",
        "role=ANALYST",
        "query_type=SELECT",
        "cloud_services_credits=0.000123000",
        "scanned_from_cache_percent=25.5",
        "partitions_scanned=3",
        "partitions_total=40",
        "parameterized_hash=f00d",
    ]


def test_what_snowflake_does_not_tell_is_unknown() -> None:
    (row,) = stored(query(BYTES_SCANNED=None, WAREHOUSE_NAME=None, WAREHOUSE_SIZE=None))[
        "query_event"
    ]
    assert row["bytes_scanned"] is None
    assert row["cpu_ms"] is None
    assert row["rows_written"] is None
    assert not any(tag.startswith("warehouse") for tag in row["tags"])


@pytest.mark.parametrize(
    ("told", "code", "status", "error_class"),
    [
        ("SUCCESS", None, "finished", None),
        ("success", None, "finished", None),
        ("FAIL", "000904", "failed", None),
        ("FAIL", "000604", "cancelled", None),
        ("FAILED_WITH_ERROR", "2003", "failed", None),
        ("INCIDENT", "300010", "failed", "incident"),
        ("RUNNING", None, "running", None),
        ("BLOCKED", None, "running", None),
        ("QUEUED", None, "queued", None),
        ("RESUMING_WAREHOUSE", None, "queued", None),
    ],
)
def test_each_status_becomes_ours(
    told: str, code: str | None, status: str, error_class: str | None
) -> None:
    (row,) = mapped(query(EXECUTION_STATUS=told, ERROR_CODE=code, ERROR_MESSAGE="why"))
    assert (row["status"], row["error_class"]) == (status, error_class)
    is_over = status in ("failed", "cancelled")
    assert (row["error_code"], row["error_message"]) == ((code, "why") if is_over else (None, None))


def test_a_query_that_runs_has_no_end_though_snowflake_says_1970() -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    (row,) = mapped(query(EXECUTION_STATUS="RUNNING", END_TIME=epoch))
    assert row["ended_at"] is None
    (row,) = mapped(query(EXECUTION_STATUS="QUEUED", END_TIME=None))
    assert (row["started_at"], row["ended_at"]) == (None, None)


def test_a_write_has_rows_written_and_none_returned() -> None:
    (row,) = mapped(query(QUERY_TYPE="MERGE", ROWS_INSERTED=3, ROWS_UPDATED=4, ROWS_PRODUCED=1))
    assert (row["rows_written"], row["rows_returned"]) == (7, None)


@pytest.mark.parametrize(
    ("tag", "tags", "gateway_id"),
    [
        ("nightly", ["nightly"], None),
        ("", [], None),
        (None, [], None),
        ('{"app": "dbt", "run": 7}', ["app=dbt", "run=7"], None),
        ('{"a \\"b": "c"}', ['a "b=c'], None),
        ('["a", "b"]', ['["a", "b"]'], None),
        ('{"torn": ', ['{"torn": '], None),
        ('{"lakehelm_gateway_id": "g-1", "app": "bi"}', ["app=bi"], "g-1"),
    ],
)
def test_a_query_tag_becomes_tags(tag: str | None, tags: list[str], gateway_id: str | None) -> None:
    (row,) = mapped(query(QUERY_TAG=tag))
    ours = [one for one in row["tags"] if not one.startswith(_OWN_TAGS)]
    assert (ours, row["gateway_id"]) == (tags, gateway_id)


_OWN_TAGS = (
    "warehouse", "role=", "query_type=", "cloud_services", "scanned_from", "partitions_",
    "parameterized_hash=",
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"QUERY_ID": None}, "QUERY_ID"),
        ({"QUERY_ID": ""}, "QUERY_ID"),
        ({"START_TIME": None}, "START_TIME"),
        ({"EXECUTION_STATUS": "PERPLEXED"}, "PERPLEXED"),
        ({"EXECUTION_STATUS": None}, "EXECUTION_STATUS.*NULL"),
        ({"BYTES_SCANNED": -1}, "negative"),
    ],
)
def test_a_row_that_does_not_fit_is_told_and_the_others_are_kept(
    change: dict[str, Any], said: str
) -> None:
    told = mapping.to_queries(rows.queries(query(**change), query(QUERY_ID="good")), CONSOLE)
    assert told.good.column("query_id").to_pylist() == ["good"]
    (problem,) = told.problems
    assert re.search(said, problem.reason)
    assert json.loads(problem.payload)["QUERY_TEXT"] == query()["QUERY_TEXT"]


def test_numbers_may_come_in_any_width() -> None:
    wide = rows.queries(query())
    for kind in (pa.int64(), pa.decimal128(38, 0)):
        at = wide.schema.get_field_index("BYTES_SCANNED")
        cast = wide.set_column(at, "BYTES_SCANNED", wide.column(at).cast(kind))
        (row,) = mapping.to_queries(cast, CONSOLE).good.to_pylist()
        assert int(row["bytes_scanned"]) == 1_048_576
    narrow = rows.queries(query(BYTES_SCANNED=7))
    at = narrow.schema.get_field_index("BYTES_SCANNED")
    cast = narrow.set_column(at, "BYTES_SCANNED", narrow.column(at).cast(pa.int8()))
    assert mapping.to_queries(cast, CONSOLE).good.to_pylist()[0]["bytes_scanned"] == 7


def test_a_text_that_is_not_utf8_is_kept_as_far_as_it_is() -> None:
    table = rows.queries(query(), query(QUERY_ID="q2"))
    broken = pa.array([b"SELECT '\xff'", b"SELECT 2"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 2, broken.buffers())  # says it is UTF-8, and is not
    at = table.schema.get_field_index("QUERY_TEXT")
    good = mapping.to_queries(table.set_column(at, "QUERY_TEXT", text), CONSOLE).good
    assert good.column("sql_text").to_pylist() == ["SELECT '\ufffd'", "SELECT 2"]


# --- texts ---------------------------------------------------------------------------------------


def test_each_query_keeps_its_own_figures_and_shares_its_texts_template() -> None:
    texts = ("SELECT v FROM t WHERE id = 1", "SELECT v FROM t WHERE id = 2")
    tables = stored(
        *(query(QUERY_ID=f"q{n}", BYTES_SCANNED=n, QUERY_TEXT=texts[n % 2]) for n in range(6))
    )
    events = tables["query_event"]
    assert sorted((e["query_id"], e["bytes_scanned"]) for e in events) == [
        (f"q{n}", n) for n in range(6)
    ]
    assert len({e["template_id"] for e in events}) == 1
    assert len(tables["query_template"]) == 1


def test_names_are_spelt_as_in_the_lake() -> None:
    tables = stored(query(QUERY_TEXT='SELECT v, "Mixed" FROM Lake.Demo.T WHERE id = 1'))
    used = {(u["table_name"], u["column_name"]) for u in tables["column_usage"]}
    assert used == {("lake.demo.t", "v"), ("lake.demo.t", "Mixed"), ("lake.demo.t", "id")}


def test_a_secret_in_a_text_or_in_its_error_is_masked() -> None:
    tables = stored(
        query(
            QUERY_TEXT="CREATE USER bob PASSWORD = 'c4n4ry'",
            QUERY_TYPE="CREATE_USER",
            EXECUTION_STATUS="FAIL",
            ERROR_CODE="1003",
            ERROR_MESSAGE="syntax error near 'c4n4ry'",
        )
    )
    assert "c4n4ry" not in json.dumps(tables, default=str)


def test_a_query_without_a_text_is_kept() -> None:
    (row,) = stored(query(QUERY_TEXT=None))["query_event"]
    assert (row["sql_text"], row["template_id"]) == (None, None)


# --- metering, attribution, access ---------------------------------------------------------------


def test_metering_keeps_the_last_digit_and_what_was_idle() -> None:
    told = mapping.to_metering(rows.metering(rows.metered()), "snowflake", NOW)
    compute, cloud = sorted(told.good.to_pylist(), key=lambda row: row["meter"], reverse=True)
    assert (compute["resource"], compute["unit"], compute["source"]) == (
        "BI_WH",
        "credit",
        "engine",
    )
    assert compute["hour"] == NOW
    assert (compute["quantity"], compute["attributed"]) == (Decimal(1), Decimal("0.7"))
    assert (cloud["meter"], cloud["quantity"]) == ("cloud_services", Decimal("0.012345678"))
    assert cloud["attributed"] is None


def test_a_metered_hour_delivered_twice_counts_once_and_two_of_one_name_add_up() -> None:
    told = mapping.to_metering(
        rows.metering(rows.metered(), rows.metered(), rows.metered(WAREHOUSE_ID=2)), "s", NOW
    )
    quantities = {row["meter"]: row["quantity"] for row in told.good.to_pylist()}
    assert quantities["compute"] == Decimal(2)


def test_an_hour_without_a_warehouse_is_told() -> None:
    told = mapping.to_metering(rows.metering(rows.metered(WAREHOUSE_NAME=None)), "s", NOW)
    assert told.good.num_rows == 0
    assert len(told.problems) == 1


_CREDITS = st.decimals(min_value=0, max_value=10_000, places=9)


@pytest.mark.slow
@given(
    hours=st.lists(
        st.tuples(st.integers(0, 48), st.sampled_from(["A", "B", "C"]), _CREDITS, _CREDITS),
        min_size=1,
        max_size=20,
        unique_by=lambda row: (row[0], row[1]),
    )
)
def test_metered_credits_add_up_to_what_snowflake_told(
    hours: list[tuple[int, str, Decimal, Decimal]],
) -> None:
    told = [
        rows.metered(
            START_TIME=NOW + timedelta(hours=hour),
            WAREHOUSE_NAME=name,
            CREDITS_USED_COMPUTE=compute,
            CREDITS_USED_CLOUD_SERVICES=cloud,
        )
        for hour, name, compute, cloud in hours
    ]
    found = mapping.to_metering(rows.metering(*told, *told), "s", NOW).good.to_pylist()
    assert sum(row["quantity"] for row in found) == sum(h[2] + h[3] for h in hours)
    assert len(found) == 2 * len(hours)


def test_attribution_is_exact_and_one_row_per_query() -> None:
    told = mapping.to_attribution(
        rows.attribution(
            rows.attributed(),
            rows.attributed(),
            rows.attributed(QUERY_ID="q2", CREDITS_ATTRIBUTED_COMPUTE=0.000000001),
            rows.attributed(QUERY_ID=None),
        ),
        "snowflake",
        NOW,
    )
    credits = {row["query_id"]: row["credits"] for row in told.good.to_pylist()}
    assert credits == {"q1": Decimal("0.000555555"), "q2": Decimal("0.000000001")}
    assert len(told.problems) == 1


def test_access_names_tables_and_columns_read_and_written() -> None:
    read = [
        {
            "objectName": "LAKE.DEMO.T",
            "objectDomain": "Table",
            "columns": [{"columnName": "ID"}, {"columnName": "V"}],
        },
        {"objectName": "LAKE.DEMO.S", "objectDomain": "Stage"},
    ]
    row = {
        "QUERY_ID": "q1",
        "QUERY_START_TIME": NOW,
        "BASE_OBJECTS_ACCESSED": json.dumps(read),
        "OBJECTS_MODIFIED": json.dumps([{"objectName": "LAKE.DEMO.U", "columns": []}]),
    }
    torn = {**row, "QUERY_ID": "q2", "BASE_OBJECTS_ACCESSED": "[{"}
    none = {**row, "QUERY_ID": "q3", "BASE_OBJECTS_ACCESSED": None, "OBJECTS_MODIFIED": None}
    told = mapping.to_access(rows.access(row, torn, none), "snowflake")
    found = {(r["table_name"], r["column_name"], r["access"]) for r in told.good.to_pylist()}
    assert found == {
        ("LAKE.DEMO.T", "ID", "read"),
        ("LAKE.DEMO.T", "V", "read"),
        ("LAKE.DEMO.S", "", "read"),
        ("LAKE.DEMO.U", "", "write"),
    }
    assert len(told.problems) == 1
