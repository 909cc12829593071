"""When a started process counts as ready: its port is its own, and it answers."""

from __future__ import annotations

import http.client
import json
import socket
import time
from typing import TYPE_CHECKING, Any

import httpx
import psutil

from lakehouse_core.runtime.ports import listens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    # Gets the process id; returns None when ready, else what is still missing.
    ReadyCheck = Callable[[int], str | None]
    # Judges an HTTP answer (status, body) the same way.
    Accept = Callable[[int, bytes], str | None]

TIMEOUT_SECONDS = 2.0
# The first statement of a cold server takes seconds; supervision waits for the answer.
STATEMENT_SECONDS = 15.0


def port_open(host: str, port: int) -> ReadyCheck:
    """Ready when the process itself listens on the port and a connection succeeds."""

    def check(pid: int) -> str | None:
        missing = port_answer(host, port)
        if missing is None and not listens(pid, port):
            return f"another program listens on {host}:{port}"
        return missing

    return check


def port_answer(host: str, port: int) -> str | None:
    """None when a connection to the port succeeds; else what is wrong."""
    try:
        socket.create_connection((host, port), TIMEOUT_SECONDS).close()
    except OSError as error:
        return f"nothing answers on {host}:{port} ({type(error).__name__})"
    return None


def http_answers(host: str, port: int, path: str, accept: Accept | None = None) -> ReadyCheck:
    """Ready when the process itself answers the path with 200, or as `accept` says."""
    is_listening = port_open(host, port)

    def check(pid: int) -> str | None:
        missing = is_listening(pid)
        return missing if missing is not None else http_answer(host, port, path, accept)

    return check


def http_answer(host: str, port: int, path: str, accept: Accept | None = None) -> str | None:
    """None when the path is answered with 200, or as `accept` says; else what is wrong."""
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        status, body = response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        return f"{path} on {host}:{port} does not answer ({type(error).__name__})"
    finally:
        connection.close()
    if accept is not None:
        return accept(status, body)
    return None if status == 200 else f"{path} on {host}:{port} answers {status}"


def file_exists(path: Path) -> ReadyCheck:
    """Ready when the process has left its mark; whoever starts it removes an old one."""

    def check(_pid: int) -> str | None:
        return None if path.exists() else f"{path.name} is not there yet"

    return check


def beats(path: Path, within_seconds: float) -> ReadyCheck:
    """Alive while the process touches its mark again and again."""

    def check(_pid: int) -> str | None:
        try:
            age = time.time() - path.stat().st_mtime
        except FileNotFoundError:
            return f"{path.name} is gone"
        return None if age < within_seconds else f"{path.name} was last touched {age:.0f} s ago"

    return check


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped the process (SIGSTOP): its ports still take connections."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False  # it has ended, which is noticed elsewhere


def runs(_pid: int) -> str | None:
    """Ready as soon as it runs: for processes that serve nobody."""
    return None


def trino_started(status: int, body: bytes) -> str | None:
    """Read Trino's /v1/info: it answers before it can run queries."""
    if status != 200:
        return f"/v1/info answers {status}"
    try:
        info: Any = json.loads(body)
    except ValueError:
        return "/v1/info is not JSON"
    return None if info.get("starting") is False else "Trino is still starting"


def trino_runs_statements(host: str, port: int, catalogs: Iterable[str] = ()) -> ReadyCheck:
    """Ready when the process itself has started, has run a statement and has these catalogs.

    A Trino that says it has started can still fail the first statement that sends tasks: the
    HTTP client for its workers may not be up yet. A catalog whose settings are wrong does not
    keep it from starting; analysing a statement on it tells, and asks nothing of what is behind.
    """
    has_started = http_answers(host, port, "/v1/info", trino_started)
    of_catalog = 'EXPLAIN SELECT 1 FROM "{}".information_schema.schemata'
    statements = (
        "SELECT count(*) FROM system.runtime.nodes",  # of two stages
        *(of_catalog.format(name) for name in catalogs),  # a configuration's names hold no quotes
    )

    def check(pid: int) -> str | None:
        missing = has_started(pid)
        for sql in statements:
            missing = missing or _statement_answer(f"http://{host}:{port}", sql)
        return missing

    return check


def _statement_answer(url: str, sql: str) -> str | None:
    """None when Trino ran the statement; else what is wrong."""
    headers = {"X-Trino-User": "lakehelm", "X-Trino-Source": "lakehelm-readiness"}
    until = time.monotonic() + STATEMENT_SECONDS
    try:
        with httpx.Client(headers=headers, timeout=STATEMENT_SECONDS, trust_env=False) as client:
            answer = client.post(f"{url}/v1/statement", content=sql).raise_for_status().json()
            while (next_page := answer.get("nextUri")) and time.monotonic() < until:
                answer = client.get(next_page).raise_for_status().json()
    except (httpx.HTTPError, ValueError) as error:
        return f"Trino does not run statements yet ({type(error).__name__})"
    if failure := answer.get("error"):
        return f"Trino does not run statements yet ({failure.get('message')})"
    return None if next_page is None else "Trino's first statements are not done yet"
