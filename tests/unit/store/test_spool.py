"""The spool: durable before acknowledged, replayed in order, broken files never block."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.errors import StoreError
from lakehouse_core.store.batch import prepare
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.spool import Spool, replay
from tests.factories import NOW, query_event, watermark

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from lakehouse_core.config.models import StoreConfig


def put(spool: Spool, table: str, *records: object) -> Path:
    return spool.keep(spool.write(table, prepare(table, to_arrow(table, records))))


@pytest.fixture
def spool(place: StoreConfig) -> Spool:
    return Spool(place.spool)


def position(store: OwnerStore) -> str:
    return str(store.read("SELECT position FROM watermark").column("position")[0].as_py())


def test_what_waits_is_written_at_the_next_start_and_gone_from_the_spool(
    place: StoreConfig, spool: Spool
) -> None:
    event = query_event()
    put(spool, "query_event", event)
    put(spool, "query_event", event)
    with OwnerStore.open(place) as store:
        assert store.read("SELECT query_id FROM query_event").to_pylist() == [
            {"query_id": event.query_id}
        ]
    assert spool.pending() == []


def test_batches_are_replayed_in_the_order_they_were_written(
    place: StoreConfig, spool: Spool
) -> None:
    for number in range(5):
        put(spool, "watermark", watermark(position=str(number)))
    with OwnerStore.open(place) as store:
        assert position(store) == "4"


def test_batches_of_one_table_are_merged_at_once_though_writers_took_turns(spool: Spool) -> None:
    for number in range(4):
        put(spool, "watermark", watermark(position=str(number)))
        put(spool, "query_event", query_event(query_id=f"q{number}"))
    merged: list[tuple[str, list[str]]] = []

    def merge(table: str, rows: pa.Table) -> None:
        column = "position" if table == "watermark" else "query_id"
        merged.append((table, rows.column(column).to_pylist()))

    assert replay(spool, merge) == 8
    assert merged == [
        ("query_event", ["q0", "q1", "q2", "q3"]),
        ("watermark", ["0", "1", "2", "3"]),
    ]
    assert spool.pending() == []


def test_an_upsert_does_not_overtake_what_waits_for_its_table(
    store: OwnerStore, spool: Spool
) -> None:
    put(spool, "watermark", watermark(position="old"))
    new = watermark(position="new", updated_at=NOW + timedelta(seconds=1))
    store.upsert("watermark", to_arrow("watermark", [new]))
    assert spool.pending() == []
    assert position(store) == "new"


def test_a_broken_batch_is_put_aside_with_its_reason_and_blocks_nobody(
    store: OwnerStore, spool: Spool
) -> None:
    torn = put(spool, "query_event", query_event())
    torn.write_bytes(torn.read_bytes()[:-100])
    stranger = torn.with_name("20260101T000000000000-1-000001.nowhere.parquet")
    stranger.write_bytes(b"")
    wrong = put(spool, "query_event", query_event()).rename(
        torn.with_name("20260101T000000000000-1-000002.watermark.parquet")
    )
    good = query_event()
    put(spool, "query_event", good)
    assert store.replay_spool() == 1
    assert store.read("SELECT query_id FROM query_event").to_pylist() == [
        {"query_id": good.query_id}
    ]
    assert {path.name for path in spool.broken_files()} == {torn.name, stranger.name, wrong.name}
    reasons = {path.name: path.read_text() for path in spool.broken.glob("*.reason")}
    assert "cannot be read" in reasons[f"{torn.name}.reason"]
    assert "names no table" in reasons[f"{stranger.name}.reason"]
    assert "has no column" in reasons[f"{wrong.name}.reason"]


def test_batches_in_flight_of_a_dead_process_are_forgotten_and_of_a_living_one_kept(
    store: OwnerStore, spool: Spool
) -> None:
    rows = prepare("query_event", to_arrow("query_event", [query_event()]))
    mine = spool.write("query_event", rows)
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    theirs = mine.with_name(mine.name.replace(f"-{os.getpid()}-", f"-{dead}-"))
    theirs.write_bytes(mine.read_bytes())
    store.replay_spool()
    assert (mine.exists(), theirs.exists()) == (True, False)
    assert store.read("SELECT 1 FROM query_event").num_rows == 0


def test_a_spool_that_cannot_be_written_is_not_an_acknowledgement(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file where the folder should be")
    spool = Spool(tmp_path / "spool")
    with pytest.raises(StoreError, match="not acknowledged"):
        put(spool, "query_event", query_event())


def test_names_sort_by_time_also_within_one_moment(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", clock=lambda: NOW)
    written = [put(spool, "watermark", watermark()) for _ in range(12)]
    assert spool.pending("watermark") == written
    assert spool.pending("query_event") == []
