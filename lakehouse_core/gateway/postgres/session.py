"""One client's session: simple and extended queries, in PostgreSQL's order of messages."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import structlog

from lakehouse_core.domain.errors import LakehouseError, QueryCancelledError, QueryFailedError
from lakehouse_core.gateway.postgres import messages as m
from lakehouse_core.gateway.postgres.client import GONE
from lakehouse_core.gateway.postgres.errors import error_message
from lakehouse_core.gateway.postgres.parameters import value_of
from lakehouse_core.gateway.postgres.portals import Portal, Portals
from lakehouse_core.gateway.postgres.results import Fetched, Rows
from lakehouse_core.gateway.postgres.settings import ACTIVE, BROKEN
from lakehouse_core.routing.request import Request
from lakehouse_core.sql.guard import Rule
from lakehouse_core.sql.postgres.cursors import Close, Fetch, parse_fetch
from lakehouse_core.sql.postgres.statements import DIALECT, Prepared, prepare, split

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from sqlglot import exp

    from lakehouse_core.gateway.auth import Identity
    from lakehouse_core.gateway.postgres.catalog import PgCatalog
    from lakehouse_core.gateway.postgres.client import Client
    from lakehouse_core.gateway.postgres.settings import Settings
    from lakehouse_core.gateway.service import QueryService
    from lakehouse_core.sql.postgres.cursors import Declare

_log = structlog.get_logger(__name__)
PROTOCOL = "postgresWire"
_ABORTED = "current transaction is aborted, commands ignored until end of transaction block"
# What is not known of a table before the statements in front have made it.
_UNTIL_MADE = frozenset({str(Rule.UNKNOWN_TABLE), str(Rule.BYTE_LIMIT)})
_CANCELLED = "canceling statement due to user request"


@dataclass(frozen=True, slots=True)
class Behind:
    """What sessions are served with."""

    service: QueryService
    catalog: PgCatalog
    most_bytes: int


class Session:
    """Serves one connection after its start-up."""

    def __init__(
        self,
        client: Client,
        behind: Behind,
        identity: Identity,
        settings: Settings,
        database: str,
    ) -> None:
        self._client = client
        self._writer = client.writer
        self._service = behind.service
        self._catalog = behind.catalog
        self._most_bytes = behind.most_bytes
        self._identity = identity
        self._settings = settings
        self._database = database
        self._prepared: dict[str, Prepared] = {}
        self._running: set[Rows] = set()
        self._portals = Portals(self._running)
        self._question: asyncio.Future[pa.Table] | None = None
        self._is_skipping = False  # after an error, until the client says Sync

    async def serve(self) -> None:
        """Answer messages until the client leaves."""
        self._writer.write(m.ready(self._settings.status))
        try:
            while True:
                await self._writer.drain()
                kind, body = await m.read_message(self._client.stream, self._most_bytes)
                if kind == b"X":
                    return
                await self._answer(kind, body)
        finally:
            await self.cancel(GONE)

    async def cancel(self, reason: str = _CANCELLED) -> None:
        """Stop what runs."""
        if self._question is not None:
            self._question.cancel()
        for rows in list(self._running):
            await rows.cancel(reason)

    def sweep(self, now: float, abandon_seconds: float) -> None:
        """Stop what the client has left lying: rows that wait for it hold an engine's place."""
        for rows in list(self._running):
            if rows.stop_when_idle(now, abandon_seconds):
                self._running.discard(rows)

    # --- messages

    async def _answer(self, kind: bytes, body: bytes) -> None:
        if kind == b"S":
            self._is_skipping = False
            await self._end_portals()
            self._writer.write(m.ready(self._settings.status))
            return
        handler = _HANDLERS.get(kind)
        if handler is None and kind != b"Q":
            raise m.WireError(f"A message of kind {kind!r} is not understood")
        if self._is_skipping and kind != b"Q":
            return
        sql: str | None = None
        try:
            reader = m.Reader(body)
            if handler is None:
                sql = reader.text()
                await self._simple(sql)
            else:
                await handler(self, reader)
        except (ConnectionError, asyncio.IncompleteReadError, m.WireError):
            raise
        except (LakehouseError, asyncio.CancelledError) as error:
            self._failed(error, sql)
        except Exception as error:  # noqa: BLE001 the client must hear of it; it is in the log
            _log.exception("statement failed inside the gateway")
            self._failed(error, sql)
        if kind == b"Q":
            self._is_skipping = False
            await self._end_portals()
            self._writer.write(m.ready(self._settings.status))

    def _failed(self, error: BaseException, sql: str | None) -> None:
        self._settings.failed()
        self._is_skipping = True
        self._writer.write(error_message(error, sql))

    async def _simple(self, sql: str) -> None:
        statements = split(sql)
        if len(statements) > 1:
            self._judge(statements)
        for statement in statements:
            if statement.is_empty:
                self._writer.write(m.EMPTY_QUERY)
                continue
            rows = await self._run(statement, ())
            try:
                await self._tell_columns(rows)
                await self._give(rows, 0)
            finally:
                await rows.cancel(GONE)  # harmless when it is over
                self._running.discard(rows)

    def _judge(self, statements: Sequence[Prepared]) -> None:
        """Refuse a message before anything of it is done, each statement as it will find things.

        Raises:
            LakehouseError: one of them may not run, or cannot be understood.
        """
        settings, forgiven = self._settings.copied(), frozenset[str]()
        for statement in statements:
            if statement.is_empty or settings.answer(statement.sql) is not None:
                continue
            if settings.status == BROKEN:
                raise QueryFailedError(_ABORTED, code="25P02")
            tree = statement.tree
            is_named = tree is not None and self._catalog.concerns(tree)
            if not is_named and parse_fetch(statement.sql) is None:
                self._service.judge(self._request(statement.sql, settings), forgiven)
            if not statement.is_reading:
                forgiven = _UNTIL_MADE

    async def _parse(self, reader: m.Reader) -> None:
        name, sql = reader.text(), reader.text()
        oids = tuple(reader.long() for _ in range(reader.short()))
        if name and name in self._prepared:
            raise QueryFailedError(f'prepared statement "{name}" already exists', code="42P05")
        self._prepared[name] = prepare(sql, oids)
        self._writer.write(m.PARSE_COMPLETE)

    async def _bind(self, reader: m.Reader) -> None:
        portal, name = reader.text(), reader.text()
        prepared = self._statement(name)
        codes = [reader.short() for _ in range(reader.short())]
        values: list[bytes | None] = []
        for _ in range(reader.short()):
            length = reader.long()
            values.append(None if length < 0 else reader.take(length))
        formats = tuple(reader.short() for _ in range(reader.short()))
        if len(values) != len(prepared.oids):
            raise QueryFailedError(
                f"bind message supplies {len(values)} parameters, but prepared statement "
                f'"{name}" requires {len(prepared.oids)}',
                code="08P01",
            )
        bound = prepared.bound(
            [
                value_of(oid, value, is_binary=_code(codes, index) == 1)
                for index, (oid, value) in enumerate(zip(prepared.oids, values, strict=True))
            ]
        )
        await self._portals.bind(portal, Portal(bound, formats))
        self._writer.write(m.BIND_COMPLETE)

    async def _describe(self, reader: m.Reader) -> None:
        what, name = reader.take(1), reader.text()
        if what == b"S":
            prepared = self._statement(name)
            self._writer.write(m.parameter_description(prepared.oids))
            await self._describe_rows(await self._tried(prepared))
            return
        portal = self._portals.portal(name)
        if self._is_told(portal.statement):
            await self._start(portal)
        await self._describe_rows(portal.rows)

    async def _describe_rows(self, rows: Rows | None) -> None:
        if rows is None or not await self._tell_columns(rows):
            self._writer.write(m.NO_DATA)

    async def _tell_columns(self, rows: Rows) -> bool:
        """Describe the columns; False when there are none to describe."""
        columns = await self._client.present(rows.columns()) if rows.has_rows else ()
        if columns:
            self._writer.write(m.row_description(columns))
        return bool(columns)

    async def _execute(self, reader: m.Reader) -> None:
        portal, most = self._portals.portal(reader.text()), reader.long()
        await self._start(portal)
        if portal.rows is None:
            self._writer.write(m.EMPTY_QUERY)
        else:
            await self._give(portal.rows, max(most, 0))

    async def _close(self, reader: m.Reader) -> None:
        what, name = reader.take(1), reader.text()
        if what == b"S":
            self._prepared.pop(name, None)
        else:
            await self._portals.close(name)
        self._writer.write(m.CLOSE_COMPLETE)

    async def _flush(self, reader: m.Reader) -> None:
        del reader

    # --- running

    async def _start(self, portal: Portal) -> None:
        if portal.rows is None and not portal.statement.is_empty:
            portal.rows = await self._run(portal.statement, portal.formats)

    async def _run(self, statement: Prepared, formats: tuple[int, ...]) -> Rows:
        """Start a statement; the session itself answers what no engine needs to see."""
        answer = self._settings.answer(statement.sql)
        if answer is not None:
            for name, value in answer.changed.items():
                self._writer.write(m.parameter(name, value))
            table = answer.rows
            return Rows(
                table=_nothing() if table is None else table, tag=answer.tag, formats=formats
            )
        if self._settings.status == BROKEN:
            raise QueryFailedError(_ABORTED, code="25P02")
        if statement.cursor is not None:
            return await self._declare(statement, statement.cursor)
        wanted = parse_fetch(statement.sql)
        if isinstance(wanted, Fetch):
            return await self._fetch(wanted, formats)
        if isinstance(wanted, Close):
            await self._portals.close_cursors(wanted)
            tag = "CLOSE CURSOR" if wanted.name else "CLOSE CURSOR ALL"
            return Rows(table=_nothing(), tag=tag)
        tree = statement.tree
        if tree is not None and self._catalog.concerns(tree):
            return Rows(table=await self._named(tree), tag="SELECT", formats=formats)
        query = await self._service.submit(self._request(statement.sql, self._settings))
        rows = Rows(query=query, formats=formats)
        self._limit(rows)
        self._running.add(rows)
        return rows

    def _limit(self, rows: Rows) -> None:
        if self._settings.timeout_seconds is not None:
            rows.stop_after(self._settings.timeout_seconds)

    async def _declare(self, statement: Prepared, cursor: Declare) -> Rows:
        is_active = self._settings.status == ACTIVE
        portal = self._portals.declare(cursor, statement, is_active=is_active)
        await self._start(portal)
        if portal.rows is not None:
            portal.rows.stop_never()  # each FETCH has its own time
        self._portals.keep(cursor.name, portal)
        return Rows(table=_nothing(), tag="DECLARE CURSOR")

    async def _fetch(self, wanted: Fetch, formats: tuple[int, ...]) -> Rows:
        portal = self._portals.cursor(wanted.name)
        await self._start(portal)
        assert portal.rows is not None  # noqa: S101 a query that reads has rows
        fetched = Fetched(portal.rows, wanted, formats or portal.formats)
        self._limit(fetched)
        return fetched

    async def _named(self, tree: exp.Expr) -> pa.Table:
        """The answer to a question about names; it can be cancelled like a query."""
        user, schema = self._identity.user, self._settings.schema
        sight = self._service.sight(self._request("", self._settings))
        work = self._catalog.query(tree, self._database, user, sight, schema)
        self._question = question = asyncio.ensure_future(work)
        try:
            return await self._client.present(question)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            raise QueryCancelledError(_CANCELLED) from None
        finally:
            self._question = None

    async def _tried(self, prepared: Prepared) -> Rows | None:
        """The rows of a statement whose parameters are not known: all are NULL, none is read."""
        probe = prepared.bound([None] * len(prepared.oids))
        if not self._is_told(probe):
            return None
        rows = await self._run(probe, ())
        try:
            await self._client.present(rows.columns())
        finally:
            await rows.cancel("Only its columns were asked for")
            self._running.discard(rows)
        return rows

    def _is_told(self, statement: Prepared) -> bool:
        """Whether it has columns to describe; only what reads is run to find out."""
        words = statement.sql.split(None, 1)
        if words and self._settings.is_verb(words[0]):
            return self._settings.is_question(words[0])
        if statement.cursor is not None:
            return False
        return statement.is_reading or isinstance(parse_fetch(statement.sql), Fetch)

    def _request(self, sql: str, settings: Settings) -> Request:
        who, custom = self._identity, settings.custom
        tags = custom.get("lakehelm.tags", "")
        return Request(
            sql=sql,
            dialect=DIALECT,
            protocol=PROTOCOL,
            user=who.user,
            groups=who.groups,
            role=who.role,
            proven_role=who.role,
            tags=tuple(tag.strip() for tag in tags.split(",") if tag.strip()),
            headers=custom,
            source=settings.get("application_name") or None,
            catalog=self._database,
            schema=settings.schema,
            session=custom,
        )

    async def _give(self, rows: Rows, most: int) -> None:
        """Send rows, and say at the end what was done."""
        if not rows.has_rows:
            changed = await self._client.present(rows.drain())
            self._running.discard(rows)
            self._writer.write(m.command_complete(rows.tag(changed)))
            return
        wanted = rows.sent + most
        while not most or rows.sent < wanted:
            data = await self._client.present(rows.take(wanted - rows.sent if most else 0))
            if data is None:
                break
            self._writer.write(data)
            await self._writer.drain()  # a slow reader holds up the engine, not our memory
        if rows.is_over:
            self._running.discard(rows)
            self._writer.write(m.command_complete(rows.tag()))
        else:
            self._writer.write(m.PORTAL_SUSPENDED)

    def _statement(self, name: str) -> Prepared:
        found = self._prepared.get(name)
        if found is None:
            raise QueryFailedError(f'prepared statement "{name}" does not exist', code="26000")
        return found

    async def _end_portals(self) -> None:
        """Portals end with their transaction; outside of one, with Sync."""
        if self._settings.status != ACTIVE:
            await self._portals.end()


def _code(codes: list[int], index: int) -> int:
    if len(codes) == 1:
        return codes[0]
    return codes[index] if index < len(codes) else 0


def _nothing() -> pa.Table:
    return pa.table({})


_HANDLERS: Mapping[bytes, Callable[[Session, m.Reader], Awaitable[None]]] = {
    b"P": Session._parse,
    b"B": Session._bind,
    b"D": Session._describe,
    b"E": Session._execute,
    b"C": Session._close,
    b"H": Session._flush,
}
