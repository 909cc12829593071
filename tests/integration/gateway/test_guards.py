"""Both corpora of the guards over the sockets of both front ends, before engines that notice."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.base import Cost, RowStream
from tests.integration.gateway.harness import Gateway
from tests.integration.gateway.mock_trino import MockTrino
from tests.integration.gateway.tpch import make_tpch
from tests.unit.demo.engines import MemoryEngine
from tests.unit.sql.guard.corpora import harmless, hostile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse_core.engines.base import Statement
    from lakehouse_core.gateway.sqlport import SqlPort
    from tests.conftest import DemoConfig
    from tests.unit.sql.guard.corpora import Statement as Harmless

pytestmark = [pytest.mark.duckdb, pytest.mark.slow]
ENGINES = ("duckdb", "spark", "trino")
HARMFUL = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock, exp.Anonymous)
_ONE = pa.table({"x": pa.array([1], pa.int64())})


class Noticing(MemoryEngine):
    """Answers whatever reaches it, and keeps it."""

    @contextmanager
    def stream(self, statement: Statement) -> Iterator[RowStream]:
        self.asked.append(statement)
        batches = iter(_ONE.to_batches())
        yield RowStream(query_id="q", schema=_ONE.schema, batches=batches, cost=Cost())


class Site:
    """A gateway whose users are named as the engine they are sent to."""

    def __init__(self, gateway: Gateway, trino: MockTrino, others: dict[str, Noticing]) -> None:
        self.gateway = gateway
        self._trino = trino
        self._others = others
        self._http = httpx.Client(trust_env=False, timeout=30)

    def reached(self) -> list[str]:
        """What engines have seen since this was last asked."""
        found = list(self._trino.statements)
        self._trino.statements.clear()
        for engine in self._others.values():
            found += [statement.sql for statement in engine.asked]
            engine.asked.clear()
        return found

    def close(self) -> None:
        self._http.close()

    def over_http(self, sql: str, engine: str) -> str | None:
        """Send it as Trino's clients do; returns the error, None for an answer."""
        user = {"X-Trino-User": engine, "X-Trino-Catalog": "lake", "X-Trino-Schema": "demo"}
        body = sql.encode("utf-8", "surrogatepass")
        page = self._http.post(f"{self.gateway.url}/v1/statement", content=body, headers=user)
        while page.status_code == 200 and "nextUri" in page.json():
            page = self._http.get(page.json()["nextUri"], headers=user)
        if page.status_code != 200:
            return page.text
        error: dict[str, Any] | None = page.json().get("error")
        return None if error is None else str(error["message"])


class Wire:
    """One connection of PostgreSQL's protocol, simple queries only."""

    def __init__(self, port: int, user: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._stream = self._socket.makefile("rb")
        body = struct.pack("!i", 196_608) + f"user\0{user}\0database\0lake\0\0".encode()
        self._socket.sendall(struct.pack("!i", len(body) + 4) + body)
        assert self._until_ready() is None

    def ask(self, sql: str) -> str | None:
        """Returns the error, None for an answer."""
        body = sql.replace("\0", "").encode("utf-8", "surrogatepass") + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
        return self._until_ready()

    def _until_ready(self) -> str | None:
        error = None
        while True:
            kind, length = struct.unpack("!ci", self._stream.read(5))
            body = self._stream.read(length - 4)
            if kind == b"E":
                error = body.decode("utf-8", "replace")
            if kind == b"G":  # COPY wants data
                self._socket.sendall(b"f\0\0\0\5\0")
            if kind == b"Z":
                return error

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


@pytest.fixture(scope="module")
def site(load_demo_config: DemoConfig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("guards")
    with closing(MockTrino()) as trino:
        config = load_demo_config(folder, LAKEHELM__ENGINES__TRINO__PORT=trino.port)
        config.catalogs["lake"].warehouse.mkdir(parents=True, exist_ok=True)
        make_tpch(config)
        routing = type(config.routing).model_validate(
            {
                "clusterGroups": {name: {"members": [name]} for name in ENGINES},
                "routers": [{"type": "userGroup", "userToGroup": {name: name for name in ENGINES}}],
                "routingFallback": "trino",
            }
        )
        config = config.model_copy(update={"routing": routing, "collect": {}})
        others = {name: Noticing(name) for name in ("duckdb", "spark")}

        def change(port: SqlPort) -> None:
            for name, engine in others.items():
                port._parts.engines[EngineId(name)] = engine  # type: ignore[index]

        with (
            closing(Gateway(config, folder / "gateway", change)) as gateway,
            closing(Site(gateway, trino, others)) as served,
        ):
            yield served


@contextmanager
def asking(site: Site, front: str, engine: str) -> Iterator[Callable[[str], str | None]]:
    if front == "trino":
        yield lambda sql: site.over_http(sql, engine)
        return
    with closing(Wire(site.gateway.port.postgres_port, engine)) as wire:
        yield wire.ask


def is_plain_read(sql: str, dialect: str) -> bool:
    """Whether what an engine got only reads tables of the lake; not the guard's judgement."""
    parsed = sqlglot.parse(sql, read=dialect)
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Query):
        return False
    names = {one.alias_or_name for one in parsed[0].find_all(exp.CTE)}
    tables = [one for one in parsed[0].find_all(exp.Table) if one.name not in names]
    # A name without a catalog is one of the session's, as Trino reads it.
    homes = ("lake", "") if dialect == "trino" else ("lake",)
    return not any(parsed[0].find_all(*HARMFUL)) and all(one.catalog in homes for one in tables)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("front", ["trino", "postgres"])
def test_nothing_hostile_reaches_an_engine(
    site: Site, front: str, engine: str, tell: Callable[[str], None]
) -> None:
    found: Counter[str] = Counter()
    wrong = []
    with asking(site, front, engine) as ask:
        for one in hostile():
            error, reached = ask(one.sql), site.reached()
            if not reached:
                found["refused" if error is not None else "answered by the gateway itself"] += 1
            elif all(is_plain_read(sql, engine) for sql in reached):
                # In the front end's dialect it names tables of the lake, or has a harmless half
                # before a `;`: what would do harm elsewhere is not in what the engine gets.
                found["read as a plain query of the lake"] += 1
            else:
                wrong.append((one.dialect, one.sql[:200], reached))
    tell(f"hostile over {front} to {engine}: {dict(found)} of {len(hostile())}")
    assert wrong == []
    assert found["refused"] >= 0.9 * len(hostile())


@pytest.mark.parametrize("front", ["trino", "postgres"])
def test_hardly_anything_harmless_is_held_back(
    site: Site, front: str, tell: Callable[[str], None]
) -> None:
    """In the front end's own words, to the engine that has the same, or else to DuckDB."""
    engine = "trino" if front == "trino" else "duckdb"
    texts = [in_words_of(front, one) for one in harmless()]
    known = [text for text in texts if text is not None]
    with asking(site, front, engine) as ask:
        refused = [(text[:120], error) for text in known if (error := ask(text)) is not None]
    site.reached()
    share = 1 - len(refused) / len(known)
    tell(f"harmless over {front}: {share:.2%} of {len(known)} passed")
    assert len(known) >= 1_000
    assert share >= 0.99, refused[:20]


def in_words_of(front: str, one: Harmless) -> str | None:
    """A harmless statement of another dialect, said in this one; None: it cannot be."""
    if one.dialect == front:
        return one.sql
    if one.why == "written":
        return None  # each shows something that only its own dialect has
    return sqlglot.transpile(one.sql, read=one.dialect, write=front)[0]
