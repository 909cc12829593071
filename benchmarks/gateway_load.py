"""The gateway under many clients for minutes, and one large result: errors of ours, and memory.

    python benchmarks/gateway_load.py --json [--clients 2000] [--seconds 600] [--rows 5000000]

Clients are connections of both protocols that send one statement after another, with new literals,
to three engines behind one gateway: a mock Trino, and DuckDB and a mock Spark inside of it. Who is
told that a queue is full is counted apart; everything else that is not the right answer is an error
of ours. Memory is the gateway's resident set: flat when the mean of the last third is at most a
tenth above that of the second third. The large result is DuckDB's, read over Trino's protocol and
PostgreSQL's by a client that throws the rows away; added memory is the peak over what was held
before.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import os
import struct
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import uvloop

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the mock and the helpers of the sibling

from benchmarks.gateway import (  # noqa: E402 as above
    HOST,
    Client,
    HealthyStore,
    free_ports,
    serve_mock,
    statement,
    wait_until_served,
)
from lakehouse_core.config import load_config  # noqa: E402 as above

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITS = {"errors": 0, "memory_growth": 1.1, "added_mb": 200.0}
ENGINES = ("trino", "duckdb", "spark")
SQL = "SELECT {} AS n, 'x' AS t"


def serve_gateway(port: int, postgres: int, mock: int, home: str) -> None:
    """The gateway with three engines, chosen by the user's name."""
    from lakehouse_core.bootstrap import open_sql_port  # noqa: PLC0415 of the child only
    from lakehouse_core.domain.query import EngineId  # noqa: PLC0415 as above
    from lakehouse_core.store.owner import OwnerStore  # noqa: PLC0415 as above

    environ = {
        "LAKEHELM_HOME": home,
        "LAKEHELM__ENGINES__TRINO__PORT": str(mock),
        "LAKEHELM__GATEWAY__SQL__PORT": str(port),
        "LAKEHELM__GATEWAY__SQL__POSTGRES_PORT": str(postgres),
    }
    config = load_config(ROOT / "config" / "lakehelm.yaml", environ).config
    routing = {
        "clusterGroups": {
            name: {"members": [name], "maxQueuedQueries": 4_000, "capacityWaitTimeoutSecs": 120}
            for name in ENGINES
        },
        "routers": [{"type": "userGroup", "userToGroup": {name: name for name in ENGINES}}],
        "routingFallback": "trino",
    }
    config = config.model_copy(
        update={"routing": type(config.routing).model_validate(routing), "collect": {}}
    )
    config.catalogs["lake"].warehouse.mkdir(parents=True, exist_ok=True)

    async def run() -> None:
        sql = open_sql_port(config, HealthyStore(OwnerStore.at(Path(home) / "store"), *ENGINES))  # type: ignore[arg-type] # as a store
        sql._parts.engines[EngineId("spark")] = MockSpark(EngineId("spark"))  # type: ignore[index] # no JVM here
        await sql.start()
        await asyncio.Event().wait()

    uvloop.run(run())


class MockSpark:
    """An engine that is streamed from and answers at once."""

    def __init__(self, engine_id: Any) -> None:
        from lakehouse_core.engines.spark.adapter import CAPABILITIES  # noqa: PLC0415 of the child

        self.engine_id, self.capabilities = engine_id, CAPABILITIES

    @contextmanager
    def stream(self, statement: Any) -> Iterator[Any]:
        """One row."""
        import pyarrow as pa  # noqa: PLC0415 of the child only

        from lakehouse_core.engines.base import Cost, RowStream  # noqa: PLC0415 as above

        del statement
        rows = pa.table({"n": pa.array([1], pa.int64()), "t": ["x"]})
        yield RowStream(
            query_id="q", schema=rows.schema, batches=iter(rows.to_batches()), cost=Cost()
        )

    def cancel(self, query_id: str) -> bool:
        """Nothing runs long enough."""
        del query_id
        return False

    def close(self) -> None:
        """Nothing is open."""


@dataclass(slots=True)
class Seen:
    """What clients and the watcher saw."""

    answered: Counter[str] = field(default_factory=Counter)
    full: int = 0
    errors: list[str] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)


