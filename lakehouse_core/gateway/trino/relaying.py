"""Requests and answers between clients and Trino engines, and what becomes of each passage."""

from __future__ import annotations

import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import (
    EngineError,
    EngineUnavailableError,
    QueryCancelledError,
    QueryFailedError,
)
from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.gateway.trino.answering import TEXT
from lakehouse_core.gateway.trino.passage import (
    PREFIX,
    Passage,
    follow_request,
    kill_request,
    passed_headers,
    rewrite,
    submit_request,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse_core.gateway.auth import Identity
    from lakehouse_core.gateway.flight import Flight
    from lakehouse_core.gateway.http import Exchange
    from lakehouse_core.gateway.service import QueryService
    from lakehouse_core.gateway.trino.answering import Answering
    from lakehouse_core.gateway.upstream import Answer, Upstream
    from lakehouse_core.routing.breaker import Ending
    from lakehouse_core.routing.lease import Lease

# What follows the engine's name in the path of a page: nothing that could lead elsewhere.
_PAGE = re.compile(r"[\w.~=:@+-]+(/[\w.~=:@+-]+){3,}", re.ASCII)
_UPWARDS = frozenset({".", ".."})
# Upon these, clients of Trino's protocol ask for the same page again.
_ASKED_AGAIN = frozenset({429, 502, 503, 504})
_OUR_FAULT = frozenset({401, 403})
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class PassageDesk:
    """Passes statements on to Trino engines; used from one event loop.

    Attributes:
        open: passages whose clients have not fetched the last page, by engine and query id.
    """

    def __init__(
        self,
        service: QueryService,
        upstreams: Mapping[str, Upstream],
        answers: Answering,
        restart: Callable[[Exchange, Flight, bool], None],
        *,
        asks_who: bool,
    ) -> None:
        self.open: dict[tuple[str, str], Passage] = {}
        self._service = service
        self._upstreams = upstreams
        self._answers = answers
        self._restart = restart
        self._asks_who = asks_who

    def serves(self, engine_id: str) -> bool:
        """Whether an engine speaks Trino's protocol."""
        return engine_id in self._upstreams

    def launch(
        self, exchange: Exchange, flight: Flight, lease: Lease, *, is_parametric: bool
    ) -> None:
        """Hand a statement that has its place to its engine."""
        decision = lease.decision
        engine_id = str(decision.engine_id)
        upstream = self._upstreams[engine_id]
        try:
            request = submit_request(flight, upstream.target)
        except QueryFailedError as error:
            lease.release("cancelled")  # the engine was not asked
            self._service.land(flight, QueryStatus.FAILED, error)
            self._answers.fail(exchange, flight.request.gateway_id, error)
            return
        passage = Passage(flight, lease, upstream, engine_id)
        exchange.client.subject = passage
        relay = _Relay(self, exchange, passage, is_parametric=is_parametric)
        upstream.send(request, relay, again=decision.facts.is_read_only)

    def follow(self, exchange: Exchange, identity: Identity) -> None:
        """Pass a request for a page, or to stop, on to the engine its path names."""
        engine_id, _, rest = exchange.path[len(PREFIX) :].partition("/")
        upstream = self._upstreams.get(engine_id)
        parts = rest.split("/")
        is_page = _PAGE.fullmatch(rest) is not None and _UPWARDS.isdisjoint(parts)
        if upstream is None or not is_page or exchange.method not in ("GET", "DELETE"):
            exchange.respond(HTTPStatus.NOT_FOUND, b"There is no such query", (), TEXT)
            return
        passage = self.open.get((engine_id, parts[1]))
        user = identity.user
        if passage is not None:
            if self._asks_who and passage.flight.request.user != user:
                exchange.respond(HTTPStatus.FORBIDDEN, b"This is another user's query", (), TEXT)
                return
            passage.asked_at, passage.gone_since = time.monotonic(), None
            exchange.client.subject = passage
            user = passage.flight.request.user or user
        if exchange.method == "DELETE" and passage is not None:
            self._land(
                passage,
                QueryStatus.CANCELLED,
                QueryCancelledError("The client cancelled the query"),
            )
        if exchange.query:
            rest = f"{rest}?{exchange.query.decode('ascii')}"
        relay = _Relay(self, exchange, passage, engine_id=engine_id)
        upstream.send(follow_request(exchange.method, rest, user, upstream.target), relay)

    def passed(self, relay: _Relay, answer: Answer) -> None:
        """An engine has answered a request that was passed on."""
        exchange, passage = relay.exchange, relay.passage
        headers = passed_headers(answer.headers)
        if answer.status != HTTPStatus.OK:
            self._refused(relay, answer)
            return
        base = self._answers.base(exchange)
        try:
            if passage is None:
                body, _, _ = rewrite(answer.body, base, relay.engine_id)
                exchange.respond(HTTPStatus.OK, body, headers)
                return
            body, is_last = passage.body_for(answer, base)
            ended = passage.outcome(answer.body) if is_last else None
        except ValueError as error:
            self.broken(relay, ConnectionError(str(error)))
            return
        exchange.respond(HTTPStatus.OK, body, headers)
        if ended is not None:
            exchange.client.subject = None
            self._land(passage, *ended)
        elif passage.query_id is not None and not passage.is_over:
            self.open.setdefault((passage.engine_id, passage.query_id), passage)

    def _refused(self, relay: _Relay, answer: Answer) -> None:
        """An engine has answered without a page."""
        passage, status = relay.passage, answer.status
        if passage is None or passage.is_over or _is_asked_again(passage, status):
            self._pass(relay.exchange, answer)
            return
        said = f"{status} {_PHRASES.get(status, '')}".rstrip()
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._gone(relay, f"Engine {relay.engine_id} does not serve: it answered {said}")
            return
        error: EngineError
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE) and passage.query_id is not None:
            error = EngineUnavailableError(f"{passage.engine_id} does not know the query any more")
        else:
            error = QueryFailedError(
                f"Engine {passage.engine_id} refused the statement with {said}", code=str(status)
            )
        if status in _OUR_FAULT:
            # The client's own credentials are not in question: it must not be asked for others.
            query_id = passage.query_id or passage.flight.request.gateway_id
            self._answers.fail(relay.exchange, query_id, error)
        else:
            self._pass(relay.exchange, answer)
        self._land(passage, QueryStatus.FAILED, error)

    def _pass(self, exchange: Exchange, answer: Answer) -> None:
        content_type = dict(answer.headers).get("content-type", TEXT)
        exchange.respond(answer.status, answer.body, passed_headers(answer.headers), content_type)

    def broken(self, relay: _Relay, error: Exception) -> None:
        """An engine is gone; another one gets the statement when that is safe."""
        self._gone(relay, f"Engine {relay.engine_id} does not answer: {error}")

    def _gone(self, relay: _Relay, said: str) -> None:
        exchange, passage = relay.exchange, relay.passage
        gone = EngineUnavailableError(said)
        if passage is None or passage.is_over:
            exchange.respond(HTTPStatus.BAD_GATEWAY, said.encode(), (), TEXT)
            return
        flight = passage.flight
        self.open.pop((passage.engine_id, passage.query_id or ""), None)
        passage.is_over = True
        passage.lease.release("unavailable", said)
        self._kill(passage)  # it may still be at work on what is now run elsewhere
        if self._service.redirect(flight, gone):
            self._restart(exchange, flight, relay.is_parametric)
            return
        self._service.land(flight, QueryStatus.FAILED, gone)
        self._answers.fail(exchange, passage.query_id or flight.request.gateway_id, gone)

    def _land(self, passage: Passage, status: QueryStatus, error: Exception | None) -> None:
        if passage.is_over:
            return
        passage.is_over = True
        self.open.pop((passage.engine_id, passage.query_id or ""), None)
        is_cancelled = status is QueryStatus.CANCELLED
        ending: Ending = "cancelled" if is_cancelled else "failed" if error else "finished"
        passage.lease.release(ending)
        self._service.land(passage.flight, status, error)

    def stop(self, passage: Passage, reason: str) -> None:
        """Stop the engine's query; whether it answers does not matter."""
        self._land(passage, QueryStatus.CANCELLED, QueryCancelledError(reason))
        self._kill(passage)

    def _kill(self, passage: Passage) -> None:
        if passage.query_id is not None:
            user, upstream = passage.flight.request.user or "", passage.upstream
            upstream.send(kill_request(passage.query_id, user, upstream.target), _Nobody())


