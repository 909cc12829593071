"""Who may ask the router over the admin port: this machine, or somebody the SQL port knows.

Probes and metrics are for everybody who reaches the port, and the ingest has a token of its own.
What explains statements and takes new rules is for neither.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from lakehouse_core.config.gateway import is_loopback
from lakehouse_core.gateway.auth import NotAuthenticatedError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from lakehouse_core.gateway.auth import Authenticator

GUARDED = "/v1/route/"


class AskWho:
    """Middleware: asks other machines for a password or token before they reach the router."""

    def __init__(self, app: ASGIApp, auth: Authenticator) -> None:
        self._app = app
        self._auth = auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "http" and scope["path"].startswith(GUARDED) and not _is_here(scope):
            try:
                await self._check(scope)
            except NotAuthenticatedError as error:
                body = {"error": {"message": str(error), "code": HTTPStatus.UNAUTHORIZED.value}}
                headers = {"www-authenticate": 'Basic realm="lakehelm"'}
                refusal = JSONResponse(body, HTTPStatus.UNAUTHORIZED, headers)
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _check(self, scope: Scope) -> None:
        if not self._auth.asks:
            raise NotAuthenticatedError(
                "The router is asked from this machine only: set gateway.sql.users or "
                "gateway.sql.jwt to ask it from others"
            )
        given = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
        if self._auth.known(given, "") is None:
            await self._auth.verify(given)


def _is_here(scope: Scope) -> bool:
    """Whether who asks is on this machine."""
    peer, own = scope.get("client"), scope.get("server")
    if peer is None:
        return False
    return is_loopback(peer[0]) or (own is not None and own[0] == peer[0])
