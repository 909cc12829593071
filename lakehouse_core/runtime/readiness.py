"""When a started process counts as ready: its port is its own, and it answers."""

from __future__ import annotations

import http.client
import json
import socket
from typing import TYPE_CHECKING, Any

from lakehouse_core.runtime.ports import listens

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    # Gets the process id; returns None when ready, else what is still missing.
    ReadyCheck = Callable[[int], str | None]
    # Judges an HTTP answer (status, body) the same way.
    Accept = Callable[[int, bytes], str | None]

TIMEOUT_SECONDS = 2.0


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
