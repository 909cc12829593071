"""A statement that a Trino engine serves: our part is to pass answers on, as they are.

The only bytes of an answer that change are those of `nextUri`: it names us, the engine, and then
what the engine wrote. A client's next request thus says where it belongs, also to a gateway that
was started meanwhile. Types, rows and errors are Trino's own, untouched and unparsed.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from lakehouse_core.domain.errors import QueryCancelledError, QueryFailedError
from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.engines.base import Cost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.gateway.flight import Flight
    from lakehouse_core.gateway.upstream import Answer, Target, Upstream
    from lakehouse_core.routing.lease import Lease

PREFIX = "/v1/statement/at/"
# Trino writes these fields first, in this order, without spaces.
_HEAD = re.compile(
    rb'\{"id":"([^"\\]+)","infoUri":"[^"\\]*"(?:,"partialCancelUri":"[^"\\]*")?'
    rb'(,"nextUri":"https?://[^/"\\]+/v1/statement/)?'
)
_NOT_PASSED = frozenset(
    # Spooled segments would have to be fetched from the engine itself; compressed answers parsed.
    ("x-trino-query-data-encoding", "x-trino-trace-token", "x-trino-user", "x-trino-original-user")
)
_BREAKS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_CANCELLED = frozenset({"USER_CANCELED", "ADMINISTRATIVELY_KILLED", "ABANDONED_QUERY"})


class _Error(msgspec.Struct):
    message: str = ""
    errorName: str = ""  # noqa: N815 Trino's word


class _Stats(msgspec.Struct):
    state: str = ""
    cpuTimeMillis: float | None = None  # noqa: N815
    physicalInputBytes: int | None = None  # noqa: N815
    processedRows: int | None = None  # noqa: N815
    peakMemoryBytes: int | None = None  # noqa: N815


class _Last(msgspec.Struct):
    """What matters of a last page; the rest is skipped."""

    id: str = ""
    error: _Error | None = None
    stats: _Stats | None = None
    nextUri: str | None = None  # noqa: N815


_decode_last = msgspec.json.Decoder(_Last).decode
_decode_any = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class Passage:
    """One statement between its client and a Trino engine."""

    __slots__ = (
        "asked_at", "engine_id", "flight", "gone_since", "is_over", "lease", "query_id", "upstream",
    )  # fmt: skip

    def __init__(self, flight: Flight, lease: Lease, upstream: Upstream, engine_id: str) -> None:
        self.flight = flight
        self.lease = lease
        self.upstream = upstream
        self.engine_id = engine_id
        self.query_id: str | None = None
        self.asked_at = time.monotonic()
        self.gone_since: float | None = None
        self.is_over = False

    def body_for(self, answer: Answer, base: str) -> tuple[bytes, bool]:
        """An answer's body for the client, and whether it is the last page.

        Raises:
            ValueError: it is no page of Trino's protocol.
        """
        body, query_id, is_last = rewrite(answer.body, base, self.engine_id)
        if self.query_id is None:
            self.query_id = self.flight.query_id = query_id
        if b'"data":' in body:
            self.flight.mark_first_row()
        return body, is_last

    def outcome(self, body: bytes) -> tuple[QueryStatus, Exception | None]:
        """How the statement ended, from its last page; what it took is noted on the way.

        Raises:
            ValueError: it is no page of Trino's protocol.
        """
        try:
            last = _decode_last(body)
        except msgspec.MsgspecError as error:
            raise ValueError(f"this is no answer of Trino's protocol: {error}") from error
        flight, stats = self.flight, last.stats or _Stats()
        flight.cost = Cost(
            cpu_ms=stats.cpuTimeMillis,
            bytes_scanned=stats.physicalInputBytes,
            rows_scanned=stats.processedRows,
            peak_memory_bytes=stats.peakMemoryBytes,
        )
        if last.error is None:
            return QueryStatus.FINISHED, None
        name, message = last.error.errorName, last.error.message
        if name in _CANCELLED:
            return QueryStatus.CANCELLED, QueryCancelledError(message, code=name)
        return QueryStatus.FAILED, QueryFailedError(message, code=name)


def rewrite(body: bytes, base: str, engine_id: str) -> tuple[bytes, str, bool]:
    """A page with its `nextUri` pointing to us, the query's id, and whether it is the last.

    Raises:
        ValueError: it is no page of Trino's protocol.
    """
    head = _HEAD.match(body)
    if head is None:
        return _rewrite_slowly(body, base, engine_id)
    query_id = head[1].decode()
    if head[2] is None:
        # No next page, or a server that writes its fields in another order.
        if b'"nextUri"' in body:
            return _rewrite_slowly(body, base, engine_id)
        return body, query_id, True
    ours = f',"nextUri":"{base}{PREFIX}{engine_id}/'.encode()
    return b"".join((body[: head.start(2)], ours, body[head.end(2) :])), query_id, False


def _rewrite_slowly(body: bytes, base: str, engine_id: str) -> tuple[bytes, str, bool]:
    try:
        page: dict[str, Any] = _decode_any(body)
        query_id = msgspec.json.decode(page["id"], type=str)
        uri = msgspec.json.decode(page["nextUri"], type=str) if "nextUri" in page else None
    except (msgspec.MsgspecError, KeyError) as error:
        raise ValueError(f"this is no answer of Trino's protocol: {error}") from error
    if uri is None:
        return body, query_id, True
    _, marker, rest = uri.partition("/v1/statement/")
    if not marker:
        raise ValueError("its nextUri does not lead to /v1/statement")
    page["nextUri"] = f"{base}{PREFIX}{engine_id}/{rest}"
    return _encode(page), query_id, False


def submit_request(flight: Flight, target: Target) -> bytes:
    """The bytes that hand the statement to the engine.

    Raises:
        QueryFailedError: what the client said of itself cannot be passed on.
    """
    decision, request = flight.decision, flight.request
    assert decision is not None  # noqa: S101 it was admitted
    body = decision.sql.encode()
    passed = {
        name: value
        for name, value in request.headers.items()
        if (name.startswith("x-trino-") and name not in _NOT_PASSED) or name == "user-agent"
    }
    passed["X-Trino-User"] = request.user or ""
    passed["X-Trino-Trace-Token"] = request.gateway_id
    passed["Content-Type"] = "text/plain; charset=utf-8"
    passed["Content-Length"] = str(len(body))
    return _head("POST /v1/statement", passed, target) + body


def follow_request(method: str, rest: str, user: str, target: Target) -> bytes:
    """The bytes that ask the engine for a page, or to stop.

    Raises:
        QueryFailedError: as `submit_request`.
    """
    return _head(f"{method} /v1/statement/{rest}", {"X-Trino-User": user}, target)


def kill_request(query_id: str, user: str, target: Target) -> bytes:
    """The bytes that stop a query whose client is gone.

    Raises:
        QueryFailedError: as `submit_request`.
    """
    path = f"/v1/query/{quote(query_id, safe='')}"
    return _head(f"DELETE {path}", {"X-Trino-User": user}, target)


def _head(asked: str, headers: Mapping[str, str], target: Target) -> bytes:
    """A request up to its body: one line per header, whatever the values are."""
    lines = [f"{asked} HTTP/1.1", f"Host: {target.authority}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if target.authorization is not None:
        lines.append(f"Authorization: {target.authorization}")
    if _BREAKS.search("".join(lines)):
        raise QueryFailedError(
            "The user's name or a header has a line break or another control character in it; "
            "it is not passed on to an engine",
            code="INVALID_TEXT",
        )
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def passed_headers(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Headers of an answer that are meant for the client."""
    return [(name, value) for name, value in headers if name.startswith(("x-trino-", "retry-"))]
