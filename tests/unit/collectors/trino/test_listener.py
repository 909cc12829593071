"""Events that a real Trino 476 pushed, and what its REST interface said about the same queries."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from collectors.trino.excerpt import excerpt
from collectors.trino.listener import ListenerSettings, TrinoIntake
from collectors.trino.mapping import to_observed
from collectors.understanding import Observed, Understanding
from lakehouse_core.domain.query import EngineId
from lakehouse_core.gateway.intake import Delivery, Mapped
from tests.factories import NOW, query_event

FIXTURES = Path(__file__).parents[3] / "integration" / "fixtures" / "trino"
URL = "http://trino.example:8080"
TRINO = EngineId("trino")
# Trino shows long durations with three digits; its events have them in full.
ROUNDED = ("queued_ms", "planning_ms", "cpu_ms")
# A pruned answer of the REST interface does not say these.
PULL_MAY_NOT_KNOW = ("rows_written", "spilled_bytes")
OBSERVERS = ("reporter", "collected_at")


@cache
def unpacked(name: str) -> str:
    packed = (FIXTURES / name).read_bytes()
    return zstandard.ZstdDecompressor().decompress(packed, max_output_size=2**26).decode()


def bodies() -> list[bytes]:
    return [line.encode() for line in unpacked("listener.jsonl.zst").splitlines()]


@cache
def completed_bodies() -> tuple[bytes, ...]:
    return tuple(body for body in bodies() if b'"statistics":{' in body)


def completed() -> list[dict[str, Any]]:
    return [json.loads(body) for body in completed_bodies()]


def intake(*engines: str) -> TrinoIntake:
    named = [ListenerSettings(engine_id=EngineId(name), url=URL) for name in engines or ("trino",)]
    return TrinoIntake(named, Understanding(), lambda: NOW)


def map_bodies(*sent: bytes, path: dict[str, str] | None = None) -> Mapped:
    return intake().map([Delivery(path or {}, body) for body in sent])


def events_of(mapped: Mapped) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = mapped.rows["query_event"].to_pylist()
    return rows


def to_body(event: Any) -> bytes:
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()


def test_pushed_and_pulled_give_the_same_row() -> None:
    pulled = json.loads(unpacked("pulled_beside.json.zst"))
    listed = {query["queryId"]: query for query in pulled["list"]}
    pushed = {row["query_id"]: row for row in events_of(map_bodies(*map(to_body, completed())))}
    assert len(pushed) == 15
    understanding = Understanding()
    for query_id, row in pushed.items():
        detail = pulled["details"][query_id]
        observed = to_observed(TRINO, URL, listed[query_id], detail, NOW)
        (other,) = understanding.rows([observed])["query_event"].to_pylist()
        for name, value in other.items():
            if name in OBSERVERS or (name in PULL_MAY_NOT_KNOW and value is None):
                continue
            if name in ROUNDED and value is not None and value >= 1_000:
                assert row[name] == pytest.approx(value, rel=0.005), (query_id, name)
            else:
                assert row[name] == value, (query_id, name)


def test_statuses_errors_and_the_correlation_id_arrive() -> None:
    rows = {row["sql_text"][:12]: row for row in events_of(map_bodies(*bodies()))}
    rows |= {row["error_code"]: row for row in events_of(map_bodies(*bodies()))}
    assert rows["DIVISION_BY_ZERO"]["status"] == "failed"
    assert rows["SYNTAX_ERROR"]["error_class"] == "user_error"
    assert rows["SYNTAX_ERROR"]["started_at"] is None
    assert rows["USER_CANCELED"]["status"] == "cancelled"
    assert rows["USER_CANCELED"]["gateway_id"] == "gw-slow"
    assert rows["INSERT INTO "]["bytes_written"] == 472


def test_a_created_event_is_a_queued_query() -> None:
    created = next(body for body in bodies() if b'"statistics":' not in body)
    (row,) = events_of(map_bodies(created))
    assert (row["status"], row["revision"]) == ("queued", 0)
    assert row["cpu_ms"] is None
    assert row["bytes_written"] is None
    assert row["reporter"] == "listener"


def test_templates_and_columns_come_with_the_events() -> None:
    rows = map_bodies(*bodies()).rows
    assert rows["query_template"].num_rows == 15
    assert {"id", "d", "v"} <= set(rows["column_usage"].column("column_name").to_pylist())


def test_the_bulk_is_cut_out_and_nothing_of_ours_with_it() -> None:
    for body in bodies():
        short = excerpt(body)
        left, whole = json.loads(short.body), json.loads(body)
        if "statistics" not in whole:
            assert left == whole
            continue
        assert len(short.body) < 15_000
        assert left["context"] == whole["context"]
        assert left["ioMetadata"] == whole["ioMetadata"]
        assert left.get("failureInfo") == whole.get("failureInfo")
        for name, value in left["statistics"].items():
            assert whole["statistics"][name] == value
        for name, value in left["metadata"].items():
            assert whole["metadata"][name] == value


NASTY = ',"plan":"},"statistics":{,"stageGcStatistics":},"context":{ \\ " \\" ü \n'


@given(st.text(alphabet=st.sampled_from(NASTY), max_size=200))
def test_no_text_of_a_user_can_mislead_the_cut(text: str) -> None:
    event = json.loads(completed_bodies()[10])
    event["metadata"]["query"] = text
    event["metadata"]["plan"] = text
    event["context"]["source"] = text
    event["context"]["clientTags"] = [text, NASTY]
    left = json.loads(excerpt(to_body(event)).body)
    assert left["metadata"]["query"] == text
    assert left["context"] == event["context"]
    assert left["statistics"]["outputRows"] == event["statistics"]["outputRows"]


def test_an_event_in_another_order_is_read_in_full() -> None:
    event = completed()[4]
    turned = dict(reversed(list(event.items())))
    (row,) = events_of(map_bodies(to_body(turned)))
    (same,) = events_of(map_bodies(to_body(event)))
    assert row == same


def test_a_list_of_events_is_taken_and_its_bad_one_is_a_dead_letter() -> None:
    events: list[Any] = completed()[:3]
    del events[1]["metadata"]["queryId"]
    mapped = map_bodies(to_body(events))
    assert (mapped.verdicts[0].accepted, mapped.verdicts[0].dead_letters) == (2, 1)
    (letter,) = mapped.rows["dead_letter"].to_pylist()
    assert "queryId" in letter["reason"]
    assert len(events_of(mapped)) == 2


def spoilt(path: str, value: Any) -> dict[str, Any]:
    event = json.loads(completed_bodies()[2])
    *parents, name = path.split(".")
    place = event
    for parent in parents:
        place = place[parent]
    place[name] = value
    return event


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("metadata.queryState", "DREAMING", "DREAMING"),
        ("metadata.queryId", "", "query_id is empty"),
        ("metadata.query", 7, r"\$.metadata.query"),
        ("createTime", "noon", "createTime"),
        ("statistics.cpuTime", "soon", r"\$.statistics.cpuTime"),
        ("statistics.physicalInputBytes", 2**70, "physicalInputBytes|bytes_scanned"),
        ("context", None, r"\$.context"),
    ],
)
def test_an_event_that_does_not_fit_is_a_dead_letter_that_names_the_field(
    path: str, value: Any, named: str
) -> None:
    good = to_body(completed()[0])
    mapped = map_bodies(good, to_body(spoilt(path, value)), good)
    assert [(v.accepted, v.dead_letters) for v in mapped.verdicts] == [(1, 0), (0, 1), (1, 0)]
    (letter,) = mapped.rows["dead_letter"].to_pylist()
    assert letter["source"] == "trino"
    assert re.search(named, letter["reason"]), letter["reason"]
    assert len(events_of(mapped)) == 2


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"metadata":{"queryId":"q"', "not JSON"),
        (b'{"a": \xff\xfe}', "not JSON"),
        (b"17", "JSON int"),
        (b"[{},", "not JSON"),
        (b"[" * 5_000 + b"]" * 5_000, "not JSON|list"),
    ],
)
def test_a_body_that_is_no_event_is_refused_with_the_place(body: bytes, told: str) -> None:
    good = to_body(completed()[0])
    mapped = map_bodies(body, good)
    assert mapped.verdicts[0].refusal is not None or mapped.verdicts[0].dead_letters
    if mapped.verdicts[0].refusal:
        assert re.search(told, mapped.verdicts[0].refusal)
    assert mapped.verdicts[1].accepted == 1


def test_a_truncated_event_is_refused_wherever_it_was_cut() -> None:
    body = to_body(completed()[2])
    for end in range(1, len(body), len(body) // 40):
        assert map_bodies(body[:end]).verdicts[0].refusal is not None, end


def test_the_path_names_the_engine_when_there_are_several() -> None:
    body = to_body(completed()[2])
    several = intake("adhoc", "etl")
    mapped = several.map([Delivery({"engine": "etl"}, body), Delivery({}, body)])
    assert [row["engine_id"] for row in events_of(mapped)] == ["etl"]
    assert "must name the engine" in str(mapped.verdicts[1].refusal)
    unknown = several.map([Delivery({"engine": "nope"}, body)])
    assert "known: adhoc, etl" in str(unknown.verdicts[0].refusal)


def test_secrets_of_a_statement_do_not_reach_the_rows() -> None:
    event = spoilt("metadata.query", "CREATE CATALOG c USING x WITH (password = 'hunter2')")
    rows = map_bodies(to_body(event)).rows
    assert "hunter2" not in str({name: table.to_pylist() for name, table in rows.items()})


def test_five_megabytes_of_sql_and_odd_unicode_are_rows() -> None:
    long = "SELECT '" + "ü" * 2_500_000 + "'"
    (row,) = events_of(map_bodies(to_body(spoilt("metadata.query", long))))
    assert len(row["sql_text"]) == len(long)
    (row,) = events_of(map_bodies(to_body(spoilt("context.source", "\u0000\u2028😀"))))
    assert row["source"] == "\u0000\u2028😀"


def test_half_a_character_costs_that_character_not_the_delivery() -> None:
    whole, torn = completed()[:2]
    torn["metadata"]["query"] = "SELECT 'a\ud800'"
    for body in ([whole, torn], [torn, whole]):
        mapped = map_bodies(json.dumps(body).encode())
        assert [verdict.refusal for verdict in mapped.verdicts] == [None]
        texts = {event["query_id"]: event["sql_text"] for event in events_of(mapped)}
        assert texts[torn["metadata"]["queryId"]] == "SELECT 'a\ufffd'"
        assert whole["metadata"]["queryId"] in texts
    assert len(events_of(map_bodies(json.dumps(torn).encode()))) == 1


def test_no_events_are_no_rows() -> None:
    mapped = map_bodies(b"[]")
    assert mapped.verdicts[0].accepted == 0
    assert not mapped.rows


@pytest.mark.parametrize("odd", [["1"], {"id": 1}, "6035141648385637645", True, 2**63, 1.5])
def test_a_snapshot_id_that_is_none_is_left_out_as_pull_does(odd: Any) -> None:
    event = next(one for one in completed() if one["ioMetadata"]["inputs"])
    event["ioMetadata"]["inputs"][0]["connectorInfo"] = {"snapshotId": odd}
    (row,) = events_of(map_bodies(to_body(event)))
    assert row["snapshot_ids"] == []


def test_literals_are_dated_by_submission_as_pull_dates_them() -> None:
    old = next(one for one in completed() if one["ioMetadata"]["inputs"])
    old["metadata"]["query"] = "SELECT 1 FROM lake.demo.t WHERE a = 5"
    old["createTime"] = "2026-11-02T23:59:59.123Z"
    observed = Observed(
        query_event(
            dialect="trino",
            sql_text=old["metadata"]["query"],
            submitted_at=datetime(2026, 11, 2, 23, 59, 59, tzinfo=UTC),
        )
    )
    pulled = Understanding().rows([observed])["column_literal"]
    assert map_bodies(to_body(old)).rows["column_literal"].equals(pulled)