async def trino_client(port: int, engine: str, seen: Seen, numbers: Any, until: float) -> None:
    _, client = await asyncio.get_running_loop().create_connection(Client, HOST, port)
    user = f"X-Trino-User: {engine}\r\n".encode()
    while time.monotonic() < until:
        request = statement(port, SQL.format(next(numbers)))
        _, answer = await client.ask(request.replace(b"X-Trino-User: bench\r\n", user))
        while b'"nextUri"' in answer and b'"error"' not in answer:
            path = (
                "/"
                + answer.partition(b'"nextUri":"')[2].partition(b'"')[0].decode().split("/", 3)[3]
            )
            head = f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nX-Trino-User: {engine}\r\n\r\n"
            last, (_, answer) = answer, await client.ask(head.encode())
            answer = answer if b'"data"' in answer or b'"nextUri"' in answer else last + answer
            if b'"data"' in answer and b'"nextUri"' not in answer.rpartition(b"\r\n\r\n")[2]:
                break
        note(seen, f"trino_{engine}", answer, is_right=b'"data"' in answer)
    client._transport.close()


async def postgres_client(port: int, engine: str, seen: Seen, numbers: Any, until: float) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    body = struct.pack("!i", 196_608) + f"user\0{engine}\0database\0lake\0\0".encode()
    writer.write(struct.pack("!i", len(body) + 4) + body)
    await until_ready(reader)
    while time.monotonic() < until:
        text = SQL.format(next(numbers)).encode() + b"\0"
        writer.write(b"Q" + struct.pack("!i", len(text) + 4) + text)
        rows, error = await until_ready(reader)
        note(seen, f"postgres_{engine}", error, is_right=rows == 1)
    writer.close()


