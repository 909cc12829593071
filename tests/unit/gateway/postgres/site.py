"""A PostgreSQL port on a socket, a real router behind it, and an engine in memory."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.domain.errors import TableGoneError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.domain.table import TableName
from lakehouse_core.engines.base import Cost, RowStream
from lakehouse_core.gateway.auth import Authenticator
from lakehouse_core.gateway.postgres import messages as m
from lakehouse_core.gateway.postgres.catalog import PgCatalog
from lakehouse_core.gateway.postgres.frontend import PostgresLimits, PostgresPort
from lakehouse_core.gateway.service import QueryService
from lakehouse_core.routing.decide import Ports
from lakehouse_core.routing.router import Router
from tests.unit.demo.engines import MemoryEngine
from tests.unit.gateway.trino.site import Notes
from tests.unit.routing.conftest import Fleet, plan_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from pathlib import Path

    from lakehouse_core.catalog import LakeCatalog
    from lakehouse_core.engines.base import Statement
    from lakehouse_core.routing.request import Guard

_ONE = pa.table({"x": pa.array([1], pa.int64())})


class RowsEngine(MemoryEngine):
    """Answers every statement with `rows`; waits for `go` before it does."""

    def __init__(self, rows: pa.Table = _ONE) -> None:
        super().__init__("spark")
        self.rows = rows
        self.go = threading.Event()
        self.go.set()
        self.stopped: list[str] = []

    @contextmanager
    def stream(self, statement: Statement) -> Iterator[RowStream]:
        self.asked.append(statement)
        self.go.wait(60)
        rows = self.rows
        yield RowStream(
            query_id="q", schema=rows.schema, batches=iter(rows.to_batches()), cost=Cost()
        )

    def cancel(self, query_id: str) -> bool:
        self.stopped.append(query_id)
        self.go.set()
        return True


class Names:
    """A catalog with these tables; what is in a metadata file is read as always."""

    name = "lake"

    def __init__(self, tables: Mapping[TableName, str] | None = None) -> None:
        self._tables = dict(tables or {})

    @classmethod
    def of(cls, folder: Path, tables: Mapping[str, tuple[str, ...]]) -> Names:
        """A catalog of tables `schema.name` with these columns."""
        found = {}
        for name, columns in tables.items():
            fields = [
                {"id": number, "name": column, "type": "long", "required": False}
                for number, column in enumerate(columns, start=1)
            ]
            schema = {"type": "struct", "schema-id": 0, "fields": fields}
            document = {
                "format-version": 2,
                "table-uuid": name,
                "location": str(folder / name),
                "last-updated-ms": 0,
                "current-schema-id": 0,
                "schemas": [schema],
                "default-spec-id": 0,
                "partition-specs": [{"spec-id": 0, "fields": []}],
            }
            path = folder / f"{name}.json"
            path.write_text(json.dumps(document))
            found[TableName.parse(f"lake.{name}")] = f"file://{path}"
        return cls(found)

    def namespaces(self) -> list[tuple[str, ...]]:
        return sorted({table.namespace for table in self._tables})

    def metadata_location(self, table: TableName) -> str:
        if table not in self._tables:
            raise TableGoneError(f"Table {table} is not in catalog {self.name!r}")
        return self._tables[table]

    def tables(self, namespace: tuple[str, ...] | None = None) -> dict[TableName, str]:
        del namespace
        return self._tables


class Client:
    """Speaks the protocol, message by message."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.key = b""
        self.told = ""  # every error so far

    async def start(self, user: str = "ana") -> None:
        body = struct.pack("!i", m.PROTOCOL_3) + m.text("user") + m.text(user) + b"\0"
        self._writer.write(struct.pack("!i", len(body) + 4) + body)
        self.key = next(body for kind, body in await self.answers() if kind == b"K")

    async def cancel(self, port: int) -> None:
        """Ask on another connection for what this one runs to be stopped."""
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(struct.pack("!ii", 16, m.CANCEL) + self.key)
        await writer.drain()
        writer.close()

    async def send(self, *messages: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """Send messages; what is answered up to the next ReadyForQuery."""
        for kind, body in messages:
            self._writer.write(m.message(kind, body))
        return await self.answers()

    async def query(self, sql: str) -> list[tuple[bytes, bytes]]:
        return await self.send((b"Q", m.text(sql)))

    async def answers(self) -> list[tuple[bytes, bytes]]:
        found = []
        while True:
            kind, body = await m.read_message(self._reader, 2**24)
            found.append((kind, body))
            if kind == b"E":
                self.told += body.decode()
            if kind in (b"Z", b"X"):
                return found

    def close(self) -> None:
        self._writer.close()


def parse(name: str, sql: str) -> tuple[bytes, bytes]:
    return b"P", m.text(name) + m.text(sql) + b"\0\0"


def kinds(answers: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(kind for kind, _ in answers)


class PgSite:
    """What a test speaks to."""

    def __init__(
        self,
        engine: RowsEngine,
        catalog: LakeCatalog,
        limits: PostgresLimits | None,
        guard: Guard | None,
    ) -> None:
        self.engine = engine
        self.notes = Notes()
        plan = plan_of(clusterGroups={"g": {"members": ["spark"]}}, routingFallback="g")
        self.router = Router(plan, Ports(fleet=Fleet(), guard=guard))
        self.service = QueryService(self.router, {EngineId("spark"): engine}, self.notes)
        self.number = 0
        self.port = PostgresPort(
            service=self.service,
            catalog=PgCatalog({"lake": catalog}),
            authenticator=Authenticator(),
            limits=limits,
        )


@asynccontextmanager
async def pg_site(
    engine: RowsEngine | None = None,
    catalog: LakeCatalog | None = None,
    limits: PostgresLimits | None = None,
    guard: Guard | None = None,
) -> AsyncIterator[tuple[PgSite, Client]]:
    names: LakeCatalog = catalog or Names()  # type: ignore[assignment] # what is used of it
    here = PgSite(engine or RowsEngine(), names, limits, guard)
    here.number = await here.port.start("127.0.0.1", 0)
    client = Client(*await asyncio.open_connection("127.0.0.1", here.number))
    try:
        await client.start()
        yield here, client
    finally:
        client.close()
        await here.port.close()
        await here.service.close()
