from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agents.collect import read_watermark, run_once
from collectors.base import Batch, SourceCapabilities
from lakehouse_core.domain.errors import (
    SourceError,
    SourceUnavailableError,
    StoreFullError,
)
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, dead_letter, query_event, watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from lakehouse_core.domain.agent import Watermark
    from lakehouse_core.store.owner import OwnerStore

MINUTE = timedelta(minutes=1)


class ScriptedSource:
    """A source that yields what a test wrote down."""

    name = "scripted"
    capabilities = SourceCapabilities(
        tables=("query_event",), freshness_lag=timedelta(0), overlap=timedelta(0)
    )

    def __init__(self, script: Callable[[Watermark | None], Iterator[Batch]]) -> None:
        self._script = script
        self.asked: list[Watermark | None] = []

    def pull(self, since: Watermark | None) -> Iterator[Batch]:
        self.asked.append(since)
        return self._script(since)


def batch(number: int, **more: Any) -> Batch:
    event = query_event(query_id=f"q-{number}")
    mark = watermark(source="scripted", position=str(number), event_at=event.ended_at)
    rows = {"query_event": to_arrow("query_event", [event])}
    return Batch(rows=rows, watermark=mark, **more)


def test_rows_letters_and_watermark_are_written_and_counted(store: OwnerStore) -> None:
    letters = (dead_letter(source="scripted"),)
    source = ScriptedSource(lambda _: iter([batch(1), batch(2, dead_letters=letters)]))
    report = run_once(source, store, lambda: NOW, timeout=MINUTE)
    assert (report.rows, report.dead_letters, report.error) == (2, 1, None)
    mark = read_watermark(store, "scripted")
    assert mark is not None
    assert mark.position == "2"
    assert report.watermark == mark.event_at
    assert report.newest_event_age_seconds is not None
    assert report.result.outcome == "partial"  # a letter is a row not understood


def test_the_next_run_starts_where_the_last_one_ended(store: OwnerStore) -> None:
    source = ScriptedSource(lambda _: iter([batch(7)]))
    run_once(source, store, lambda: NOW, timeout=MINUTE)
    run_once(source, store, lambda: NOW, timeout=MINUTE)
    assert source.asked[0] is None
    assert source.asked[1] is not None
    assert source.asked[1].position == "7"


def test_a_source_that_fails_half_way_keeps_what_it_gave(store: OwnerStore) -> None:
    def script(_: Watermark | None) -> Iterator[Batch]:
        yield batch(1)
        raise SourceUnavailableError("gone")

    report = run_once(ScriptedSource(script), store, lambda: NOW, timeout=MINUTE)
    assert (report.rows, report.error, report.is_unreachable) == (1, "gone", True)
    assert report.result.outcome == "partial"
    mark = read_watermark(store, "scripted")
    assert mark is not None
    assert mark.position == "1"


def test_an_error_that_will_not_pass_is_not_called_unreachable(store: OwnerStore) -> None:
    def script(since: Watermark | None) -> Iterator[Batch]:
        if since is None:
            raise SourceError("nonsense")
        yield batch(1)

    report = run_once(ScriptedSource(script), store, lambda: NOW, timeout=MINUTE)
    assert not report.is_unreachable
    assert report.result.outcome == "failed"


def test_a_run_ends_when_its_time_is_up_and_the_rest_comes_next_time(store: OwnerStore) -> None:
    source = ScriptedSource(lambda _: iter([batch(1), batch(2)]))
    report = run_once(source, store, lambda: NOW, timeout=timedelta(0))
    assert (report.rows, report.was_cut) == (1, True)
    assert report.result.outcome == "partial"


def test_a_run_ends_between_two_batches_when_the_process_stops(store: OwnerStore) -> None:
    source = ScriptedSource(lambda _: iter([batch(1), batch(2)]))
    report = run_once(source, store, lambda: NOW, timeout=MINUTE, is_stopping=lambda: True)
    assert (report.rows, report.was_cut) == (1, True)


def test_the_watermark_stays_when_the_rows_did_not_get_through(store: OwnerStore) -> None:
    class Full:
        """The store, on a disk that is full for query events."""

        def read(self, sql: str, **params: Any) -> pa.Table:
            return store.read(sql, **params)

        def upsert(self, table: str, rows: pa.Table) -> int:
            if table == "query_event":
                raise StoreFullError("no space left")
            return store.upsert(table, rows)

        def close(self) -> None:
            pass

    source = ScriptedSource(lambda _: iter([batch(1)]))
    report = run_once(source, Full(), lambda: NOW, timeout=MINUTE)
    assert report.error == "no space left"
    assert read_watermark(store, "scripted") is None
