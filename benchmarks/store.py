"""The telemetry store: upserts through a client process, and page reads while a writer is busy.

    python benchmarks/store.py --json [--rows 1000000] [--stored 0]

Three processes: the owner, a client that writes, and this one, which reads: rate, errors and
durations of the last day, as the overview shows them, for all users and for one in turn.

SQLite's `executemany` with the same key and the same rule runs in the same process as our client,
on the same rows, already turned into tuples for it. Both sides write all rows twice: the second
pass must change nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sqlite3
import statistics
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, its folder is on the path only

from benchmarks import _store
from lakehouse_core import duck
from lakehouse_core.store.client import StoreClient
from lakehouse_core.store.schema import schema_of
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.red import red

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    import pyarrow as pa

    from lakehouse_core.config.models import StoreConfig

LIMITS = {"upsert_seconds": 30.0, "sqlite_ratio": 2.0, "page_p95_ms": 50.0}
DAYS = 30
PAGE_READS = 200
LITTLE = 1_000


def step(rows: int) -> timedelta:
    """Between two queries, when so many of them fill the days."""
    return timedelta(days=DAYS) / rows


def events(first: int, last: int, between: timedelta) -> pa.Table:
    with duck.connect() as connection:
        return connection.execute(
            _store.EVENTS,
            {
                "start": _store.START,
                "step": between // timedelta(microseconds=1),
                "first": first,
                "last": last,
            },
        ).to_arrow_table()


def write_on(store: StoreConfig, first: int, written: Any, ended: Event) -> None:
    """Small batches, one after the other, until told to stop."""
    rows = events(first, first + 300 * LITTLE, step(first))
    with StoreClient(store, token=_store.TOKENS.writer, role="writer") as client:
        while not ended.is_set():
            client.upsert("query_event", rows.slice(written.value % rows.num_rows, LITTLE))
            written.value += LITTLE


def time_upserts(client: StoreClient, rows: pa.Table) -> tuple[float, float]:
    seconds = []
    for expected in (rows.num_rows, 0):
        start = time.perf_counter()
        changed = client.upsert("query_event", rows)
        seconds.append(time.perf_counter() - start)
        assert changed == expected, f"{changed} rows changed, expected {expected}"
        assert not client.spool.pending(), "the owner was away"
    return seconds[0], seconds[1]


def time_sqlite(folder: Path, rows: pa.Table) -> tuple[float, float]:
    names = schema_of("query_event").names
    given = [
        [None] * rows.num_rows if name not in rows.column_names else _plain(rows.column(name))
        for name in names
    ]
    tuples = list(zip(*given, strict=True))
    columns = ", ".join(names)
    marks = ", ".join("?" for _ in names)
    update = ", ".join(f"{name} = excluded.{name}" for name in names[2:])
    statement = (
        f"INSERT INTO query_event ({columns}) VALUES ({marks}) "  # noqa: S608 names of our schema
        f"ON CONFLICT DO UPDATE SET {update} WHERE excluded.revision >= revision"
    )
    seconds = []
    connection = sqlite3.connect(folder / "sqlite.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(
        f"CREATE TABLE query_event ({columns}, PRIMARY KEY (engine_id, query_id)) WITHOUT ROWID"
    )
    for _ in range(2):
        start = time.perf_counter()
        with connection:
            connection.executemany(statement, tuples)
        seconds.append(time.perf_counter() - start)
    connection.close()
    return seconds[0], seconds[1]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    values = column.to_pylist()
    if values and isinstance(values[0], datetime | list):
        return [str(value) for value in values]
    return values


def time_pages(client: StoreClient, last: int) -> dict[str, float]:
    end = _store.START + step(last) * last
    spent = []
    for number in range(PAGE_READS):
        filters = Filters(window="24h", user=None if number % 2 else f"user{number % 50}")
        start = time.perf_counter()
        shown = red(client, filters, lambda: end)
        spent.append((time.perf_counter() - start) * 1000)
        assert shown.total.queries > 0
    cuts = statistics.quantiles(spent, n=20)
    return {"page_p50_ms": round(cuts[9], 1), "page_p95_ms": round(cuts[18], 1)}


def time_writes(store: StoreConfig, folder: Path, rows: int, stored: int) -> dict[str, float]:
    """Upserts into the store as it is, beside SQLite's."""
    last = stored + rows
    between = step(last)
    with StoreClient(store, token=_store.TOKENS.writer, role="writer") as client:
        for some in _store.chunks(stored):
            client.upsert("query_event", events(**some, between=between))
        batch = events(stored, last, between)
        first_pass, second_pass = time_upserts(client, batch)
        little = time_upserts(client, events(last, last + LITTLE, between))
    lite = time_sqlite(folder, batch)
    return {
        "upsert_seconds": round(first_pass, 2),
        "again_seconds": round(second_pass, 2),
        "thousand_rows_ms": round(little[0] * 1000, 1),
        "sqlite_seconds": round(lite[0], 2),
        "sqlite_again_seconds": round(lite[1], 2),
        "sqlite_ratio": round(sum(lite) / (first_pass + second_pass), 2),
    }


def time_reads(store: StoreConfig, last: int) -> dict[str, float]:
    """Page reads without a writer, then beside one."""
    spawn = multiprocessing.get_context("spawn")
    ended, written = spawn.Event(), spawn.Value("q", 0)
    writer = spawn.Process(target=write_on, args=(store, last + LITTLE, written, ended))
    with StoreClient(store, token=_store.TOKENS.reader) as client:
        idle = time_pages(client, last)["page_p95_ms"]
        writer.start()
        try:
            while not written.value:
                time.sleep(0.01)
            start = time.perf_counter()
            busy = time_pages(client, last)
            seconds = time.perf_counter() - start
        finally:
            ended.set()
            writer.join(60)
    return busy | {
        "idle_page_p95_ms": idle,
        "rows_written_per_second_meanwhile": round(written.value / seconds),
    }


def measure(folder: Path, rows: int, stored: int) -> dict[str, float]:
    store = _store.demo_config(folder).store
    with _store.served(store):
        figures: dict[str, float] = {"rows": rows, "stored_before": stored, "days": DAYS}
        figures |= time_writes(store, folder, rows, stored)
        return figures | time_reads(store, stored + rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--stored", type=int, default=0, help="rows in the store beforehand")
    _store.add_json(parser)
    given = parser.parse_args()
    with _store.folder_of() as folder:
        found = measure(folder, given.rows, given.stored)
    is_ok = (
        found["upsert_seconds"] <= LIMITS["upsert_seconds"]
        and found["sqlite_ratio"] >= LIMITS["sqlite_ratio"]
        and found["page_p95_ms"] <= LIMITS["page_p95_ms"]
    )
    return _store.tell("store", found, LIMITS, is_ok, given.json)


if __name__ == "__main__":
    sys.exit(main())
