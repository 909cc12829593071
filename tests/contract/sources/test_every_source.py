"""What every source of telemetry promises."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.collect import CollectReport, read_watermark, run_once
from lakehouse_core.domain.errors import SourceError, SourceUnavailableError
from lakehouse_core.store.tables import TABLES
from tests.contract.sources.tallies import complete, content, letters, totals
from tests.factories import NOW

if TYPE_CHECKING:
    import pyarrow as pa

    from collectors.base import Batch
    from lakehouse_core.store.owner import OwnerStore
    from tests.contract.sources.worlds import World


pytestmark = pytest.mark.slow


def collect(world: World, store: OwnerStore) -> CollectReport:
    return run_once(world.source(), store, lambda: NOW, timeout=timedelta(minutes=1))


def test_queries_arrive_with_their_template_and_the_columns_it_uses(
    world: World, store: OwnerStore
) -> None:
    for number in range(10):
        world.run(number)
    report = collect(world, store)
    assert report.error is None
    assert totals(store) == complete(world, 10)
    if not getattr(world, "tells_sql", True):
        assert store.read("FROM query_template").num_rows == 0
        return
    events = store.read("SELECT DISTINCT template_id, statement_kind FROM query_event")
    assert events.num_rows == 1  # they differ in a literal only
    assert events.to_pylist()[0]["statement_kind"] == "select"
    usage = store.read("SELECT table_name, column_name, role FROM column_usage ORDER BY ALL")
    assert [tuple(row.values()) for row in usage.to_pylist()] == [
        ("lake.demo.t", "id", "filter_eq"),
        ("lake.demo.t", "v", "project"),
    ]


def test_collecting_again_changes_nothing(world: World, store: OwnerStore) -> None:
    for number in range(7):
        world.run(number)
    first = collect(world, store)
    before = content(store)
    again = collect(world, store)
    assert content(store) == before
    assert first.rows > 0
    assert again.rows == 0
    assert again.error is None
    assert totals(store) == complete(world, 7)


def test_a_pull_without_a_watermark_yields_the_same_keys(world: World, store: OwnerStore) -> None:
    for number in range(7):
        world.run(number)
    collect(world, store)
    for batch in world.source().pull(None):
        for table, rows in batch.rows.items():
            assert store.upsert(table, rows) == 0


def test_only_what_is_new_is_taken_the_next_time(world: World, store: OwnerStore) -> None:
    world.run(1)
    collect(world, store)
    new = world.run(2)
    batches = list(world.source().pull(read_watermark(store, world.source().name)))
    pages = [b.rows["query_event"].column("query_id") for b in batches if "query_event" in b.rows]
    assert {str(key) for page in pages for key in page} == {new}


def test_a_query_seen_running_is_there_once_and_ends_as_it_ended(
    world: World, store: OwnerStore
) -> None:
    end = world.begin(1)
    collect(world, store)
    assert totals(store)[:2] == (1, 1)
    assert totals(store)[3] == 0
    end()
    collect(world, store)
    assert totals(store) == complete(world, 1)


def test_a_late_row_arrives_though_the_watermark_has_passed_its_time(
    world: World, store: OwnerStore
) -> None:
    world.run(1, at=NOW)
    collect(world, store)
    world.run(2, at=NOW - timedelta(minutes=4))
    world.run(3, at=NOW + timedelta(hours=3))  # a clock that runs ahead
    world.run(4, at=NOW - timedelta(hours=5))  # and one far behind
    collect(world, store)
    assert totals(store) == complete(world, 4)


def test_a_bad_row_becomes_a_letter_and_stops_nothing(world: World, store: OwnerStore) -> None:
    world.run(1)
    world.spoil()
    world.run(2)
    report = collect(world, store)
    assert report.error is None
    assert report.dead_letters == 1
    assert report.result.outcome == "partial"
    assert totals(store) == complete(world, 2)
    assert len(letters(store)) == 1
    collect(world, store)
    assert len(letters(store)) == 1


class Torn(int):
    """A number that is written into a statement with half a character behind it."""

    def __format__(self, spec: str) -> str:
        return int.__format__(self, spec) if spec else f"{int(self)} OR v = 'a\ud800'"


def test_half_a_character_in_a_statement_stops_nothing(world: World, store: OwnerStore) -> None:
    if not getattr(world, "can_hold_torn_text", True):
        return
    whole = {world.run(number) for number in (0, 2)}
    torn = world.run(Torn(1))
    report = collect(world, store)
    assert report.error is None
    texts = {
        row["query_id"]: row["sql_text"]
        for row in store.read("SELECT query_id, sql_text FROM query_event").to_pylist()
    }
    assert whole <= texts.keys()
    if getattr(world, "tells_sql", True):
        assert "a\ufffd" in texts[torn]
        assert letters(store) == []


def test_history_dropped_before_it_was_read_is_recorded_as_a_gap(
    world: World, store: OwnerStore
) -> None:
    world.run(1)
    collect(world, store)
    world.run(2)
    world.drop()
    report = collect(world, store)
    assert report.dead_letters == 1
    assert re.search("before|lost", letters(store)[0])


def test_a_source_that_is_gone_says_where_it_was_sought_and_what_to_do(
    world: World, store: OwnerStore
) -> None:
    world.run(1)
    collect(world, store)
    source = world.source()
    world.vanish()
    with pytest.raises(SourceUnavailableError, match=re.escape(world.place)) as caught:
        list(source.pull(None))
    assert re.search(r"check|start", str(caught.value))
    report = run_once(source, store, lambda: NOW, timeout=timedelta(minutes=1))
    assert report.is_unreachable
    assert report.result.outcome == "failed"
    assert totals(store) == complete(world, 1)


def test_a_position_that_is_not_its_own_is_refused(world: World, store: OwnerStore) -> None:
    source = world.source()
    world.run(1)
    watermark = next(iter(source.pull(None))).watermark
    assert watermark is not None
    foreign = type(watermark)(
        source=source.name, position='{"v":99}', event_at=None, updated_at=NOW
    )
    with pytest.raises(SourceError, match="watermark"):
        list(source.pull(foreign))


def test_the_watermark_tells_the_newest_event_and_the_lag(world: World, store: OwnerStore) -> None:
    world.run(1, at=NOW - timedelta(minutes=2))
    report = collect(world, store)
    assert report.watermark is not None
    assert abs(report.watermark - (NOW - timedelta(minutes=2))) < timedelta(seconds=5)
    assert report.newest_event_age_seconds == pytest.approx(120, abs=5)


def test_it_fills_the_tables_it_says_it_fills(world: World) -> None:
    world.run(1)
    source = world.source()
    filled = {table for batch in source.pull(None) for table in batch.rows}
    assert filled <= set(source.capabilities.tables) <= set(TABLES)


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_batches_in_any_order_and_any_number_give_the_same_totals(
    world: World, store: OwnerStore, data: st.DataObject
) -> None:
    batches = _history(world)
    order = data.draw(st.permutations(range(len(batches))))
    repeats = data.draw(st.lists(st.sampled_from(range(len(batches))), max_size=5))
    store.transact("query_event", ["DELETE FROM query_event"])
    for number in [*order, *repeats]:
        store.upsert("query_event", batches[number])
    assert totals(store) == complete(world, 12)


def _history(world: World) -> list[pa.Table]:
    """Pages of a history during which some queries were seen running; made once per world."""
    known = getattr(world, "_history", None)
    if known is None:
        source = world.source()
        pages: list[Batch] = []
        watermark = None
        ends = [world.begin(number) for number in range(12)]
        for count in (4, 4, 4):
            page = list(source.pull(watermark))
            pages += page
            watermark = page[-1].watermark
            for _ in range(count):
                ends.pop()()
        pages += list(source.pull(watermark))
        known = [page.rows["query_event"] for page in pages if "query_event" in page.rows]
        world._history = known  # type: ignore[attr-defined]
    return list(known)
