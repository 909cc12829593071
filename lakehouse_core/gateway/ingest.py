"""The ingest over HTTP: who may send, how much, and what is answered.

    POST /v1/ingest/trino[/<engine>]    an event of Trino's HTTP event listener, or a list of them
    POST /v1/ingest/iceberg             an Iceberg metrics report
    POST [/v1/ingest/iceberg]/v1[/<prefix>]/namespaces/<namespace>/tables/<table>/metrics
                                        the same, as clients of a REST catalog send it

2xx: durable. 400: the body cannot be read, and where. 401, 403: no token, a wrong one. 408, 413:
too slow, too large. 503 with Retry-After: not durable, send it again.
"""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lakehouse_core.domain.errors import StoreError
from lakehouse_core.gateway.intake import Delivery

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.requests import Request

    from lakehouse_core.gateway.desk import Desk

ROUTES = "POST /v1/ingest/trino or POST /v1/ingest/iceberg"
READ_SECONDS = 15.0
RETRY_SECONDS = 5
_METRICS = "/namespaces/{namespace}/tables/{table}/metrics"
_TRINO_PATHS = ("/v1/ingest/trino", "/v1/ingest/trino/{engine}")
_REPORT_PATHS = ("/v1/ingest/iceberg",)
_CATALOG_PATHS = tuple(
    f"{root}/v1{prefix}{_METRICS}"
    for root in ("", "/v1/ingest/iceberg")
    for prefix in ("", "/{prefix}")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest:
    """What the ingest needs.

    Attributes:
        token: what a sender must know.
        trino: takes events of Trino's listener.
        reports: takes Iceberg reports.
        most_bytes: the largest body taken.
        read_seconds: how long a body may take to arrive.
    """

    token: str = field(repr=False)
    trino: Desk
    reports: Desk
    most_bytes: int
    read_seconds: float = READ_SECONDS

    def routes(self) -> Iterator[Route]:
        """Where deliveries are taken."""
        for path in _TRINO_PATHS:
            yield Route(path, self._endpoint(self.trino), methods=["POST"])
        for path in _REPORT_PATHS:
            yield Route(path, self._endpoint(self.reports), methods=["POST"])
        for path in _CATALOG_PATHS:
            yield Route(path, self._endpoint(self.reports, is_catalog=True), methods=["POST"])

    def counts(self) -> dict[tuple[str, str], int]:
        """How many events had which outcome, by kind."""
        desks = {"trino": self.trino, "iceberg": self.reports}
        return {(name, what): n for name, desk in desks.items() for what, n in desk.counts.items()}

    async def close(self) -> None:
        """Wait until what was taken is written."""
        await asyncio.gather(self.trino.close(), self.reports.close())

    def _endpoint(
        self, desk: Desk, *, is_catalog: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            self._admit(request)
            with desk.memory() as memory:
                try:
                    body = await self._body(request, memory.grow)
                    verdict = await desk.take(Delivery(request.path_params, body))
                except StoreError as error:
                    raise _not_durable(error) from error
            if verdict.refusal is not None:
                raise HTTPException(HTTPStatus.BAD_REQUEST, verdict.refusal)
            if is_catalog:  # what the REST specification answers
                return Response(status_code=HTTPStatus.NO_CONTENT)
            counts = {"accepted": verdict.accepted, "dead_letters": verdict.dead_letters}
            return JSONResponse(counts)

        return endpoint

    def _admit(self, request: Request) -> None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given:
            raise HTTPException(
                HTTPStatus.UNAUTHORIZED,
                "The ingest wants a token: Authorization: Bearer <gateway.ingest_token>",
                {"WWW-Authenticate": "Bearer"},
            )
        if not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            raise HTTPException(
                HTTPStatus.FORBIDDEN, "The token is not the one of gateway.ingest_token"
            )

    async def _body(self, request: Request, grow: Callable[[int], None]) -> bytes:
        if request.headers.get("content-encoding", "identity") != "identity":
            raise HTTPException(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The ingest takes bodies that are not compressed"
            )
        announced = request.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > self.most_bytes:
            raise self._too_large()
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.read_seconds):
                async for piece in request.stream():
                    size += len(piece)
                    if size > self.most_bytes:
                        raise self._too_large()
                    grow(len(piece))
                    pieces.append(piece)
        except TimeoutError as error:
            raise HTTPException(
                HTTPStatus.REQUEST_TIMEOUT, f"The body did not arrive in {self.read_seconds:g} s"
            ) from error
        except ClientDisconnect as error:
            raise HTTPException(HTTPStatus.BAD_REQUEST, "The sender went away") from error
        return b"".join(pieces)

    def _too_large(self) -> HTTPException:
        return HTTPException(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The body is larger than {self.most_bytes} bytes (gateway.ingest_max_body); "
            "for Trino, set event.max-output-stage-size=1kB",
        )


def _not_durable(error: StoreError) -> HTTPException:
    return HTTPException(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"Not written, send it again: {error}",
        {"Retry-After": str(RETRY_SECONDS)},
    )
