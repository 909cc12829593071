from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.pipeline import export as exporting
from lakehouse_core.pipeline.landing import Landing
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, query_event, snapshot_commit
from tests.stores import new_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.domain.query import QueryEvent
    from lakehouse_core.pipeline.landing import Export

OVERLAP = timedelta(hours=1)


class Yard:
    """A store and a landing folder, exported step by step."""

    def __init__(self, folder: Path) -> None:
        self.store = new_store(folder / "store")
        self.landing = Landing(folder / "landing")
        self.last: Export | None = None
        self.minutes = 0
        self.text_ids: dict[str, str | None] = {}

    def add(self, *events: QueryEvent) -> None:
        self.store.upsert("query_event", to_arrow("query_event", events))

    def export(self) -> list[dict]:
        """The events of the next export."""
        self.minutes += 1
        moment = NOW + timedelta(minutes=self.minutes)
        found = exporting.export(self.store, self.landing, self.last, OVERLAP, lambda: moment)
        if found is None:
            return []
        self.last = found
        folder = self.landing.folder_of(found.id)
        part = found.tables.get("query_event")
        files = part.files if part else ()
        rows = [row for name in files for row in pq.read_table(folder / name).to_pylist()]
        assert part is None or part.rows == len(rows)
        self.text_ids |= {row["query_id"]: row.pop("text_id") for row in rows}
        return rows

    def is_same(self) -> bool:
        return exporting.is_same(self.store, self.last.cursor if self.last else {})


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    made = Yard(tmp_path)
    yield made
    made.store.close()


def test_a_row_is_exported_once_whole_and_with_its_days(yard: Yard) -> None:
    yard.add(query_event(query_id="a", submitted_at=NOW - timedelta(days=1)), query_event())
    rows = yard.export()
    assert len(rows) == 2
    assert rows[0].keys() == set(yard.store.read("FROM query_event").column_names)
    assert yard.last is not None
    assert yard.last.tables["query_event"].days == ("2026-11-15", "2026-11-16")
    assert yard.is_same()
    assert yard.export() == []


def test_nothing_in_the_store_makes_no_export(yard: Yard) -> None:
    assert yard.export() == []
    assert not yard.landing.exports()


def test_a_changed_row_comes_again(yard: Yard) -> None:
    running = query_event(query_id="a", status=QueryStatus.RUNNING)
    yard.add(running, query_event(query_id="b"))
    yard.export()
    yard.add(query_event(query_id="a", collected_at=NOW + timedelta(seconds=30)))
    assert not yard.is_same()
    assert [(row["query_id"], row["status"]) for row in yard.export()] == [("a", "finished")]


def test_a_row_seen_again_unchanged_does_not(yard: Yard) -> None:
    event = query_event(query_id="a")
    yard.add(event)
    yard.export()
    yard.add(query_event(query_id="a", collected_at=NOW + timedelta(minutes=2)))
    assert yard.is_same()
    assert yard.export() == []


def test_a_row_written_late_with_an_older_time_is_found(yard: Yard) -> None:
    yard.add(query_event(query_id="a"))
    yard.export()
    yard.add(query_event(query_id="late", collected_at=NOW - timedelta(minutes=50)))
    assert not yard.is_same()
    assert [row["query_id"] for row in yard.export()] == ["late"]


@pytest.mark.slow
def test_without_its_memory_an_export_repeats_the_overlap_and_loses_nothing(yard: Yard) -> None:
    yard.add(query_event(query_id="old", collected_at=NOW - timedelta(hours=3)))
    yard.add(query_event(query_id="a"))
    yard.export()
    assert yard.last is not None
    yard.landing.known(yard.last.id, "query_event").unlink()
    yard.add(query_event(query_id="b", collected_at=NOW + timedelta(minutes=1)))
    assert sorted(row["query_id"] for row in yard.export()) == ["a", "b"]


def test_equal_texts_under_equal_names_have_one_id(yard: Yard) -> None:
    given = {"sql_text": "SELECT 1", "dialect": "trino", "default_catalog": "lake"}
    yard.add(query_event(query_id="a", **given), query_event(query_id="b", **given))
    yard.add(query_event(query_id="other", **given | {"default_catalog": "x"}))
    yard.add(query_event(query_id="none", sql_text=None))
    yard.export()
    ids = yard.text_ids
    assert ids["a"] == ids["b"] != ids["other"]
    assert ids["none"] is None
    text = "\x1f".join(("SELECT 1", "trino", "lake", ""))
    assert ids["a"] == hashlib.sha256(text.encode()).hexdigest()[:32]


def test_many_rows_come_in_files_of_bounded_size(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "CHUNK_ROWS", 40)
    monkeypatch.setattr(exporting, "ASKED_BY_HASH", 10)
    yard.add(*(query_event() for _ in range(100)))
    rows = yard.export()
    assert len({row["query_id"] for row in rows}) == len(rows) == 100
    assert yard.last is not None
    assert len(yard.last.tables["query_event"].files) == 3


def test_commits_of_a_table_seen_for_the_first_time_are_exported_however_old(yard: Yard) -> None:
    def commit(**given: object) -> None:
        rows = to_arrow("snapshot_commit", [snapshot_commit(**given)])
        yard.store.upsert("snapshot_commit", rows)

    commit()
    yard.export()
    commit(table_id="lake.demo.old", committed_at=NOW - timedelta(days=400))
    yard.export()
    assert yard.last is not None
    assert yard.last.tables["snapshot_commit"].rows == 1
    assert yard.last.tables["snapshot_commit"].days == ("2025-10-12",)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from("abcde"),
        st.sampled_from([QueryStatus.QUEUED, QueryStatus.RUNNING, QueryStatus.FINISHED]),
        st.integers(0, 50),
        st.booleans(),
    ),
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=25)
@given(steps=EVENTS)
def test_the_last_exported_version_of_every_row_is_the_one_in_the_store(
    tmp_path_factory: pytest.TempPathFactory, steps: list
) -> None:
    yard = Yard(tmp_path_factory.mktemp("yard"))
    newest: dict[str, dict] = {}
    for query_id, status, minutes_late, then_export in steps:
        at = NOW - timedelta(minutes=minutes_late)
        yard.add(query_event(query_id=query_id, status=status, collected_at=at))
        if then_export:
            newest |= {row["query_id"]: row for row in yard.export()}
    newest |= {row["query_id"]: row for row in yard.export()}
    stored = {row["query_id"]: row for row in yard.store.read("FROM query_event").to_pylist()}
    assert newest == stored
    assert not stored or yard.is_same()
    yard.store.close()