def _is_asked_again(passage: Passage, status: int) -> bool:
    """Whether a client asks for the same page again, which is all that can be done.

    The engine has the query. One that only reads and has given no row is better run elsewhere.
    """
    if passage.query_id is None or status not in _ASKED_AGAIN:
        return False
    flight = passage.flight
    is_read_only = flight.decision is not None and flight.decision.facts.is_read_only
    is_busy = status == HTTPStatus.TOO_MANY_REQUESTS
    return is_busy or flight.first_row is not None or not is_read_only


class _Relay:
    """Hands an engine's answer back to the exchange that waits for it."""

    __slots__ = ("_front", "engine_id", "exchange", "is_parametric", "passage")

    def __init__(
        self,
        front: PassageDesk,
        exchange: Exchange,
        passage: Passage | None,
        *,
        engine_id: str = "",
        is_parametric: bool = True,
    ) -> None:
        self._front = front
        self.exchange = exchange
        self.passage = passage
        self.engine_id = passage.engine_id if passage else engine_id
        self.is_parametric = is_parametric

    def answered(self, answer: Answer) -> None:
        """See `Waiter`."""
        self._front.passed(self, answer)

    def failed(self, error: Exception) -> None:
        """See `Waiter`."""
        self._front.broken(self, error)


class _Nobody:
    """Waits for no answer."""

    def answered(self, answer: Answer) -> None:
        """See `Waiter`."""

    def failed(self, error: Exception) -> None:
        """See `Waiter`."""
