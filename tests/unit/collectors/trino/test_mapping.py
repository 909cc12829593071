"""The mapping on what a real coordinator (Trino 476 on Iceberg tables) answered."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from collectors.base import BadRowError
from collectors.trino.mapping import to_observed
from lakehouse_core.domain.query import EngineId, QueryStatus
from tests.factories import NOW

if TYPE_CHECKING:
    from collectors.understanding import Observed

FIXTURES = Path(__file__).parents[3] / "integration" / "fixtures" / "trino"
LIST: dict[str, dict[str, Any]] = {
    q["queryId"]: q for q in json.loads((FIXTURES / "list.json").read_text())
}
DETAILS: dict[str, dict[str, Any]] = json.loads((FIXTURES / "details.json").read_text())


def observe(number: int, *, detailed: bool = True, **stats: Any) -> Observed:
    query_id = next(i for i in LIST if f"_{number:05}_" in i)
    basic = copy.deepcopy(LIST[query_id])
    detail = copy.deepcopy(DETAILS[query_id]) if detailed else None
    for form in (basic, detail or basic):
        form["queryStats"].update(stats)
    return to_observed(EngineId("trino"), "http://trino:8080", basic, detail, NOW)


def test_a_finished_query_has_everything_the_engine_said() -> None:
    event = observe(0).event
    assert event.query_id == "20261116_062450_00000_2i2ti"
    assert event.status is QueryStatus.FINISHED
    assert event.dialect == "trino"
    assert event.sql_text is not None
    assert event.sql_text.startswith("SELECT d, count(*) c FROM lake.demo.t")
    assert (event.user_name, event.source) == ("ana", "lakehelm-test")
    assert event.tags == ("team=bi", "dash=7")
    assert event.submitted_at == datetime(2026, 11, 16, 6, 24, 51, 137_000, UTC)
    assert event.started_at == datetime(2026, 11, 16, 6, 24, 57, 385_000, UTC)
    assert event.ended_at == datetime(2026, 11, 16, 6, 25, 17, 168_000, UTC)
    assert event.queued_ms == 43  # Trino says 43.23ms
    assert event.planning_ms == 5_200
    assert event.execution_ms == 19_783  # between two moments; Trino shows 19.78s
    assert event.elapsed_ms == 26_031
    assert event.cpu_ms == 669
    assert (event.bytes_scanned, event.rows_scanned, event.rows_returned) == (3837, 997, 10)
    assert event.peak_memory_bytes == 217_170
    assert event.spilled_bytes == 0
    assert event.snapshot_ids == (6035141648385637645,)
    assert event.error_class is None
    assert event.engine_url == "http://trino:8080/ui/query.html?20261116_062450_00000_2i2ti"


@pytest.mark.parametrize(
    ("number", "code"), [(1, "TABLE_NOT_FOUND"), (2, "SYNTAX_ERROR"), (3, "DIVISION_BY_ZERO")]
)
def test_a_failed_query_keeps_the_engines_code_and_message(number: int, code: str) -> None:
    event = observe(number).event
    assert event.status is QueryStatus.FAILED
    assert (event.error_class, event.error_code) == ("user_error", code)
    assert event.error_message


def test_a_query_its_user_ended_is_cancelled_not_failed() -> None:
    event = observe(11).event
    assert event.status is QueryStatus.CANCELLED
    assert event.error_code == "USER_CANCELED"


@pytest.mark.parametrize(("number", "rows", "size"), [(4, 997, 2064), (5, 97, 594)])
def test_a_write_has_rows_written_and_returns_none(number: int, rows: int, size: int) -> None:
    event = observe(number).event
    assert (event.rows_written, event.bytes_written) == (rows, size)
    assert event.rows_returned is None


def test_a_join_reads_a_snapshot_of_each_table() -> None:
    assert observe(10).event.snapshot_ids == (6035141648385637645, 6879423911932066293)


def test_the_zeros_of_a_pruned_answer_are_not_taken_for_figures() -> None:
    basic, detail = recorded(0)
    assert detail["pruned"] is True
    basic["queryStats"]["spilledDataSize"] = "1kB"
    event = to_observed(EngineId("trino"), "u", basic, detail, NOW).event
    assert event.spilled_bytes == 1024
    assert event.rows_written is None


def test_the_short_form_alone_makes_an_event() -> None:
    event = observe(0, detailed=False).event
    assert event.status is QueryStatus.FINISHED
    assert (event.bytes_scanned, event.rows_scanned) == (3837, 997)
    assert event.rows_returned is None
    assert event.snapshot_ids == ()


def test_a_running_query_has_no_end() -> None:
    basic = json.loads((FIXTURES / "list_running.json").read_text())[0]
    event = to_observed(EngineId("trino"), "u", basic, None, NOW).event
    assert event.status is QueryStatus.RUNNING
    assert event.ended_at is None
    assert event.revision == 1


@pytest.mark.parametrize("state", ["QUEUED", "WAITING_FOR_RESOURCES", "DISPATCHING"])
def test_waiting_states_are_queued(state: str) -> None:
    basic, _ = recorded(0)
    event = to_observed(EngineId("trino"), "u", {**basic, "state": state}, None, NOW).event
    assert event.status is QueryStatus.QUEUED


def test_the_sessions_catalog_and_schema_resolve_unqualified_tables() -> None:
    basic, _ = recorded(0)
    basic["session"] |= {"catalog": "lake", "schema": "demo"}
    observed = to_observed(EngineId("trino"), "u", basic, None, NOW)
    assert (observed.default_catalog, observed.default_namespace) == ("lake", ("demo",))


def test_the_trace_token_is_our_correlation_id() -> None:
    basic, _ = recorded(0)
    basic["session"]["traceToken"] = "gw-1"
    assert to_observed(EngineId("trino"), "u", basic, None, NOW).event.gateway_id == "gw-1"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"queryStats": None}, "queryStats"),
        ({"queryStats": {}}, "createTime"),
        ({"queryStats": {"createTime": "noon"}}, "createTime"),
        ({"state": "DREAMING"}, "DREAMING"),
        ({"state": None}, "state"),
    ],
)
def test_a_payload_that_cannot_be_mapped_says_which_field(
    change: dict[str, Any], named: str
) -> None:
    basic, _ = recorded(0)
    with pytest.raises(BadRowError, match=named):
        to_observed(EngineId("trino"), "u", {**basic, **change}, None, NOW)


def test_a_size_that_cannot_be_read_names_its_field() -> None:
    with pytest.raises(BadRowError, match="physicalInputDataSize"):
        observe(0, physicalInputDataSize="lots")


def recorded(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    query_id = next(i for i in LIST if f"_{number:05}_" in i)
    return copy.deepcopy(LIST[query_id]), copy.deepcopy(DETAILS[query_id])
