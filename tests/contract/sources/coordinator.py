"""A stand-in for a Trino coordinator: real HTTP on loopback, payloads in the form Trino gave."""

from __future__ import annotations

import copy
import json
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.factories import NOW

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

FIXTURES = Path(__file__).parents[2] / "integration" / "fixtures" / "trino"
_BASIC = json.loads((FIXTURES / "list.json").read_text())[0]
_DETAIL = json.loads((FIXTURES / "details.json").read_text())[_BASIC["queryId"]]


class Coordinator:
    """Remembers queries and answers `/v1/query` and `/v1/query/{id}`."""

    def __init__(self) -> None:
        self.queries: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        # What a fault answers: takes a path, writes to the handler and returns True.
        self.fault: Callable[[str, BaseHTTPRequestHandler], bool] | None = None
        self.release = threading.Event()  # lets a hanging answer go
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(self, query_id: str, at: datetime = NOW, **changes: Any) -> dict[str, Any]:
        """Remember a query like the recorded one; `changes` are fields of its short form."""
        basic = copy.deepcopy(_BASIC)
        basic["queryId"] = query_id
        basic["queryStats"] |= {
            "createTime": at.isoformat(),
            "endTime": (at + timedelta(seconds=1)).isoformat(),
        }
        basic |= changes
        self.queries[query_id] = basic
        return basic

    def detail(self, query_id: str) -> dict[str, Any]:
        basic = self.queries[query_id]
        detail = copy.deepcopy(_DETAIL)
        stats = {**detail["queryStats"], **(basic.get("queryStats") or {})}
        return {**detail, **basic, "queryStats": stats, "queryId": query_id}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.split("?")[0]
                outer.asked.append(path)
                if outer.fault is not None and outer.fault(path, self):
                    return
                if self.headers.get("X-Trino-User") is None:
                    answer(self, 401, b"X-Trino-User must be sent")
                elif path == "/v1/query":
                    answer(self, 200, json.dumps(list(outer.queries.values())).encode())
                elif path.rpartition("/")[2] in outer.queries:
                    body = json.dumps(outer.detail(path.rpartition("/")[2])).encode()
                    answer(self, 200, body)
                else:
                    answer(self, 410, b"Gone")

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def answer(handler: BaseHTTPRequestHandler, code: int, body: bytes, **headers: str) -> bool:
    """Send a whole answer; True, so that a fault can end with it."""
    handler.send_response(code)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)
    return True
