from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.base import BadRowError
from collectors.duckdb.config import JournalSettings
from collectors.duckdb.mapping import to_observed
from collectors.duckdb.position import JournalPosition
from collectors.duckdb.source import JournalSource
from collectors.events import to_json
from collectors.understanding import Understanding
from lakehouse_core.domain.errors import SourceError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.duckdb.journal import Journal
from tests.factories import NOW, query_event

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.domain.agent import DeadLetter, Watermark
    from lakehouse_core.domain.query import QueryEvent

NAME = "2026111612-4711.jsonl"


class Reader:
    """Pulls again and again, and keeps what came."""

    def __init__(self, folder: Path, *, batch_bytes: int = 10_000, now: datetime = NOW) -> None:
        self.now = now
        self._settings = JournalSettings(
            engine_id=EngineId("duckdb"), folder=folder, catalog="lake", batch_bytes=batch_bytes
        )
        self._mark: Watermark | None = None
        self.ids: list[str] = []
        self.letters: list[DeadLetter] = []

    def pull(self) -> list[str]:
        found: list[str] = []
        for batch in JournalSource(self._settings, Understanding(), lambda: self.now).pull(
            self._mark
        ):
            if "query_event" in batch.rows:
                found += batch.rows["query_event"].column("query_id").to_pylist()
            self.letters += batch.dead_letters
            self._mark = batch.watermark
        self.ids += found
        return found

    @property
    def position(self) -> dict[str, Any]:
        assert self._mark is not None
        return dict(json.loads(self._mark.position))


def line(event: QueryEvent) -> bytes:
    return json.dumps(to_json(event)).encode() + b"\n"


def test_what_our_engine_writes_is_what_is_read(tmp_path: Path) -> None:
    event = query_event(tags=("a", "b"), snapshot_ids=(1, 2), gateway_id="gw-1")
    Journal(tmp_path, lambda: NOW).write(event)
    (file,) = tmp_path.iterdir()
    observed = to_observed(file.read_bytes(), "lake", NOW)
    assert observed.event == event
    assert observed.default_catalog == "lake"


@pytest.mark.parametrize("text", [b"{", b"[]", b"\xff\xfe", b'{"engine_id": "duckdb"}', b"null"])
def test_a_line_that_is_no_event_is_refused(text: bytes) -> None:
    with pytest.raises(BadRowError):
        to_observed(text, None, NOW)


@pytest.mark.slow
@given(st.data())
def test_a_journal_read_while_it_grows_gives_each_line_once(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    events = [query_event(query_id=f"q-{n}", sql_text=None) for n in range(6)]
    blob = b"".join(line(event) for event in events)
    cuts = data.draw(st.lists(st.integers(0, len(blob)), max_size=4).map(sorted))
    reader = Reader(folder, batch_bytes=data.draw(st.sampled_from([1, 300, 100_000])))
    for cut in [*cuts, len(blob)]:
        (folder / NAME).write_bytes(blob[:cut])
        os.utime(folder / NAME, (NOW.timestamp(), NOW.timestamp()))
        reader.pull()
    assert reader.ids == [event.query_id for event in events]
    assert reader.letters == []


def test_a_line_that_is_never_finished_becomes_a_letter_after_the_overlap(tmp_path: Path) -> None:
    event = query_event()
    (tmp_path / NAME).write_bytes(line(event) + b'{"engine_id": "duck')
    os.utime(tmp_path / NAME, (NOW.timestamp(), NOW.timestamp()))
    reader = Reader(tmp_path)
    assert reader.pull() == [event.query_id]
    assert reader.letters == []
    reader.now = NOW + timedelta(minutes=6)
    assert reader.pull() == []
    assert "never finished" in reader.letters[0].reason
    assert reader.pull() == []
    assert len(reader.letters) == 1


def test_files_are_read_oldest_first_and_others_left_alone(tmp_path: Path) -> None:
    for hour in ("13", "11", "12"):
        (tmp_path / f"20261116{hour}-1.jsonl").write_bytes(line(query_event(query_id=f"q-{hour}")))
    (tmp_path / "notes.txt").write_text("not ours")
    assert Reader(tmp_path).pull() == ["q-11", "q-12", "q-13"]


def test_a_file_that_was_replaced_is_read_again_and_the_cut_is_told(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    (tmp_path / NAME).write_bytes(b"".join(line(query_event()) for _ in range(3)))
    reader.pull()
    (tmp_path / NAME).write_bytes(line(query_event(query_id="after")))
    assert reader.pull() == ["after"]
    assert "shrank" in reader.letters[0].reason


def test_the_position_forgets_files_of_long_ago_and_does_not_read_them_again(
    tmp_path: Path,
) -> None:
    old, new = tmp_path / "2026111001-1.jsonl", tmp_path / NAME
    for file in (old, new):
        file.write_bytes(line(query_event()))
    reader = Reader(tmp_path)
    assert len(reader.pull()) == 2
    assert set(reader.position["files"]) == {NAME}
    assert reader.pull() == []


def test_a_file_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(line(query_event()))
    reader = Reader(tmp_path)
    reader.pull()
    (tmp_path / NAME).unlink()
    assert reader.pull() == []
    assert reader.position["files"] == {}


def test_a_secret_in_a_broken_line_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b'{"sql_text": "CREATE SECRET (SECRET \'c4n4ry\')"\n')
    reader = Reader(tmp_path)
    reader.pull()
    assert "c4n4ry" not in reader.letters[0].payload


@pytest.mark.parametrize("text", ["", "{}", '{"v":2}', '{"v":1,"files":3,"done_before":""}'])
def test_a_position_of_somebody_else_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(SourceError, match="watermark"):
        JournalPosition.parse(text)
