"""Running a statement through the gateway's Trino port, as any other client does.

    run = Run(Connection(url, user="ana"), "SELECT 1")
    run.start()
    run.seen().state            # queued, running, finished, failed, cancelled
    run.cancel()

Pages are fetched by a thread, so that whoever shows them never waits. Rows, bytes and time have
limits; what is beyond them is not fetched and the engine is told to stop.
"""

from __future__ import annotations

import ssl
import threading
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import httpx

from lakehouse_core.sql.preview import previewed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lakehouse_core.config.gateway import SqlConfig

SOURCE = "lakehelm-console"
MOST_BYTES = 64 * 2**20
ANSWER_SECONDS = 60.0
AWAY = "GATEWAY_AWAY"  # the name of the problem when nobody answers
RunState = Literal["queued", "running", "finished", "failed", "cancelled"]
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 compared with, not listened on


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where statements are sent, and as whom."""

    url: str
    user: str
    password: str | None = field(default=None, repr=False)
    catalog: str | None = None
    schema: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    certificate: Path | None = None

    def client(self) -> httpx.Client:
        """An HTTP client that says who asks with every request."""
        given = {
            "X-Trino-User": self.user,
            "X-Trino-Source": SOURCE,
            "X-Trino-Catalog": self.catalog,
            "X-Trino-Schema": self.schema,
            "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",
            **self.headers,
        }
        verify: ssl.SSLContext | bool = True
        if self.certificate is not None:
            verify = ssl.create_default_context()
            verify.load_verify_locations(self.certificate)
        return httpx.Client(
            headers=[(name.encode(), value.encode()) for name, value in given.items() if value],
            auth=None if self.password is None else (self.user, self.password),
            timeout=ANSWER_SECONDS,
            verify=verify,
            trust_env=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is fetched at most."""

    rows: int = 1_000
    bytes: int = MOST_BYTES
    seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result, with Trino's name of its type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a statement failed; line and column count from 1, where the place is known."""

    name: str
    message: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How far a statement is; `more` says why rows are missing, when some are."""

    state: RunState
    query_id: str | None
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    seconds: float
    more: str | None = None
    problem: Problem | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self.state in ("finished", "failed", "cancelled")


def connection_to(sql: SqlConfig, **given: Any) -> Connection:
    """The connection to the gateway of a configuration."""
    host = _EVERYWHERE.get(sql.host, sql.host)
    url = sql.model_copy(update={"host": host}).url
    return Connection(url=url.rstrip("/"), certificate=sql.tls_certificate, **given)


class Run:
    """One statement under way; any thread may look at it."""

    def __init__(self, connection: Connection, sql: str, limits: Limits | None = None) -> None:
        self.sql = sql
        self.limits = limits or Limits()
        self._connection = connection
        self._lock = threading.Lock()
        self._state: RunState = "queued"
        self._query_id: str | None = None
        self._columns: tuple[Column, ...] = ()
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0
        self._more: str | None = None
        self._problem: Problem | None = None
        self._started = time.monotonic()
        self._ended: float | None = None
        self._next: str | None = None
        self._is_cancelled = threading.Event()
        self._is_over = threading.Event()

    def start(self) -> Run:
        """Send it; returns at once."""
        threading.Thread(target=self._go, name="console-statement", daemon=True).start()
        return self

    def wait(self, seconds: float) -> Seen:
        """Wait a moment for the end; tells how far it is then."""
        self._is_over.wait(seconds)
        return self.seen()

    def seen(self) -> Seen:
        """How far it is."""
        with self._lock:
            return Seen(
                state=self._state,
                query_id=self._query_id,
                columns=self._columns,
                rows=tuple(self._rows) if self._ended is not None else (),
                seconds=(self._ended or time.monotonic()) - self._started,
                more=self._more,
                problem=self._problem,
            )

    def cancel(self) -> None:
        """Stop it, here and on the engine."""
        self._is_cancelled.set()
        with self._lock:
            following = self._next
            if self._ended is not None:
                return
        if following is not None:
            self._tell_to_stop(following)

    # --- in the thread

    def _go(self) -> None:
        try:
            with self._connection.client() as client:
                answer = client.post(
                    f"{self._connection.url}/v1/statement", content=self.sql.encode()
                )
                while not self._take(answer):
                    answer = client.get(self._follow())
        except httpx.HTTPError as error:
            self._fail(AWAY, self._away(type(error).__name__))
        except (ValueError, OSError) as error:
            self._fail("GATEWAY_ANSWER", f"What answers is no Trino: {error}")

    def _take(self, answer: httpx.Response) -> bool:
        """Note what a page says; whether it was the last one."""
        if answer.status_code != HTTPStatus.OK:
            name = "NOT_AUTHENTICATED" if answer.status_code == HTTPStatus.UNAUTHORIZED else "HTTP"
            self._fail(name, answer.text[:500] or f"HTTP {answer.status_code}")
            return True
        page = answer.json()
        with self._lock:
            self._query_id = page.get("id")
            self._next = page.get("nextUri")
            self._state = "queued" if page["stats"]["state"] == "QUEUED" else "running"
            if page.get("columns"):
                self._columns = tuple(Column(one["name"], one["type"]) for one in page["columns"])
            self._rows.extend(tuple(row) for row in page.get("data") or ())
        if self._is_cancelled.is_set():
            self._stop("cancelled", None)
            return True
        if page.get("error"):
            self._fail_as(page["error"])
            return True
        self._bytes += len(answer.content)
        return self._is_enough()

    def _is_enough(self) -> bool:
        limits, has_more = self.limits, self._next is not None
        held = len(self._rows)
        if held > limits.rows:
            with self._lock:
                del self._rows[limits.rows :]
            self._stop("finished", f"only the first {limits.rows:,} rows were fetched")
        elif has_more and self._bytes > limits.bytes:
            self._stop("finished", f"only the first {held:,} rows were fetched: they are large")
        elif has_more and time.monotonic() - self._started > limits.seconds:
            said = f"It took longer than {limits.seconds:g} s and was stopped"
            self._stop("failed", None, Problem(name="TIME_LIMIT", message=said))
        elif not has_more:
            self._stop("finished", None)
        return self._ended is not None

    def _follow(self) -> str:
        following = self._next or ""
        if not self._is_ours(following):
            raise ValueError(
                f"it leads to another server: set gateway.sql.public_url ({following})"
            )
        return following

    def _stop(self, state: RunState, more: str | None, problem: Problem | None = None) -> None:
        with self._lock:
            following, self._next = self._next, None
            self._state, self._more, self._problem = state, more, problem
            self._ended = time.monotonic()
        if following is not None:
            self._tell_to_stop(following)
        self._is_over.set()

    def _fail(self, name: str, message: str) -> None:
        if self._is_cancelled.is_set():
            self._stop("cancelled", None)
        else:
            self._stop("failed", None, Problem(name=name, message=message))

    def _fail_as(self, error: dict[str, Any]) -> None:
        place = error.get("errorLocation") or {}
        is_cancelled = error["errorName"] == "USER_CANCELED" or self._is_cancelled.is_set()
        problem = Problem(
            name=error["errorName"],
            message=error["message"],
            line=place.get("lineNumber"),
            column=place.get("columnNumber"),
        )
        self._stop("cancelled" if is_cancelled else "failed", None, problem)

    def _is_ours(self, url: str) -> bool:
        """A password goes nowhere but to the gateway it was meant for."""
        return urlsplit(url)[:2] == urlsplit(self._connection.url)[:2]

    def _tell_to_stop(self, following: str) -> None:
        if not self._is_ours(following):
            return
        try:
            with self._connection.client() as client:
                client.delete(following, timeout=5)
        except httpx.HTTPError:
            return  # it is gone already, or will be abandoned: nobody asks for it any more

    def _away(self, detail: str) -> str:
        return (
            f"The gateway does not answer at {self._connection.url} ({detail}): start it with "
            "`lakehelm up`"
        )


def limited(sql: str, rows: int) -> str:
    """A query without a limit of its own, with one of one row more: it tells if there are more."""
    return previewed(sql, "trino", rows + 1)


def pointed(sql: str, problem: Problem) -> str | None:
    """The line a problem names with a mark under its column; None when it names none."""
    lines = sql.splitlines()
    if problem.line is None or not 1 <= problem.line <= len(lines):
        return None
    head = f"line {problem.line}: "
    mark = " " * (len(head) + max(0, (problem.column or 1) - 1)) + "^"
    return f"{head}{lines[problem.line - 1]}\n{mark}"