async def until_ready(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Rows and an error that came before the gateway was ready for more."""
    rows, error = 0, b""
    while True:
        kind, length = struct.unpack("!ci", await reader.readexactly(5))
        body = await reader.readexactly(length - 4)
        if kind == b"D":
            rows += 1
        elif kind == b"E":
            error = body
        elif kind == b"Z":
            return rows, error


def note(seen: Seen, name: str, answer: bytes, *, is_right: bool) -> None:
    if is_right:
        seen.answered[name] += 1
    elif b"queue" in answer and b"full" in answer:
        seen.full += 1
    else:
        seen.errors.append(f"{name}: {answer[-300:]!r}")


async def load(ports: tuple[int, int], pid: int, clients: int, seconds: float) -> Seen:
    seen, numbers = Seen(), itertools.count(1)
    until = time.monotonic() + seconds
    process = psutil.Process(pid)

    async def watch() -> None:
        while time.monotonic() < until:
            seen.memory.append((time.monotonic(), process.memory_info().rss))
            await asyncio.sleep(0.5)

    async def one(number: int) -> None:
        await asyncio.sleep(number % 200 / 100)  # not all in one moment
        kind, port = ((trino_client, ports[0]), (postgres_client, ports[1]))[number // 3 % 2]
        try:
            await kind(port, ENGINES[number % 3], seen, numbers, until)
        except (OSError, asyncio.IncompleteReadError) as error:
            seen.errors.append(f"client {number}: {error!r}")

    await asyncio.gather(watch(), *(one(number) for number in range(clients)))
    return seen


async def large(ports: tuple[int, int], pid: int, rows: int, protocol: str) -> dict[str, float]:
    """Read one large result; the peak of the gateway's memory over what it held before."""
    process = psutil.Process(pid)
    before = peak = process.memory_info().rss
    is_over = asyncio.Event()

    async def watch() -> None:
        nonlocal peak
        while not is_over.is_set():
            peak = max(peak, process.memory_info().rss)
            await asyncio.sleep(0.02)

    watcher = asyncio.create_task(watch())
    started = time.monotonic()
    sql = (
        f"SELECT r AS n, 'row number ' || CAST(r AS varchar) AS t FROM lake.bench.big LIMIT {rows}"  # noqa: S608
    )
    got = await (read_trino if protocol == "trino" else read_postgres)(ports, sql)
    seconds = time.monotonic() - started
    is_over.set()
    await watcher
    return {
        "asked": rows,
        "rows": got,
        "seconds": round(seconds, 2),
        "rows_per_second": round(got / seconds),
        "added_mb": round((peak - before) / 2**20, 1),
    }


async def read_postgres(ports: tuple[int, int], sql: str) -> int:
    reader, writer = await asyncio.open_connection(HOST, ports[1], limit=2**20)
    body = struct.pack("!i", 196_608) + b"user\0duckdb\0database\0lake\0\0"
    writer.write(struct.pack("!i", len(body) + 4) + body)
    await until_ready(reader)
    text = sql.encode() + b"\0"
    writer.write(b"Q" + struct.pack("!i", len(text) + 4) + text)
    rows = await count_rows(reader)
    writer.close()
    return rows


async def count_rows(reader: asyncio.StreamReader) -> int:
    """The rows up to the end of the result; nothing is kept of them."""
    head, rows, buffer = struct.Struct("!ci"), 0, b""
    while True:
        buffer += await reader.read(2**18)
        at = 0
        while at + 5 <= len(buffer):
            kind, length = head.unpack_from(buffer, at)
            if at + 1 + length > len(buffer):
                break
            assert kind != b"E", buffer[at : at + 1 + length]
            rows += kind == b"D"
            if kind == b"Z":
                return rows
            at += 1 + length
        buffer = buffer[at:]


async def read_trino(ports: tuple[int, int], sql: str) -> int:
    import httpx  # noqa: PLC0415 used here only

    rows, headers = 0, {"X-Trino-User": "duckdb"}
    async with httpx.AsyncClient(trust_env=False, timeout=120, headers=headers) as client:
        answer = await client.post(f"http://{HOST}:{ports[0]}/v1/statement", content=sql)
        page = answer.json()
        rows += len(page.get("data") or ())
        while "nextUri" in page:
            page = (await client.get(page["nextUri"])).json()
            assert "error" not in page, page["error"]
            rows += len(page.get("data") or ())
    return rows


def make_big(home: Path, rows: int) -> None:
    """A table of the lake with as many rows."""
    import pyarrow as pa  # noqa: PLC0415 used here only

    from lakehouse_core.catalog import open_catalog  # noqa: PLC0415 as above

    config = load_config(ROOT / "config" / "lakehelm.yaml", {"LAKEHELM_HOME": str(home)}).config
    config.catalogs["lake"].warehouse.mkdir(parents=True, exist_ok=True)
    lake = open_catalog("lake", config.catalogs["lake"])
    iceberg = lake.iceberg()
    iceberg.create_namespace_if_not_exists("bench")
    schema = pa.schema([("r", pa.int64())])
    table = iceberg.create_table_if_not_exists("bench.big", schema=schema)
    table.append(pa.table({"r": pa.array(range(rows), pa.int64())}, schema=schema))
    iceberg.close()
    lake.close()


def growth(memory: list[tuple[float, int]]) -> float:
    """The mean of the last third over that of the second."""
    third = max(1, len(memory) // 3)
    values = [size for _, size in memory]
    middle, last = values[third : 2 * third] or values, values[2 * third :] or values
    return round((sum(last) / len(last)) / (sum(middle) / len(middle)), 3)


def run(clients: int, seconds: float, rows: int) -> dict[str, Any]:
    mock, port, postgres = free_ports(3)
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        home = Path(name) / "home"
        make_big(home, rows)
        children = [
            spawn.Process(target=serve_mock, args=(mock,), daemon=True),
            spawn.Process(
                target=serve_gateway, args=(port, postgres, mock, str(home)), daemon=True
            ),
        ]
        for child in children:
            child.start()
            stack.callback(child.terminate)
        wait_until_served(mock)
        wait_until_served(port)
        pid = children[1].pid or 0
        ports = (port, postgres)
        results = {one: uvloop.run(large(ports, pid, rows, one)) for one in ("postgres", "trino")}
        seen = uvloop.run(load(ports, pid, clients, seconds))
    return report(clients, seconds, results, seen)


def report(clients: int, seconds: float, results: dict[str, Any], seen: Seen) -> dict[str, Any]:
    figures = {
        "errors": len(seen.errors) + sum(one["rows"] != one["asked"] for one in results.values()),
        "memory_growth": growth(seen.memory),
        "added_mb": max(one["added_mb"] for one in results.values()),
    }
    sizes = [size / 2**20 for _, size in seen.memory]
    return {
        "benchmark": "gateway_load",
        "clients": clients,
        "seconds": seconds,
        "answered": dict(seen.answered),
        "answered_per_second": round(sum(seen.answered.values()) / seconds),
        "told_that_the_queue_is_full": seen.full,
        "first_errors": seen.errors[:5],
        "memory_mb": [round(size) for size in sizes[:: max(1, len(sizes) // 12)]],
        "large_result": results,
        "load_average": os.getloadavg()[0],
        "figures": figures,
        "limits": LIMITS,
        "ok": all(figures[name] <= limit for name, limit in LIMITS.items()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    result = run(given.clients, given.seconds, given.rows)
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
