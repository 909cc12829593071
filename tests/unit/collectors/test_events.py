from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.base import BadRowError
from collectors.events import from_json, to_json
from lakehouse_core.domain.query import QueryEvent, QueryStatus, StatementKind
from tests.factories import NOW, query_event

EARLIEST = datetime(2020, 1, 1)  # noqa: DTZ001 the strategy wants naive bounds

times = st.datetimes(min_value=EARLIEST, timezones=st.just(UTC))
events = st.builds(
    query_event,
    query_id=st.text(min_size=1, max_size=20),
    status=st.sampled_from(QueryStatus),
    submitted_at=times,
    sql_text=st.none() | st.text(max_size=50),
    statement_kind=st.none() | st.sampled_from(StatementKind),
    tags=st.lists(st.text(max_size=10), max_size=3).map(tuple),
    snapshot_ids=st.lists(st.integers(1, 2**62), max_size=3).map(tuple),
    cpu_ms=st.none() | st.floats(0, 1e9),
    bytes_scanned=st.none() | st.integers(0, 2**60),
    origin=st.sampled_from(["real", "simulated"]),
)


@given(events)
def test_an_event_comes_back_from_json_as_it_was(event: QueryEvent) -> None:
    through_text = json.loads(json.dumps(to_json(event)))
    assert from_json(through_text, NOW) == event


def test_times_of_other_zones_become_utc() -> None:
    payload = to_json(query_event())
    there = timezone(timedelta(hours=2))
    payload["submitted_at"] = datetime(2026, 11, 16, 14, 0, tzinfo=there).isoformat()
    event = from_json(payload, NOW)
    assert event.submitted_at == datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    assert event.submitted_at.utcoffset() == timedelta(0)


def test_a_later_version_may_add_fields() -> None:
    event = query_event()
    assert from_json({**to_json(event), "carbon_grams": 3}, NOW) == event


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"query_id": None}, "query_id"),
        ({"query_id": ""}, "query_id"),
        ({"status": "asleep"}, "status"),
        ({"submitted_at": "yesterday"}, "submitted_at"),
        ({"submitted_at": "2026-11-16T12:00:00"}, "submitted_at"),
        ({"bytes_scanned": "many"}, "bytes_scanned"),
        ({"bytes_scanned": 1.5}, "bytes_scanned"),
        ({"tags": "bi"}, "tags"),
        ({"cpu_ms": True}, "cpu_ms"),
        ({"origin": "dreamt"}, "origin"),
    ],
)
def test_a_misfit_names_its_field(change: dict[str, Any], named: str) -> None:
    with pytest.raises(BadRowError, match=named):
        from_json({**to_json(query_event()), **change}, NOW)


@pytest.mark.parametrize("payload", [None, 3, "text", [1, 2]])
def test_what_is_no_object_is_refused(payload: object) -> None:
    with pytest.raises(BadRowError, match="object"):
        from_json(payload, NOW)


def test_unknown_stays_unknown_and_zero_stays_zero() -> None:
    event = replace(query_event(), bytes_scanned=0, cpu_ms=None)
    back = from_json(to_json(event), NOW)
    assert back.bytes_scanned == 0
    assert back.cpu_ms is None
