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
import json
import multiprocessing
import os
import secrets
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse_core import duck
from lakehouse_core.config.models import StoreConfig
from lakehouse_core.store.client import StoreClient
from lakehouse_core.store.owner import OwnerStore, Tokens
from lakehouse_core.store.schema import schema_of
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.red import red

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    import pyarrow as pa

LIMITS = {"upsert_seconds": 30.0, "sqlite_ratio": 2.0, "page_p95_ms": 50.0}
START = datetime(2026, 11, 1, tzinfo=UTC)
DAYS = 30
PAGE_READS = 200
LITTLE = 1_000

# One row per number: what a history looks like, without two equal texts.
EVENTS = """
SELECT ['duckdb', 'spark', 'trino'][i % 3 + 1] AS engine_id,
  strftime(moment, '%Y%m%d_%H%M%S_') || lpad(i::VARCHAR, 9, '0') AS query_id,
  CASE WHEN i % 20 = 0 THEN 'failed' ELSE 'finished' END AS status,
  moment AS submitted_at, moment + INTERVAL 10 SECONDS AS collected_at, 2::TINYINT AS revision,
  'trino' AS dialect,
  'SELECT l_returnflag, sum(l_quantity) FROM lake.tpch.lineitem WHERE l_orderkey = ' || i
    || ' GROUP BY 1 ORDER BY 1' AS sql_text,
  'select' AS statement_kind, md5((i % 500)::VARCHAR) AS template_id, 'user' || i % 50 AS user_name,
  'bi' AS source, ['team:' || i % 7, 'demo'] AS tags, 'group' || i % 5 AS workload_group,
  moment AS started_at, moment + to_milliseconds(hash(i) % 5000) AS ended_at,
  hash(i) % 100 / 10 AS queued_ms, hash(i + 1) % 5000 / 10 AS execution_ms,
  hash(i + 2) % 5000 / 10 AS elapsed_ms, hash(i + 3) % 5000 / 10 AS cpu_ms,
  (hash(i) % 1000000000)::BIGINT AS bytes_scanned, (hash(i) % 1000000)::BIGINT AS rows_scanned,
  i % 1000 AS rows_returned, (hash(i) % 100000000)::BIGINT AS peak_memory_bytes,
  [i, i + 1]::BIGINT[] AS snapshot_ids, 'simulated' AS origin
FROM (SELECT range AS i, $start + to_microseconds(range * $step) AS moment
  FROM range($first, $last))
"""


def step(rows: int) -> timedelta:
    """Between two queries, when so many of them fill the days."""
    return timedelta(days=DAYS) / rows


def events(first: int, last: int, between: timedelta) -> pa.Table:
    with duck.connect() as connection:
        return connection.execute(
            EVENTS,
            {
                "start": START,
                "step": between // timedelta(microseconds=1),
                "first": first,
                "last": last,
            },
        ).to_arrow_table()


def own(store: StoreConfig, tokens: Tokens, ready: Event, ended: Event) -> None:
    with OwnerStore.open(store, tokens=tokens):
        ready.set()
        ended.wait()


def write_on(store: StoreConfig, token: str, first: int, written: Any, ended: Event) -> None:
    """Small batches, one after the other, until told to stop."""
    rows = events(first, first + 300 * LITTLE, step(first))
    with StoreClient(store, token=token, role="writer") as client:
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
    end = START + step(last) * last
    spent = []
    for number in range(PAGE_READS):
        filters = Filters(window="24h", user=None if number % 2 else f"user{number % 50}")
        start = time.perf_counter()
        shown = red(client, filters, lambda: end)
        spent.append((time.perf_counter() - start) * 1000)
        assert shown.total.queries > 0
    cuts = statistics.quantiles(spent, n=20)
    return {"page_p50_ms": round(cuts[9], 1), "page_p95_ms": round(cuts[18], 1)}


def measure(folder: Path, rows: int, stored: int) -> dict[str, float]:
    tokens = Tokens(secrets.token_hex(16), secrets.token_hex(16))
    store = StoreConfig(
        path=folder / "telemetry.duckdb",
        spool=folder / "spool",
        backups=folder / "backups",
        port=free_ports(),
    )
    spawn = multiprocessing.get_context("spawn")
    ready, ended, written = spawn.Event(), spawn.Event(), spawn.Value("q", 0)
    owner = spawn.Process(target=own, args=(store, tokens, ready, ended))
    owner.start()
    last = stored + rows
    between = step(last)
    writer = spawn.Process(
        target=write_on, args=(store, tokens.writer, last + LITTLE, written, ended)
    )
    try:
        assert ready.wait(120), "the owner did not start"
        figures: dict[str, float] = {"rows": rows, "stored_before": stored, "days": DAYS}
        with StoreClient(store, token=tokens.writer, role="writer") as client:
            for first in range(0, stored, 1_000_000):
                end = min(first + 1_000_000, stored)
                client.upsert("query_event", events(first, end, between))
            batch = events(stored, last, between)
            first_pass, second_pass = time_upserts(client, batch)
            little = time_upserts(client, events(last, last + LITTLE, between))
        lite = time_sqlite(folder, batch)
        figures |= {
            "upsert_seconds": round(first_pass, 2),
            "again_seconds": round(second_pass, 2),
            "thousand_rows_ms": round(little[0] * 1000, 1),
            "sqlite_seconds": round(lite[0], 2),
            "sqlite_again_seconds": round(lite[1], 2),
            "sqlite_ratio": round(sum(lite) / (first_pass + second_pass), 2),
        }
        del batch
        with StoreClient(store, token=tokens.reader) as client:
            figures["idle"] = time_pages(client, last)["page_p95_ms"]
            writer.start()
            while not written.value:
                time.sleep(0.01)
            start = time.perf_counter()
            figures |= time_pages(client, last)
            seconds = time.perf_counter() - start
        figures["idle_page_p95_ms"] = figures.pop("idle")
        figures["rows_written_per_second_meanwhile"] = round(written.value / seconds)
    finally:
        ended.set()
        for process in (writer, owner):
            if process.pid is not None:
                process.join(60)
    return figures


def free_ports() -> int:
    with socket.socket() as first:
        first.bind(("127.0.0.1", 0))
        return min(int(first.getsockname()[1]), 65_000)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--stored", type=int, default=0, help="rows in the store beforehand")
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakehelm-bench-") as folder:
        found = measure(Path(folder), given.rows, given.stored)
    is_ok = (
        found["upsert_seconds"] <= LIMITS["upsert_seconds"]
        and found["sqlite_ratio"] >= LIMITS["sqlite_ratio"]
        and found["page_p95_ms"] <= LIMITS["page_p95_ms"]
    )
    result = {
        "benchmark": "store",
        **found,
        "load_average": os.getloadavg()[0],
        "figures": {name: found[name] for name in LIMITS},
        "limits": LIMITS,
        "ok": is_ok,
    }
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if is_ok else 1


if __name__ == "__main__":
    sys.exit(main())
