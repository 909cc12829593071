"""What the gateway adds to a statement, beside trino-gateway, on one mock Trino on loopback.

    python benchmarks/gateway.py --json [--requests 400] [--rounds 5] [--no-peer]

Each way is a process of its own: the mock asked directly, our gateway (router, guard, record and
all), and trino-gateway 18 at its leanest (history off, backend cache on, log WARN, H2 in memory).
In every round all ways are asked in turn, in a new order. A statement is a POST that is answered
with its only page; `poll` is a GET of a further page. Added latency is the difference of medians.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import uvloop

from lakehouse_core.config import load_config
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.gateway.http import Address, Exchange, HttpServer
from lakehouse_core.routing.lifecycle import FLEET_SQL
from lakehouse_core.runtime.artifacts import Artifact, ensure
from lakehouse_core.runtime.ivy import Coordinates
from lakehouse_core.runtime.java import find_javas, java_for_trino
from lakehouse_core.runtime.report import SilentReporter
from lakehouse_core.store.owner import OwnerStore

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITS = {"added_ms_c1": 0.35, "ratio_to_peer_c1": 0.5}
HOST = "127.0.0.1"
ROOT = Path(__file__).parents[1]
PEER = Artifact(
    Coordinates("io.trino.gateway", "gateway-ha", "18", "jar", "jar-with-dependencies"),
    93_590_329,
    "e00dd2fbab17c61340ce34669a5f4332f99acfd8bf1a1f0a6e0f4c3d82c70681",
)
H2 = Artifact(
    Coordinates("com.h2database", "h2", "2.3.232", "jar"),
    2_651_157,
    "8dae62d22db8982c3dcb3826edb9c727c5d302063a67eef7d63d82de401f07d3",
)
QUERY_ID = "20260101_000000_00001_abcde"
SQL = "SELECT o_orderpriority, count(*) FROM lake.tpch.orders WHERE o_orderkey = {} GROUP BY 1"
PAGE: dict[str, Any] = {
    "columns": [
        {"name": "x", "type": "bigint", "typeSignature": {"rawType": "bigint", "arguments": []}}
    ],
    "data": [[1]],
    "stats": {
        "state": "FINISHED", "queued": False, "scheduled": True, "nodes": 1, "totalSplits": 1,
        "queuedSplits": 0, "runningSplits": 0, "completedSplits": 1, "cpuTimeMillis": 1,
        "wallTimeMillis": 1, "queuedTimeMillis": 0, "elapsedTimeMillis": 1, "processedRows": 1,
        "processedBytes": 1, "physicalInputBytes": 1, "peakMemoryBytes": 1, "spilledBytes": 0,
    },
    "warnings": [],
}  # fmt: skip
PEER_TABLES = """
CREATE TABLE IF NOT EXISTS gateway_backend (name VARCHAR(256) PRIMARY KEY, routing_group VARCHAR(256), backend_url VARCHAR(256), external_url VARCHAR(256), active BOOLEAN);
CREATE TABLE IF NOT EXISTS query_history (query_id VARCHAR(256) PRIMARY KEY, query_text VARCHAR(256), created BIGINT, backend_url VARCHAR(256), user_name VARCHAR(256), source VARCHAR(256), routing_group VARCHAR(256), external_url VARCHAR(256));
CREATE TABLE IF NOT EXISTS resource_groups (resource_group_id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(250));
CREATE TABLE IF NOT EXISTS resource_groups_global_properties (name VARCHAR(128) PRIMARY KEY, "value" VARCHAR(512));
CREATE TABLE IF NOT EXISTS exact_match_source_selectors (environment VARCHAR(256), source VARCHAR(256), query_type VARCHAR(256), resource_group_id VARCHAR(256), update_time TIMESTAMP);
"""  # noqa: E501 as the peer's own migrations have them


@dataclass(slots=True)
class Way:
    """A way to the mock, and how long each request took."""

    name: str
    port: int
    seconds: dict[str, list[float]] = field(default_factory=dict)


def page(port: int, number: int) -> bytes:
    base = f"http://{HOST}:{port}"
    head: dict[str, Any] = {"id": QUERY_ID, "infoUri": f"{base}/ui/query.html?{QUERY_ID}"}
    if number:
        head["nextUri"] = f"{base}/v1/statement/executing/{QUERY_ID}/slug/{number}"
    return json.dumps({**head, **PAGE}, separators=(",", ":")).encode()


def serve_mock(port: int) -> None:
    """The mock: answers at once; a statement that says POLL has a next page for ever."""
    last, more = page(port, 0), page(port, 1)
    info = b'{"nodeVersion":{"version":"476"},"starting":false,"coordinator":true}'

    def handle(exchange: Exchange) -> None:
        if exchange.path.startswith("/v1/statement"):
            is_polled = exchange.method == "GET" or b"POLL" in exchange.body
            exchange.respond(200, more if is_polled else last)
        else:
            exchange.respond(200, info)

    serve(HttpServer(handle), port)


def serve(server: HttpServer, port: int) -> None:
    async def run() -> None:
        await server.start(Address(HOST, port))
        await asyncio.Event().wait()

    uvloop.run(run())


def serve_ours(port: int, mock: int, home: str) -> None:
    """Our gateway as it runs, with one Trino behind it that was found healthy."""
    from lakehouse_core.bootstrap import open_sql_port  # noqa: PLC0415 of the child only

    environ = {
        "LAKEHELM_HOME": home,
        "LAKEHELM__ENGINES__TRINO__PORT": str(mock),
        "LAKEHELM__ENGINES__SPARK__ENABLED": "false",
        "LAKEHELM__ENGINES__DUCKDB__ENABLED": "false",
        "LAKEHELM__GATEWAY__SQL__PORT": str(port),
        "LAKEHELM__ROUTING": "{}",
    }
    config = load_config(ROOT / "config" / "lakehelm.yaml", environ).config
    trino = config.engines["trino"].model_copy(update={"max_running": 1_000})
    config = config.model_copy(update={"engines": {"trino": trino}})
    config.catalogs["lake"].warehouse.mkdir(parents=True, exist_ok=True)

    async def run() -> None:
        sql = open_sql_port(config, HealthyStore(OwnerStore.at(Path(home) / "store")))
        await sql.start()
        await asyncio.Event().wait()

    uvloop.run(run())


class HealthyStore:
    """A store that finds every engine healthy whenever it is asked, and is a real one otherwise."""

    def __init__(self, store: Any, *engines: str) -> None:
        self._store = store
        self._engines = engines or ("trino",)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, sql: str, **params: Any) -> Any:
        """The engines' states, or what the store has."""
        import pyarrow as pa  # noqa: PLC0415 of the child only

        if sql != FLEET_SQL:
            return self._store.read(sql, **params)
        rows = [
            {
                "engine_id": name, "configured": "active", "changed_by": None, "reason": None,
                "observed": "healthy", "probed_at": utc_now(), "detail": None,
                "running_queries": 0,
            }
            for name in self._engines
        ]  # fmt: skip
        return pa.Table.from_pylist(rows)


