"""The PostgreSQL port: connections, TLS, who a client is, and cancel requests."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import secrets
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.errors import LakehouseError, QueryFailedError
from lakehouse_core.gateway.auth import NotAuthenticatedError
from lakehouse_core.gateway.postgres import messages as m
from lakehouse_core.gateway.postgres.client import Client
from lakehouse_core.gateway.postgres.errors import error_message
from lakehouse_core.gateway.postgres.session import Behind, Session
from lakehouse_core.gateway.postgres.settings import Settings

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from lakehouse_core.gateway.auth import Authenticator, Identity
    from lakehouse_core.gateway.postgres.catalog import PgCatalog
    from lakehouse_core.gateway.service import QueryService

_log = structlog.get_logger(__name__)
_SWEEP_SECONDS = 1.0
STARTUP_SECONDS = 60.0  # PostgreSQL's own authentication_timeout
_LARGEST_PASSWORD = 64 * 1024  # a token may be long
_EVERYONES = ("postgres", "template1", "")  # databases tools connect to before they know any


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresLimits:
    """How much the port takes.

    Attributes:
        connections: more clients are told that there is no room.
        message_bytes: larger messages end the connection.
        startup_seconds: a client that has not said who it is by then is sent away.
        abandon_seconds: a query whose client takes no rows for so long is stopped.
    """

    connections: int = 4_000
    message_bytes: int = 2**20 + 4096
    startup_seconds: float = STARTUP_SECONDS
    abandon_seconds: float = 300.0


class PostgresPort:
    """Listens; one `Session` per client."""

    def __init__(
        self,
        *,
        service: QueryService,
        catalog: PgCatalog,
        authenticator: Authenticator,
        limits: PostgresLimits | None = None,
    ) -> None:
        self._catalog = catalog
        self._authenticator = authenticator
        self._tls: ssl.SSLContext | None = None
        self._limits = limits or PostgresLimits()
        self._behind = Behind(service, catalog, self._limits.message_bytes)
        self._server: asyncio.Server | None = None
        self._sessions: dict[int, tuple[int, Session]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_process = 1

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._tasks)

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Listen; returns the port, which the system chooses for 0.

        Raises:
            OSError: the port is taken.
        """
        self._tls = tls
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connected, host, port, backlog=512)
        return int(self._server.sockets[0].getsockname()[1])

    async def sweep(self) -> None:
        """Stop what clients have left lying; runs until it is cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self.sweep_once(time.monotonic())

    def sweep_once(self, now: float) -> None:
        """Stop what clients have left lying until now."""
        for _, session in self._sessions.values():
            session.sweep(now, self._limits.abandon_seconds)

    async def close(self) -> None:
        """Take no more clients and stop what the others run."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _connected(self) -> asyncio.Protocol:
        return _Watching(self._begin)

    def _begin(self, client: Client) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, client: Client) -> None:
        writer = client.writer
        _keep_alive(writer)
        process = 0
        try:
            async with asyncio.timeout(self._limits.startup_seconds):
                started = await self._start_up(client.stream, writer)
            if started is None:
                return
            identity, given = started
            process, session = self._open(client, identity, given)
            await session.serve()
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass  # it hung up, or never said who it is
        except LakehouseError as error:
            writer.write(error_message(error, severity="FATAL"))
        except asyncio.CancelledError:
            stopped = QueryFailedError("The gateway is shutting down", code="57P01")
            writer.write(error_message(stopped, severity="FATAL"))
        except Exception as error:  # noqa: BLE001 one client's session must not end the port
            _log.exception("session failed inside the gateway")
            writer.write(error_message(error, severity="FATAL"))
        finally:
            self._sessions.pop(process, None)
            writer.close()
            with contextlib.suppress(ConnectionError, TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(writer.wait_closed(), 5)

    # --- the beginning

    async def _start_up(
        self, stream: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[Identity, dict[str, str]] | None:
        """Who it is and what it said; None when it only wanted something cancelled."""
        while True:
            startup = await m.read_startup(stream)
            if startup.code == m.CANCEL:
                await self._cancel(startup.body)
                return None
            if startup.code == m.SSL and self._tls is not None:
                writer.write(b"S")
                await writer.drain()
                await writer.start_tls(self._tls)
            elif startup.code in (m.SSL, m.GSS):
                writer.write(b"N")
            elif startup.code >> 16 == m.PROTOCOL_3 >> 16:
                break
            else:
                raise m.WireError(f"Protocol {startup.code >> 16} is not spoken here; 3 is")
            await writer.drain()
        given = startup.parameters()
        if len(self._sessions) >= self._limits.connections:
            raise QueryFailedError(
                f"sorry, too many clients already: {self._limits.connections} are connected, as "
                "many as gateway.sql.postgres_connections lets in",
                code="53300",
            )
        return await self._identify(stream, writer, given.get("user", "")), given

    async def _identify(
        self, stream: asyncio.StreamReader, writer: asyncio.StreamWriter, user: str
    ) -> Identity:
        if not user:
            raise QueryFailedError("no PostgreSQL user name specified in startup packet",
                                   code="28000")  # fmt: skip
        known = None if self._authenticator.asks else self._authenticator.known("", user)
        if known is not None:
            return known
        writer.write(m.ask_password())
        await writer.drain()
        kind, body = await m.read_message(stream, _LARGEST_PASSWORD)
        if kind != b"p":
            raise NotAuthenticatedError("This gateway wants a password or a token")
        password = m.Reader(body).text()
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        try:
            identity = await self._authenticator.verify(f"Basic {basic}")
        except NotAuthenticatedError:
            # A token is given where others give their password: three parts with dots between.
            if password.count(".") != 2:
                raise
            identity = await self._authenticator.verify(f"Bearer {password}")
        if identity.user != user:
            raise NotAuthenticatedError(f"The token is not of user {user}")
        return identity

    def _open(
        self, client: Client, identity: Identity, given: dict[str, str]
    ) -> tuple[int, Session]:
        settings = Settings(given)
        database = self._database(given.get("database", ""), identity.user)
        session = Session(client, self._behind, identity, settings, database)
        process, secret = self._next_process, secrets.randbits(31)
        self._next_process += 1
        self._sessions[process] = (secret, session)
        writer = client.writer
        writer.write(m.authentication_ok())
        for name, value in settings.reported().items():
            writer.write(m.parameter(name, value))
        writer.write(m.backend_key(process, secret))
        return process, session

    def _database(self, asked: str, user: str) -> str:
        names = self._catalog.names
        if asked in names:
            return asked
        if names and asked in (*_EVERYONES, user):
            return names[0]
        raise QueryFailedError(
            f'database "{asked}" does not exist; there are: {", ".join(names)}', code="3D000"
        )

    async def _cancel(self, body: bytes) -> None:
        reader = m.Reader(body)
        process, secret = reader.long(), reader.long()
        found = self._sessions.get(process)
        if found is not None and hmac.compare_digest(str(found[0]), str(secret)):
            await found[1].cancel()


class _Watching(asyncio.StreamReaderProtocol):
    """A stream's protocol that also tells at once when the client is gone."""

    def __init__(self, begin: Callable[[Client], None]) -> None:
        self._gone = asyncio.Event()
        super().__init__(
            asyncio.StreamReader(),
            lambda stream, writer: begin(Client(stream, writer, self._gone)),
        )

    def eof_received(self) -> bool | None:
        self._gone.set()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        super().connection_lost(exc)


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """A client whose machine is gone is noticed in the end."""
    raw = writer.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
