from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakehouse_core.domain.errors import FilterError
from lakehouse_core.domain.query import EngineId, QueryStatus
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.red import Red, red, trend
from tests.factories import NOW, query_event
from tests.unit.views.conftest import clock

if TYPE_CHECKING:
    from tests.unit.views.conftest import Shelf

HOUR = Filters(window="1h")


def ago(minutes: float) -> dict[str, object]:
    return {"submitted_at": NOW - timedelta(minutes=minutes)}


def test_empty_store_has_no_rate_and_unknown_durations(store: Shelf) -> None:
    seen = red(store, HOUR, clock)
    assert seen.total == Red(engine_id=None)
    assert seen.engines == ()
    assert seen.total.error_ratio is None


def test_errors_are_failed_of_ended_and_cancelled_is_neither(store: Shelf) -> None:
    store.add(
        "query_event",
        query_event(**ago(1)),
        query_event(**ago(2)),
        query_event(**ago(3)),
        query_event(**ago(4), status=QueryStatus.FAILED),
        query_event(**ago(5), status=QueryStatus.CANCELLED),
        query_event(**ago(6), status=QueryStatus.RUNNING),
    )
    total = red(store, HOUR, clock).total
    assert (total.queries, total.finished, total.failed) == (6, 3, 1)
    assert (total.cancelled, total.unfinished) == (1, 1)
    assert total.error_ratio == 0.25
    assert total.queries_per_hour == 6


def test_percentiles_are_of_finished_queries_only(store: Shelf) -> None:
    store.add(
        "query_event",
        *(query_event(**ago(number), elapsed_ms=float(number)) for number in range(1, 22)),
        query_event(**ago(30), elapsed_ms=9_999_999.0, status=QueryStatus.FAILED),
        query_event(**ago(31), elapsed_ms=None),
    )
    total = red(store, HOUR, clock).total
    assert (total.p50_ms, total.p95_ms) == (11.0, 20.0)


def test_window_start_is_included_and_end_is_not(store: Shelf) -> None:
    store.add(
        "query_event",
        query_event(submitted_at=NOW - timedelta(hours=1)),
        query_event(submitted_at=NOW),
        query_event(submitted_at=NOW - timedelta(hours=1, microseconds=1)),
    )
    assert red(store, HOUR, clock).total.queries == 1


def test_unknown_status_is_refused() -> None:
    with pytest.raises(FilterError, match="finished"):
        Filters(status="done")


events = st.lists(
    st.tuples(
        st.sampled_from(["duckdb", "spark", "trino"]),
        st.sampled_from(list(QueryStatus)),
        st.integers(min_value=0, max_value=180),
    ),
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events)
def test_engines_add_up_to_the_total_and_buckets_to_both(
    store: Shelf, rows: list[tuple[str, QueryStatus, int]]
) -> None:
    store.add(
        "query_event",
        *(
            query_event(
                **ago(minutes), query_id=str(number), engine_id=EngineId(engine), status=status
            )
            for number, (engine, status, minutes) in enumerate(rows)
        ),
    )
    filters = Filters(window="2h")
    seen, over_time = red(store, filters, clock), trend(store, filters, clock)
    for field in ("queries", "finished", "failed", "cancelled", "unfinished"):
        assert getattr(seen.total, field) == sum(getattr(e, field) for e in seen.engines)
    assert sum(over_time.counts()) == seen.total.queries
    for engine in seen.engines:
        assert sum(over_time.counts(engine.engine_id)) == engine.queries


def test_trend_has_a_place_for_every_bucket_of_the_window(store: Shelf) -> None:
    store.add("query_event", query_event(**ago(0.5)), query_event(**ago(59.5)))
    counts = trend(store, HOUR, clock).counts()
    assert len(counts) == 60
    assert (counts[0], counts[-1], sum(counts)) == (1, 1, 2)
