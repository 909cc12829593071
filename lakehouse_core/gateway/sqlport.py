"""The SQL port: the query service behind its front ends, started and stopped as one."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from lakehouse_core.config.gateway import is_loopback
from lakehouse_core.domain.errors import ConfigError, PortTakenError, StoreError
from lakehouse_core.gateway.http import Address, HttpLimits, HttpServer
from lakehouse_core.gateway.postgres.catalog import PgCatalog
from lakehouse_core.gateway.postgres.frontend import PostgresLimits, PostgresPort
from lakehouse_core.gateway.trino.answering import Answering
from lakehouse_core.gateway.trino.frontend import FrontEndSettings, TrinoFrontEnd
from lakehouse_core.gateway.upkeep import repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from prometheus_client import Metric

    from lakehouse_core.catalog import LakeCatalog
    from lakehouse_core.config.gateway import SqlConfig
    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.engines.base import Engine
    from lakehouse_core.gateway.auth import Authenticator
    from lakehouse_core.gateway.record import SpoolRecorder
    from lakehouse_core.gateway.routing import RouteDesk
    from lakehouse_core.gateway.service import QueryService
    from lakehouse_core.gateway.trino.metadata import Metadata
    from lakehouse_core.gateway.upkeep import Job
    from lakehouse_core.gateway.upstream import Upstream

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlParts:
    """What the port is made of.

    Attributes:
        service: runs statements.
        recorder: keeps what became of them.
        engines: closed with the port.
        upstreams: engines that speak Trino's protocol themselves.
        refresh: reads how the engines are, off the loop, and says whether something changed;
            raises a `StoreError` when it cannot.
        refreshed: told, in the loop, when something changed.
        refresh_seconds: how often.
        endpoints: names of endpoints by the path, or the port, they have of their own.
        desk: answers questions about the router.
        shadows: how many shadow runs ended how.
        upkeep: done in the background while the port is open.
        close: lets go of what the upkeep holds.
    """

    service: QueryService
    recorder: SpoolRecorder
    engines: Mapping[EngineId, Engine]
    upstreams: Mapping[str, Upstream]
    metadata: Metadata
    catalogs: Mapping[str, LakeCatalog]
    auth: Authenticator
    refresh: Callable[[], bool]
    refreshed: Callable[[], None]
    refresh_seconds: float = 5.0
    endpoints: Mapping[str | int, str]
    desk: RouteDesk | None = None
    shadows: Mapping[str, int] = field(default_factory=dict)
    upkeep: tuple[Job, ...] = ()
    close: Callable[[], None] = lambda: None


class SqlPort:
    """Listens for SQL clients; used from one event loop."""

    def __init__(self, config: SqlConfig, parts: SqlParts) -> None:
        self._config = config
        self._parts = parts
        paths = {path: name for path, name in parts.endpoints.items() if isinstance(path, str)}
        settings = FrontEndSettings(
            answering=Answering(
                public_url=config.public_url, is_tls=config.tls_certificate is not None
            ),
            max_statement=config.max_statement,
            abandon_seconds=config.abandon_after.total_seconds(),
            gone_seconds=config.gone_after.total_seconds(),
            endpoints=paths,
        )
        self.front = TrinoFrontEnd(
            parts.service, parts.auth, parts.upstreams, parts.metadata, settings
        )
        self._servers: list[HttpServer] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.postgres = PostgresPort(
            service=parts.service,
            catalog=PgCatalog(parts.catalogs),
            authenticator=parts.auth,
            limits=PostgresLimits(
                connections=config.postgres_connections,
                message_bytes=config.max_statement + 4096,
                abandon_seconds=config.abandon_after.total_seconds(),
            ),
        )
        self.port = 0
        self.postgres_port = 0

    @property
    def auth(self) -> Authenticator:
        """What asks clients who they are."""
        return self._parts.auth

    @property
    def desk(self) -> RouteDesk | None:
        """Answers questions about the router, for the admin application."""
        return self._parts.desk

    @property
    def upkeep(self) -> tuple[Job, ...]:
        """What is done in the background while it is open."""
        return self._parts.upkeep

    async def start(self) -> None:
        """Listen.

        Raises:
            PortTakenError: somebody else listens there.
            ConfigError: it would listen where it must not, or the certificate cannot be read.
        """
        config = self._config
        if not self._parts.auth.asks and not is_loopback(config.host):
            raise ConfigError(
                f"gateway.sql.host {config.host} can be reached from other machines, and nobody is "
                "asked who he is: set gateway.sql.users or gateway.sql.jwt, or listen on 127.0.0.1"
            )
        tls = _tls(config.tls_certificate, config.tls_key)
        self.port = await self._listen(config.port, None, tls)
        for port, name in self._parts.endpoints.items():
            if isinstance(port, int):
                await self._listen(port, name, tls)
        if config.postgres_port is not None:
            self.postgres_port = await self._listen_postgres(config.postgres_port, tls)
        await self._refresh_once()
        self._run(self.front.sweep())
        self._run(self.postgres.sweep())
        self._run(self._refresh())
        for job in self._parts.upkeep:
            self._run(repeat(job))

    async def stop(self) -> None:
        """Stop what runs, write what is to be recorded, let the engines go."""
        for task in self._tasks:
            task.cancel()
        for server in self._servers:
            server.stop_listening()
        await self.postgres.close()
        await self.front.close()
        await self._parts.service.close()
        await self._parts.recorder.close()
        for server in self._servers:
            await server.stop()
        for upstream in self._parts.upstreams.values():
            upstream.close()
        for engine in self._parts.engines.values():
            await asyncio.to_thread(engine.close)
        self._parts.close()

    @property
    def service(self) -> QueryService:
        """What runs the statements."""
        return self._parts.service

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        over_http = sum(len(server.connections) for server in self._servers)
        return over_http + self.postgres.connections

    def collector(self) -> Collector:
        """Its metrics."""
        return _PortCollector(self, self._parts.recorder, self._parts.shadows)

    async def _listen(self, port: int, endpoint: str | None, tls: ssl.SSLContext | None) -> int:
        limits = HttpLimits(body_bytes=self._config.max_statement)
        server = HttpServer(self.front.handler(endpoint), self.front.lost, limits)
        try:
            bound = await server.start(Address(self._config.host, port), tls)
        except OSError as error:
            key = "gateway.sql.port" if endpoint is None else f"routing.endpoints.{endpoint}.port"
            raise PortTakenError(
                f"The SQL port {self._config.host}:{port} cannot be opened: {error.strerror}; set "
                f"{key}"
            ) from error
        self._servers.append(server)
        return bound

    async def _listen_postgres(self, port: int, tls: ssl.SSLContext | None) -> int:
        try:
            return await self.postgres.start(self._config.host, port, tls)
        except OSError as error:
            raise PortTakenError(
                f"The PostgreSQL port {self._config.host}:{port} cannot be opened: "
                f"{error.strerror}; set gateway.sql.postgres_port"
            ) from error

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(self._parts.refresh_seconds)
            await self._refresh_once()

    async def _refresh_once(self) -> None:
        try:
            if await asyncio.to_thread(self._parts.refresh):
                self._parts.refreshed()
        except StoreError as error:
            # What was known of the engines stays; queries go on.
            _log.info("engine states not read", error=str(error))


class _PortCollector(Collector):
    def __init__(self, port: SqlPort, recorder: SpoolRecorder, shadows: Mapping[str, int]) -> None:
        self._port = port
        self._recorder = recorder
        self._shadows = shadows

    def collect(self) -> Iterator[Metric]:
        """The families, in a fixed order."""
        queries = CounterMetricFamily(
            "lakehouse_gateway_queries",
            "Statements that have ended, by what became of them; no engine: refused.",
            labels=["engine", "protocol", "status"],
        )
        for labels, count in sorted(self._recorder.counts.items()):
            queries.add_metric(list(labels), count)
        yield queries
        seconds = CounterMetricFamily(
            "lakehouse_gateway_phase_seconds",
            "Time statements spent: decision, queue, engine (to the first row), fetch.",
            labels=["engine", "phase"],
        )
        for (engine, phase), total in sorted(self._recorder.seconds.items()):
            seconds.add_metric([engine, phase], total)
        yield seconds
        shadows = CounterMetricFamily(
            "lakehouse_gateway_shadows",
            "Shadow runs and what kept them from running; broken: a fault of the gateway.",
            labels=["outcome"],
        )
        for outcome, count in sorted(self._shadows.items()):
            shadows.add_metric([outcome], count)
        yield shadows
        open_queries = self._port.front.open_queries
        for name, help_text, value in (
            ("open_queries", "Queries whose last page was not fetched.", open_queries),
            ("connections", "Clients that are connected.", self._port.connections),
            ("records_waiting", "Records that are not durable yet.", self._recorder.waiting),
        ):  # fmt: skip
            yield GaugeMetricFamily(f"lakehouse_gateway_{name}", help_text, value)
        yield CounterMetricFamily(
            "lakehouse_gateway_records_lost",
            "Records dropped because they could not be written for too long.",
            self._recorder.lost,
        )


def _tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None or key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"gateway.sql.tls_certificate: {certificate} with {key} cannot be used: {error}"
        ) from error
    return context
