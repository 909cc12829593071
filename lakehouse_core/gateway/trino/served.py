"""A query whose rows we page out ourselves: the engine behind it speaks no Trino.

A page is made when it is asked for and kept until the next one is: a client whose connection broke
may ask for it again. Whoever asks for an older one gets 410.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import LakehouseError, QueryCancelledError
from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.gateway.trino.errors import TrinoError, of_exception
from lakehouse_core.gateway.trino.pages import Page, flight_stats
from lakehouse_core.gateway.trino.types import columns_of
from lakehouse_core.gateway.trino.values import encode_rows

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pyarrow as pa

    from lakehouse_core.gateway.flight import Flight
    from lakehouse_core.gateway.http import Exchange
    from lakehouse_core.gateway.running import RunningQuery
    from lakehouse_core.gateway.service import QueryService
    from lakehouse_core.routing.lease import Lease

POLL_SECONDS = 1.0
_LAST_LOOK_SECONDS = 0.003  # the end often follows the last rows at once: it spares a poll
_INLINE_CELLS = 2_000  # pages up to this size are encoded in the loop: a thread costs more
_DEFINING = frozenset({"CREATE", "DROP", "ALTER"})
_BETWEEN = frozenset({"OR", "REPLACE"})
_COMMENTS = re.compile(r"(?:\s+|/\*.*?\*/|--[^\n]*)+", re.DOTALL)


class Pending:
    """A statement that waits for a place; its client is told so until it has one."""

    def __init__(self, flight: Flight, service: QueryService, *, is_parametric: bool) -> None:
        self.flight = flight
        self.slug = secrets.token_urlsafe(9)
        self.asked_at = time.monotonic()
        self.gone_since: float | None = None
        self.is_parametric = is_parametric
        self.is_over = False
        self.launched_by: Exchange | None = None
        self._service = service
        self._place = asyncio.get_running_loop().create_task(service.admit(flight))
        self._place.add_done_callback(self._came)

    @property
    def query_id(self) -> str:
        """The id the client knows."""
        return self.flight.request.gateway_id

    async def is_ready(self, seconds: float = POLL_SECONDS) -> bool:
        """Whether it has a place, or will have none; waits a moment to know."""
        self.asked_at, self.gone_since = time.monotonic(), None
        done, _ = await asyncio.wait({self._place}, timeout=seconds)
        return bool(done)

    def page(self, token: int, base: str) -> Page:
        """What the client is told meanwhile."""
        return Page(
            query_id=self.query_id,
            base=base,
            state="QUEUED",
            next_path=f"/v1/statement/queued/{self.query_id}/{self.slug}/{token + 1}",
            stats=flight_stats(self.flight, time.perf_counter()),
        )

    def launch(self, exchange: Exchange) -> Lease:
        """Its place, for the request that came first; whoever launches it answers for the place.

        Raises:
            RoutingError: it got none.
            QueryCancelledError: it was cancelled meanwhile.
        """
        if self.is_over or self._place.cancelled():
            raise QueryCancelledError("Cancelled while queued")
        lease = self._place.result()
        self.is_over, self.launched_by = True, exchange
        return lease

    async def cancel(self, reason: str) -> None:
        """Leave the queue; a place that it has already is given back."""
        if self.is_over:
            return
        self.is_over = True
        if not self._place.done():
            self._place.cancel()
        elif not self._place.cancelled() and self._place.exception() is None:
            self._give_back(reason)

    def _came(self, place: asyncio.Task[Lease]) -> None:
        """A place that came when nobody wanted it any more is given back."""
        if place.cancelled():
            self._land("Cancelled while queued")
        elif place.exception() is None and self.is_over:
            self._give_back("Cancelled while queued")

    def _give_back(self, reason: str) -> None:
        self._place.result().release("cancelled")
        self._land(reason)

    def _land(self, reason: str) -> None:
        self._service.land(self.flight, QueryStatus.CANCELLED, QueryCancelledError(reason))


class Served:
    """One query and where its client is in it."""

    def __init__(self, query: RunningQuery, encoders: Executor, *, is_parametric: bool) -> None:
        self.query = query
        self._encoders = encoders
        self.slug = secrets.token_urlsafe(9)
        self.asked_at = time.monotonic()
        self.gone_since: float | None = None
        self._is_parametric = is_parametric
        self._token = -1
        self._body = b""
        self._columns: list[dict[str, Any]] | None = None
        self._turn = asyncio.Lock()
        self.is_over = False

    @property
    def flight(self) -> Flight:
        """What happened to it so far."""
        return self.query.flight

    @property
    def query_id(self) -> str:
        """The id the client knows."""
        return self.query.gateway_id

    async def answer(self, exchange: Exchange, token: int, base: str) -> None:
        """Answer a request for page `token`."""
        self.asked_at, self.gone_since = time.monotonic(), None
        async with self._turn:
            if token == self._token + 1 and not self.is_over:
                page = await self._next_page(token, base)
                self._token, self._body = token, page.encode()
                self.is_over = page.next_path is None
            elif token != self._token:
                exchange.respond(
                    HTTPStatus.GONE,
                    b"This page was fetched already, or the query is over",
                    content_type="text/plain",
                )
                return
            exchange.respond(HTTPStatus.OK, self._body)

    def forget_after(self, now: float) -> None:
        """The last page was sent: it is kept for a short while, as if the client had hung up."""
        self.gone_since = now

    async def cancel(self, reason: str) -> None:
        """Stop it."""
        self.is_over = True
        await self.query.cancel(reason)

    async def _next_page(self, token: int, base: str) -> Page:
        query, flight = self.query, self.query.flight
        page = Page(query_id=query.gateway_id, base=base, state="RUNNING")
        path = f"/v1/statement/executing/{query.gateway_id}/{self.slug}/{token + 1}"
        try:
            page.data = await self._rows()
            is_last = page.data is None or await self._is_drained()
            page.state = "FINISHED" if is_last else "RUNNING"
            page.next_path = None if is_last else path
            if is_last and not self._columns:
                page.put_done(_update_type(flight.request.sql))
        except TimeoutError:
            page.state = "QUEUED" if query.is_queued else "RUNNING"
            page.next_path = path
        except (LakehouseError, asyncio.CancelledError) as error:
            page.state, page.error = "FAILED", self._error(error)
        except Exception as error:  # noqa: BLE001 the client must hear of it; it is in the log
            page.state, page.error = "FAILED", of_exception(error)
        page.columns = page.columns or self._columns
        page.stats = flight_stats(flight, time.perf_counter())
        return page

    async def _rows(self) -> bytes | None:
        """The next rows; None: there are none left."""
        deadline = time.monotonic() + POLL_SECONDS
        if self._columns is None:
            schema = await self.query.schema(POLL_SECONDS)
            self._columns = columns_of(schema, parametric=self._is_parametric)
        batch = await self.query.next_batch(max(0.0, deadline - time.monotonic()))
        return None if batch is None else await self._encoded(batch)

    async def _is_drained(self) -> bool:
        """Whether the rows that were just taken are the last."""
        return await self.query.is_drained(_LAST_LOOK_SECONDS)

    async def _encoded(self, batch: pa.RecordBatch) -> bytes:
        if batch.num_rows * batch.num_columns <= _INLINE_CELLS:
            return encode_rows(batch, parametric=self._is_parametric)
        work = partial(encode_rows, batch, parametric=self._is_parametric)
        return await asyncio.get_running_loop().run_in_executor(self._encoders, work)

    def _error(self, error: BaseException) -> TrinoError:
        if isinstance(error, asyncio.CancelledError):
            error = QueryCancelledError("The gateway is shutting down")
        return of_exception(error, self.query.position)


def _update_type(sql: str) -> str:
    """What Trino calls a statement without rows: INSERT, CREATE TABLE."""
    begin = _COMMENTS.match(sql)
    words = sql[begin.end() if begin else 0 :].upper().split(None, 4)[:4]
    words = [word for word in words if word not in _BETWEEN]
    return " ".join(words[: 2 if words[0] in _DEFINING else 1])
