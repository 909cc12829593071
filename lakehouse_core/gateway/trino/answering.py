"""How the front end answers: where clients reach us, and errors as pages of the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import EngineError
from lakehouse_core.gateway.trino.errors import of_exception
from lakehouse_core.gateway.trino.pages import Page

if TYPE_CHECKING:
    from lakehouse_core.domain.errors import LakehouseError
    from lakehouse_core.gateway.http import Exchange

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Where clients reach us.

    Attributes:
        public_url: what clients call us; None: what their Host header says.
        is_tls: whether the port speaks TLS.
    """

    public_url: str | None = None
    is_tls: bool = False

    def base(self, exchange: Exchange) -> str:
        """What the client's next request starts with."""
        if self.public_url is not None:
            return f"{self.public_url}{exchange.prefix}"
        host = exchange.headers.get("host", "localhost")
        return f"{'https' if self.is_tls else 'http'}://{host}{exchange.prefix}"

    def fail(self, exchange: Exchange, query_id: str, error: LakehouseError) -> None:
        """Answer with an error of the protocol."""
        position = error.position if isinstance(error, EngineError) else None
        page = Page(
            query_id=query_id,
            base=self.base(exchange),
            state="FAILED",
            error=of_exception(error, position),
        )
        exchange.respond(HTTPStatus.OK, page.encode())