@contextlib.contextmanager
def peer(folder: Path, mock: int, port: int) -> Iterator[None]:
    """trino-gateway at its leanest."""
    machine = read_machine()
    jar, h2 = ensure(machine, (PEER, H2), SilentReporter())
    java = java_for_trino(find_javas(machine))
    script = folder / "tables.sql"
    script.write_text(
        PEER_TABLES + "MERGE INTO gateway_backend KEY (name) VALUES "
        f"('mock', 'adhoc', 'http://{HOST}:{mock}', 'http://{HOST}:{mock}', TRUE);\n"
    )
    (folder / "log.properties").write_text("io.trino=WARN\nio.airlift=WARN\n")
    url = f"jdbc:h2:mem:peer;DB_CLOSE_DELAY=-1;MODE=MySQL;INIT=RUNSCRIPT FROM '{script}'"
    config = folder / "peer.yaml"
    config.write_text(
        f"""serverConfig:
  node.environment: bench
  http-server.http.port: {port}
  log.levels-file: {folder / "log.properties"}
dataStore:
  jdbcUrl: "{url}"
  user: sa
  password: sa
  driver: org.h2.Driver
  queryHistoryEnabled: false
  runMigrationsEnabled: false
routingRules:
  rulesEngineEnabled: false
clusterStatsConfiguration:
  monitorType: INFO_API
monitor:
  taskDelay: 1s
databaseCache:
  enabled: true
"""
    )
    log = (folder / "peer.log").open("wb")
    process = subprocess.Popen(
        [
            str(java.executable), "-Xmx512m", "-cp", f"{jar}:{h2}",
            "io.trino.gateway.ha.HaGatewayLauncher", str(config),
        ],
        stdout=log,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        wait_until_served(port, process)
        yield
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def wait_until_served(port: int, process: Any = None, seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    headers = {"X-Trino-User": "bench"}
    while time.monotonic() < deadline:
        if process is not None and process.poll() is not None:
            raise RuntimeError("the peer ended; see its log")
        with contextlib.suppress(httpx.HTTPError, ValueError):
            answer = httpx.post(
                f"http://{HOST}:{port}/v1/statement", content=b"SELECT 1", headers=headers,
                trust_env=False,
            )  # fmt: skip
            if answer.status_code == 200 and "error" not in answer.json():
                return
        time.sleep(0.3)
    raise RuntimeError(f"nothing answers on port {port}")


class Client(asyncio.Protocol):
    """Sends a request, waits for its answer; counts nothing but the time between."""

    def __init__(self) -> None:
        self._buffer = b""
        self._waiter: asyncio.Future[bytes] | None = None
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        """Connected."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Put the answer together."""
        self._buffer += data
        head, blank, body = self._buffer.partition(b"\r\n\r\n")
        if not blank:
            return
        lowered = head.lower()
        if b"transfer-encoding: chunked" in lowered:
            is_whole = self._buffer.endswith(b"0\r\n\r\n")
        else:
            size = lowered.partition(b"content-length:")[2].partition(b"\r\n")[0]
            is_whole = len(body) >= int(size)
        if is_whole and self._waiter is not None:
            answer, self._buffer = self._buffer, b""
            self._waiter.set_result(answer)

    async def ask(self, request: bytes) -> tuple[float, bytes]:
        """How long the answer took, and the answer."""
        self._waiter = asyncio.get_running_loop().create_future()
        started = time.perf_counter()
        self._transport.write(request)
        answer = await self._waiter
        return time.perf_counter() - started, answer


def statement(port: int, sql: str) -> bytes:
    body = sql.encode()
    return (
        f"POST /v1/statement HTTP/1.1\r\nHost: {HOST}:{port}\r\nX-Trino-User: bench\r\n"
        "X-Trino-Source: bench\r\nX-Trino-Catalog: lake\r\nX-Trino-Schema: tpch\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def ask_many(way: Way, case: str, requests: int, clients: int, numbers: Any) -> None:
    loop = asyncio.get_running_loop()
    kept = way.seconds.setdefault(f"{case}_c{clients}", [])

    async def one() -> None:
        _, client = await loop.create_connection(Client, HOST, way.port)
        polled = b""
        if case == "poll":
            _, answer = await client.ask(statement(way.port, "SELECT 'POLL'"))
            uri = answer.partition(b'"nextUri":"')[2].partition(b'"')[0].decode()
            path = "/" + uri.split("/", 3)[3]
            polled = (
                f"GET {path} HTTP/1.1\r\nHost: {HOST}:{way.port}\r\nX-Trino-User: bench\r\n\r\n"
            ).encode()
        for _ in range(requests // clients):
            number = next(numbers) if case == "new" else 7
            took, answer = await client.ask(polled or statement(way.port, SQL.format(number)))
            assert b'"data":[[1]]' in answer, answer[:500]
            kept.append(took)
        client._transport.close()

    await asyncio.gather(*(one() for _ in range(clients)))


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] * 1_000


def steal_seconds() -> float:
    first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
    return int(first[8]) / os.sysconf("SC_CLK_TCK")


def measure(ways: list[Way], requests: int, rounds: int, seed: int) -> dict[str, Any]:
    order = random.Random(seed)  # noqa: S311 no secret
    numbers = itertools.count(1_000)
    cases = [(case, clients) for case in ("repeated", "new", "poll") for clients in (1, 8)]

    async def run() -> None:
        for way in ways:  # warm up: connections, caches, the peer's compiler
            for case, clients in cases:
                await ask_many(way, case, 400, clients, numbers)
            way.seconds.clear()
        for _ in range(rounds):
            for case, clients in cases:
                order.shuffle(ways)
                for way in ways:
                    await ask_many(way, case, requests, clients, numbers)

    uvloop.run(run())
    by_name = {way.name: way for way in ways}
    found: dict[str, Any] = {}
    for key in by_name["direct"].seconds:
        found[key] = {
            name: {
                f"p{int(100 * share)}_ms": round(percentile(way.seconds[key], share), 4)
                for share in (0.5, 0.95, 0.99)
            }
            for name, way in sorted(by_name.items())
        }
        base = statistics.median(by_name["direct"].seconds[key]) * 1_000
        for name, way in by_name.items():
            if name != "direct":
                added = statistics.median(way.seconds[key]) * 1_000 - base
                found[key][name]["added_p50_ms"] = round(added, 4)
    return found


def figures(found: dict[str, Any], *, has_peer: bool) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for clients in (1, 8):
        cases = [found[f"{case}_c{clients}"] for case in ("repeated", "new")]
        numbers[f"added_ms_c{clients}"] = max(case["ours"]["added_p50_ms"] for case in cases)
        if has_peer:
            ratios = [c["ours"]["added_p50_ms"] / c["peer"]["added_p50_ms"] for c in cases]
            numbers[f"ratio_to_peer_c{clients}"] = round(max(ratios), 3)
    return numbers


def free_ports(count: int) -> list[int]:
    import socket  # noqa: PLC0415 used here only

    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


def run(requests: int, rounds: int, seed: int, *, has_peer: bool) -> dict[str, Any]:
    mock, ours, other = free_ports(3)
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        children = [
            spawn.Process(target=serve_mock, args=(mock,), daemon=True),
            spawn.Process(target=serve_ours, args=(ours, mock, str(folder / "home")), daemon=True),
        ]
        for child in children:
            child.start()
            stack.callback(child.terminate)
        ways = [Way("direct", mock), Way("ours", ours)]
        for way in ways:
            wait_until_served(way.port)
        if has_peer:
            stack.enter_context(peer(folder, mock, other))
            ways.append(Way("peer", other))
        stolen, started = steal_seconds(), time.monotonic()
        found = measure(ways, requests, rounds, seed)
        elapsed = time.monotonic() - started
        stolen = steal_seconds() - stolen
    numbers = figures(found, has_peer=has_peer)
    limits = {name: limit for name, limit in LIMITS.items() if name in numbers}
    return {
        "benchmark": "gateway",
        "requests": requests * rounds,
        **found,
        "steal_share": round(stolen / (elapsed * (os.cpu_count() or 1)), 4),
        "load_average": os.getloadavg()[0],
        "figures": numbers,
        "limits": limits,
        "ok": all(numbers[name] <= limit for name, limit in limits.items()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=400, help="per way, case and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-peer", action="store_true", help="leave trino-gateway out")
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    result = run(given.requests, given.rounds, given.seed, has_peer=not given.no_peer)
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
