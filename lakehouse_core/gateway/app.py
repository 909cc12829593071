"""The admin HTTP of the gateway: /livez, /readyz, /metrics; everything else is an error in JSON."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lakehouse_core.gateway.facts import FactsCache, unready_reasons
from lakehouse_core.gateway.metrics import Steady, render

if TYPE_CHECKING:
    from datetime import timedelta

    from starlette.requests import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """What the endpoints need.

    Attributes:
        facts: readings of the store.
        engines: ids of the engines that must have been probed before the gateway is ready.
        probe_every: how often they are probed.
    """

    facts: FactsCache
    engines: tuple[str, ...]
    probe_every: timedelta


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
        body, content_type = render(await admin.facts.get(), steady, accept)
        return Response(body, headers={"content-type": content_type})

    return Starlette(
        routes=[
            Route("/livez", livez),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _fault},
    )


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    text = {
        404: f"There is no {request.url.path}; try /livez, /readyz or /metrics",
        405: f"{request.method} is not allowed on {request.url.path}; use GET",
    }.get(status, HTTPStatus(status).phrase)
    return _error(status, text, dict(headers or {}))


async def _fault(_: Request, error: Exception) -> Response:
    # Starlette raises the error again after the answer, so that it reaches the log with its trace.
    return _error(500, f"Internal error ({type(error).__name__}); the gateway's log says more", {})


def _error(status: int, message: str, headers: dict[str, str]) -> Response:
    body = {"error": {"status": status, "message": message}}
    return JSONResponse(body, status_code=status, headers=headers)
