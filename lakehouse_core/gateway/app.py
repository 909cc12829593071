"""The gateway's HTTP: /livez, /readyz, /metrics and the ingest; the rest is an error in JSON."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lakehouse_core.gateway import ingest as ingesting
from lakehouse_core.gateway import routing
from lakehouse_core.gateway.facts import FactsCache, unready_reasons
from lakehouse_core.gateway.metrics import Steady, render
from lakehouse_core.gateway.who import AskWho

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import timedelta

    from prometheus_client.registry import Collector
    from starlette.requests import Request

    from lakehouse_core.gateway.costs import CostCounters
    from lakehouse_core.gateway.sqlport import SqlPort


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """What the endpoints need.

    Attributes:
        facts: readings of the store.
        engines: ids of the engines that must have been probed before the gateway is ready.
        probe_every: how often they are probed.
        ingest: takes what engines push; None: nothing is taken.
        sql: where SQL clients connect; None: nowhere.
        costs: what is counted as spent; None: nothing is.
    """

    facts: FactsCache
    engines: tuple[str, ...]
    probe_every: timedelta
    ingest: ingesting.Ingest | None = None
    sql: SqlPort | None = None
    costs: CostCounters | None = None


def create_app(admin: Admin) -> Starlette:
    """The application; it holds no global state."""
    started = time.monotonic()
    steady = Steady()

    async def livez(_: Request) -> Response:
        """Alive: the event loop turns. Says nothing about the store or the engines."""
        uptime = round(time.monotonic() - started, 1)
        return JSONResponse({"status": "alive", "pid": os.getpid(), "uptime_seconds": uptime})

    async def readyz(_: Request) -> Response:
        """Ready: the store answers and every engine has been looked at lately."""
        reasons = unready_reasons(await admin.facts.get(), admin.engines, admin.probe_every)
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        body = {"status": "unready" if reasons else "ready", "reasons": reasons}
        return JSONResponse(body, status_code=status)

    async def metrics(request: Request) -> Response:
        accept = request.headers.get("accept", "")
        counts = admin.ingest.counts() if admin.ingest else {}
        more: list[Collector] = [admin.sql.collector()] if admin.sql else []
        if admin.costs is not None:
            await asyncio.to_thread(admin.costs.refresh)
            more.append(admin.costs.collector())
        body, content_type = render(await admin.facts.get(), steady, accept, counts, more)
        return Response(body, headers={"content-type": content_type})

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if admin.sql is not None:
            await admin.sql.start()
        yield
        if admin.sql is not None:
            await admin.sql.stop()
        if admin.ingest is not None:
            await admin.ingest.close()

    return Starlette(
        lifespan=lifespan,
        middleware=[Middleware(AskWho, auth=admin.sql.auth)] if admin.sql else [],
        routes=[
            Route("/livez", livez),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            *(admin.ingest.routes() if admin.ingest else ()),
            *(admin.sql.desk.routes() if admin.sql and admin.sql.desk else ()),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _fault},
    )


async def _http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return await _fault(request, error)
    status, path = error.status_code, request.url.path
    headers = dict(error.headers or {})
    text = error.detail
    if status == HTTPStatus.NOT_FOUND:
        known = f"/livez, /readyz, /metrics, {ingesting.ROUTES}, {routing.ROUTES}"
        text = f"There is no {path}; try {known}"
    elif status == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = [name for name in headers.get("Allow", "").split(", ") if name != "HEAD"]
        text = f"{request.method} is not allowed on {path}; use {' or '.join(allowed)}"
    return _error(status, text, headers)


async def _fault(_: Request, error: Exception) -> Response:
    # Starlette raises the error again after the answer, so that it reaches the log with its trace.
    return _error(500, f"Internal error ({type(error).__name__}); the gateway's log says more", {})


def _error(status: int, message: str, headers: dict[str, str]) -> Response:
    # `code` and `type` are what clients of Iceberg's REST specification look for.
    kind = HTTPStatus(status).phrase.replace(" ", "")
    body = {"error": {"status": status, "message": message, "code": status, "type": kind}}
    return JSONResponse(body, status_code=status, headers=headers)
