"""The Trino HTTP front end: requests in, pages out.

    POST   /v1/statement                                     begin
    GET    /v1/statement/{queued,executing}/<id>/<slug>/<n>  next page of a query that we page out
    GET    /v1/statement/at/<engine>/…                       next page of one that a Trino serves
    DELETE either                                            stop
    GET    /v1/info, /v1/info/state, /v1/status              what clients and load balancers ask

Statements about the session (PREPARE, EXECUTE, USE, SET SESSION, SHOW, DESCRIBE …) are answered
here; EXECUTE is replaced by the statement it means before anything is decided about it.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
import structlog

from lakehouse_core.domain.errors import (
    LakehouseError,
    QueryFailedError,
)
from lakehouse_core.gateway.auth import Identity, NotAuthenticatedError
from lakehouse_core.gateway.service import new_gateway_id
from lakehouse_core.gateway.trino.answering import TEXT, Answering
from lakehouse_core.gateway.trino.answers import KnownNames, own_answer
from lakehouse_core.gateway.trino.describing import columns_of_statement
from lakehouse_core.gateway.trino.passage import PREFIX, Passage
from lakehouse_core.gateway.trino.relaying import PassageDesk
from lakehouse_core.gateway.trino.served import Pending, Served
from lakehouse_core.gateway.trino.session import ClientSession, read_session
from lakehouse_core.routing.request import Request
from lakehouse_core.sql.session import Execute, Show, bind_parameters, parse_session

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    import pyarrow as pa

    from lakehouse_core.gateway.auth import Authenticator
    from lakehouse_core.gateway.flight import Flight
    from lakehouse_core.gateway.http import Connection, Exchange
    from lakehouse_core.gateway.service import QueryService
    from lakehouse_core.gateway.trino.metadata import Metadata
    from lakehouse_core.gateway.upstream import Upstream
    from lakehouse_core.routing.lease import Lease
    from lakehouse_core.sql.session import SessionStatement

_log = structlog.get_logger(__name__)
DIALECT = "trino"
PROTOCOL = "trinoHttp"
VERSION = "476"  # of Trino, whose protocol and types clients may expect
_SWEEP_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontEndSettings:
    """How the front end behaves.

    Attributes:
        answering: where clients reach us.
        endpoints: names of endpoints by the path they have of their own.
        max_statement: longer statements are refused.
        abandon_seconds: a query nobody asks for is stopped after this time.
        gone_seconds: a query whose client hung up is stopped after this time.
    """

    answering: Answering = field(default_factory=Answering)
    endpoints: Mapping[str, str] = field(default_factory=dict)
    max_statement: int = 2**20
    abandon_seconds: float = 300.0
    gone_seconds: float = 10.0


class TrinoFrontEnd:
    """Answers Trino clients; used from one event loop."""

    def __init__(
        self,
        service: QueryService,
        auth: Authenticator,
        upstreams: Mapping[str, Upstream],
        metadata: Metadata,
        settings: FrontEndSettings | None = None,
    ) -> None:
        self._service = service
        self._auth = auth
        self._metadata = metadata
        self._settings = settings or FrontEndSettings()
        self._answers = self._settings.answering
        self._entries = [(quote(path), name) for path, name in self._settings.endpoints.items()]
        self._served: dict[str, Served | Pending] = {}
        self._desk = PassageDesk(service, upstreams, self._answers, self._go, asks_who=auth.asks)
        self._tasks: set[asyncio.Task[None]] = set()
        # Few: what a thread has once needed for a large page, its share of the heap keeps.
        self._encoders = ThreadPoolExecutor(2, thread_name_prefix="page")
        self._started = time.monotonic()

    @property
    def open_queries(self) -> int:
        """Queries whose clients have not fetched the last page."""
        return len(self._served) + len(self._desk.open)

    # --- requests

    def handler(self, endpoint: str | None = None) -> Callable[[Exchange], None]:
        """What takes the requests of a port; `endpoint` is the one that the port belongs to."""
        if endpoint is None:
            return self.handle

        def handle(exchange: Exchange) -> None:
            exchange.endpoint = endpoint
            self.handle(exchange)

        return handle

    def handle(self, exchange: Exchange) -> None:
        """Take a request; it is answered now or later."""
        if not exchange.path.startswith("/v1/"):
            self._enter(exchange)
        path = exchange.path
        if path.startswith("/v1/statement"):
            self._authenticated(exchange)
        elif exchange.method not in ("GET", "HEAD"):
            self._no_such_thing(exchange)
        elif path == "/v1/info":
            uptime = f"{(time.monotonic() - self._started) / 60:.2f}m"
            document = {
                "nodeVersion": {"version": VERSION},
                "environment": "lakehelm",
                "coordinator": True,
                "starting": False,
                "uptime": uptime,
            }
            exchange.respond(HTTPStatus.OK, msgspec.json.encode(document))
        elif path == "/v1/info/state":
            exchange.respond(HTTPStatus.OK, b'"ACTIVE"')
        elif path == "/v1/status":
            exchange.respond(HTTPStatus.OK, b"{}")
        else:
            self._no_such_thing(exchange)

    def _enter(self, exchange: Exchange) -> None:
        """Note the endpoint whose path a request begins with."""
        for prefix, name in self._entries:
            if exchange.path.startswith(f"{prefix}/"):
                exchange.endpoint, exchange.prefix = name, prefix
                exchange.path = exchange.path[len(prefix) :]
                return

    def lost(self, connection: Connection) -> None:
        """A client hung up: what it asked about is stopped soon, unless somebody asks again."""
        subject = connection.subject
        if isinstance(subject, Served | Pending | Passage) and not connection.is_announced:
            subject.gone_since = time.monotonic()

    async def sweep(self) -> None:
        """Stop what nobody asks for; runs until it is cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self.sweep_once(time.monotonic())

    def sweep_once(self, now: float) -> None:
        """Stop what nobody has asked for until now."""
        settings = self._settings
        for subject in [*self._served.values(), *self._desk.open.values()]:
            gone = subject.gone_since
            if gone is not None and now - gone > settings.gone_seconds:
                self._give_up(subject, "The client hung up")
            elif now - subject.asked_at > settings.abandon_seconds:
                self._give_up(
                    subject, f"Nobody has asked for {settings.abandon_seconds:g} s: abandoned"
                )

    async def close(self) -> None:
        """Stop everything that is open."""
        for served in list(self._served.values()):
            await served.cancel("The gateway is shutting down")
        for passage in list(self._desk.open.values()):
            self._desk.stop(passage, "The gateway is shutting down")
        for task in list(self._tasks):
            task.cancel()
        self._encoders.shutdown(wait=False, cancel_futures=True)

    # --- who asks

    def _authenticated(self, exchange: Exchange) -> None:
        authorization = exchange.headers.get("authorization", "")
        claimed = exchange.headers.get("x-trino-user", "")
        try:
            identity = self._auth.known(authorization, claimed)
        except NotAuthenticatedError as error:
            self._unauthorized(exchange, error)
            return
        if identity is None:
            self._spawn(exchange, self._verified(exchange, authorization))
        else:
            self._dispatch(exchange, identity)

    async def _verified(self, exchange: Exchange, authorization: str) -> None:
        try:
            identity = await self._auth.verify(authorization)
        except NotAuthenticatedError as error:
            self._unauthorized(exchange, error)
            return
        self._dispatch(exchange, identity)

    def _unauthorized(self, exchange: Exchange, error: NotAuthenticatedError) -> None:
        headers = [("WWW-Authenticate", 'Basic realm="lakehelm"')] if self._auth.asks else []
        exchange.respond(HTTPStatus.UNAUTHORIZED, str(error).encode(), headers, TEXT)

    def _dispatch(self, exchange: Exchange, identity: Identity) -> None:
        path, method = exchange.path, exchange.method
        if path == "/v1/statement" and method == "POST":
            self._begin(exchange, identity)
        elif path.startswith(PREFIX):
            self._desk.follow(exchange, identity)
        elif path.startswith(("/v1/statement/queued/", "/v1/statement/executing/")):
            self._follow_served(exchange, identity)
        else:
            self._no_such_thing(exchange)

    # --- a new statement

    def _begin(self, exchange: Exchange, identity: Identity) -> None:
        gateway_id = new_gateway_id()
        try:
            sql = self._text_of(exchange)
            session = read_session(exchange.headers, identity)
            sql, statement = _expanded(sql, session)
            request = _request(sql, session, exchange, gateway_id)
            if isinstance(statement, Show) and not self._tells(statement, session, request):
                statement = None  # about something that only an engine knows
            if statement is not None or self._metadata.concerns(sql, session):
                self._spawn(exchange, self._answer_self(exchange, session, sql, statement))
                return
            flight = self._service.decide(request)
        except LakehouseError as error:
            self._answers.fail(exchange, gateway_id, error)
            return
        self._go(exchange, flight, session.is_parametric)

    def _tells(self, show: Show, session: ClientSession, request: Request) -> bool:
        """Whether we answer a SHOW ourselves: a Trino knows more properties than were set."""
        if show.what == "session" and self._service.is_spoken(request):
            return False
        return self._metadata.knows(show, session)

    def _text_of(self, exchange: Exchange) -> str:
        limit = self._settings.max_statement
        if exchange.is_too_large or len(exchange.body) > limit:
            raise QueryFailedError(
                f"The statement is longer than {limit} bytes (gateway.sql.max_statement)",
                code="QUERY_TEXT_TOO_LARGE",
            )
        try:
            sql = exchange.body.decode()
        except UnicodeDecodeError as error:
            raise QueryFailedError(
                f"The statement is not UTF-8: byte {error.start + 1} cannot be read",
                code="SYNTAX_ERROR",
            ) from error
        if not sql.strip():
            raise QueryFailedError("The statement is empty", code="SYNTAX_ERROR")
        return sql

    async def _answer_self(
        self,
        exchange: Exchange,
        session: ClientSession,
        sql: str,
        statement: SessionStatement | None,
    ) -> None:
        """Answer what needs no engine."""
        asked = _request(sql, session, exchange, "")

        async def columns(text: str) -> pa.Schema:
            return await columns_of_statement(self._service, replace(asked, sql=text))

        names = KnownNames(self._metadata, self._service.sight(asked), columns)
        page = await own_answer(statement, sql, session, names)
        page.base = self._answers.base(exchange)
        exchange.respond(HTTPStatus.OK, page.encode(), page.headers)

    def _go(self, exchange: Exchange, flight: Flight, is_parametric: bool) -> None:
        """Send a statement to where it was decided to go, or let it wait for a place."""
        try:
            lease = self._service.try_admit(flight)
        except LakehouseError as error:
            self._answers.fail(exchange, flight.request.gateway_id, error)
            return
        if lease is not None:
            self._launch(exchange, flight, lease, is_parametric=is_parametric)
            return
        pending = Pending(flight, self._service, is_parametric=is_parametric)
        self._served[pending.query_id] = pending
        exchange.client.subject = pending
        self._spawn(exchange, self._wait(exchange, pending, 0))

    def _launch(
        self, exchange: Exchange, flight: Flight, lease: Lease, *, is_parametric: bool
    ) -> None:
        """Send a statement that has its place."""
        if self._desk.serves(str(lease.decision.engine_id)):
            self._desk.launch(exchange, flight, lease, is_parametric=is_parametric)
            return
        query = self._service.run(flight, lease)
        served = Served(query, self._encoders, is_parametric=is_parametric)
        self._served[served.query_id] = served
        exchange.client.subject = served
        self._spawn(exchange, self._serve(exchange, served, 0))

    async def _wait(self, exchange: Exchange, pending: Pending, token: int) -> None:
        """Answer a client whose statement waits for a place."""
        if not await pending.is_ready():
            exchange.respond(
                HTTPStatus.OK, pending.page(token, self._answers.base(exchange)).encode()
            )
            return
        if pending.launched_by is not None and not pending.launched_by.is_answered:
            pending.launched_by.share(exchange)  # two asked at once: one statement, one answer
            return
        if self._served.get(pending.query_id) is pending:
            del self._served[pending.query_id]
        try:
            lease = pending.launch(exchange)
        except LakehouseError as error:
            self._answers.fail(exchange, pending.query_id, error)
            return
        self._launch(exchange, pending.flight, lease, is_parametric=pending.is_parametric)

    # --- queries that we page out

    def _follow_served(self, exchange: Exchange, identity: Identity) -> None:
        _, _, _, _, query_id, slug, *rest = [*exchange.path.split("/"), "", ""]
        served = self._served.get(query_id)
        token = rest[0] if rest else ""
        if served is None or served.slug != slug or not token.isdigit():
            exchange.respond(HTTPStatus.NOT_FOUND, b"There is no such query", (), TEXT)
        elif self._auth.asks and served.flight.request.user != identity.user:
            exchange.respond(HTTPStatus.FORBIDDEN, b"This is another user's query", (), TEXT)
        elif exchange.method == "DELETE":
            self._spawn(exchange, self._cancel_served(exchange, served))
        elif exchange.method in ("GET", "HEAD"):
            exchange.client.subject = served
            answer = self._wait if isinstance(served, Pending) else self._serve
            self._spawn(exchange, answer(exchange, served, int(token)))  # type: ignore[arg-type] # chosen by its type
        else:
            self._no_such_thing(exchange)

    async def _serve(self, exchange: Exchange, served: Served, token: int) -> None:
        await served.answer(exchange, token, self._answers.base(exchange))
        if served.is_over:
            exchange.client.subject = None
            # The last page may be asked for again for a while: the sweep drops it.
            served.forget_after(time.monotonic())

    async def _cancel_served(self, exchange: Exchange, served: Served | Pending) -> None:
        exchange.respond(HTTPStatus.NO_CONTENT)
        await served.cancel("The client cancelled the query")
        self._served.pop(served.query_id, None)

    # --- the rest

    def _give_up(self, subject: Served | Pending | Passage, reason: str) -> None:
        if isinstance(subject, Passage):
            self._desk.stop(subject, reason)
            return
        self._served.pop(subject.query_id, None)
        if not subject.is_over:
            task = asyncio.get_running_loop().create_task(subject.cancel(reason))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _no_such_thing(self, exchange: Exchange) -> None:
        text = f"There is no {exchange.method} {exchange.path}; SQL goes to POST /v1/statement"
        exchange.respond(HTTPStatus.NOT_FOUND, text.encode(), (), TEXT)

    def _spawn(self, exchange: Exchange, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(exchange, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, exchange: Exchange, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 the client must be answered whatever happens
            _log.error("request failed", path=exchange.path, exc_info=error)
            exchange.respond(
                HTTPStatus.INTERNAL_SERVER_ERROR, b"Internal error; see the gateway's log", (), TEXT
            )


def _expanded(sql: str, session: ClientSession) -> tuple[str, SessionStatement | None]:
    """The text to run, and the statement when it needs no engine; EXECUTE becomes what it means."""
    statement = parse_session(sql, DIALECT)
    depth = 0
    while isinstance(statement, Execute):
        kept = statement.sql if statement.name is None else session.prepared.get(statement.name)
        if kept is None:
            raise QueryFailedError(
                f"Prepared statement not found: {statement.name}", code="NOT_FOUND"
            )
        sql = bind_parameters(kept, statement.arguments, DIALECT)
        statement = parse_session(sql, DIALECT)
        depth += 1
        if depth > 4:
            raise QueryFailedError("EXECUTE of EXECUTE goes too deep", code="NOT_SUPPORTED")
    return sql, statement


def _request(sql: str, session: ClientSession, exchange: Exchange, gateway_id: str) -> Request:
    return Request(
        sql=sql.rstrip().removesuffix(";"),
        dialect=DIALECT,
        gateway_id=gateway_id,
        protocol=PROTOCOL,
        user=session.user,
        groups=session.groups,
        role=session.role,
        proven_role=session.proven_role,
        tags=session.tags,
        headers=exchange.headers,
        source=session.source,
        catalog=session.catalog,
        schema=session.schema,
        session=session.properties,
        endpoint=exchange.endpoint,
    )
