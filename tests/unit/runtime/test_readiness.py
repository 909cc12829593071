"""When a started engine counts as ready: it does what it is there for."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.runtime.readiness import trino_runs_statements

if TYPE_CHECKING:
    from collections.abc import Iterator

FAILED = {"error": {"message": "Cannot invoke Pool.acquire()", "errorName": "REMOTE_TASK_ERROR"}}


class Coordinator(ThreadingHTTPServer):
    """Speaks as much of Trino's protocol as one statement needs; answers are set by the test."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.starting = False
        self.last_pages: list[dict[str, Any]] = []
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Coordinator

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.path == "/v1/info":
            self._answer({"starting": self.server.starting})
        else:
            self._answer(self.server.last_pages.pop(0))

    def do_POST(self) -> None:
        self.server.asked.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer({"nextUri": f"http://127.0.0.1:{self.server.server_port}/v1/page/1"})

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _answer(self, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    server = Coordinator()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_trino_is_not_ready_before_it_has_run_a_statement(coordinator: Coordinator) -> None:
    ready = trino_runs_statements("127.0.0.1", coordinator.server_port)
    coordinator.last_pages = [FAILED, {"data": [[1]]}]
    missing = ready(os.getpid())
    assert missing is not None
    assert "Pool.acquire()" in missing
    assert ready(os.getpid()) is None


def test_a_catalog_that_did_not_load_keeps_trino_from_being_ready(coordinator: Coordinator) -> None:
    ready = trino_runs_statements("127.0.0.1", coordinator.server_port, ["lake"])
    broken = {"error": {"message": "Catalog 'lake' failed to initialize and is disabled"}}
    coordinator.last_pages = [{"data": [[1]]}, broken, {"data": [[1]]}, {"data": [["plan"]]}]
    missing = ready(os.getpid())
    assert missing is not None
    assert "Catalog 'lake' failed to initialize" in missing
    assert ready(os.getpid()) is None


def test_a_starting_trino_is_asked_for_no_statement(coordinator: Coordinator) -> None:
    coordinator.starting = True
    ready = trino_runs_statements("127.0.0.1", coordinator.server_port)
    assert ready(os.getpid()) == "Trino is still starting"
    assert coordinator.asked == ["/v1/info"]


def test_an_answer_that_is_no_trino_is_named(coordinator: Coordinator) -> None:
    ready = trino_runs_statements("127.0.0.1", coordinator.server_port)
    coordinator.last_pages = [{"nextUri": "http://127.0.0.1:1/v1/page/2"}]
    missing = ready(os.getpid())
    assert missing is not None
    assert "ConnectError" in missing
