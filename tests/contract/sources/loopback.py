"""A stand-in for an engine's REST interface: real HTTP on loopback, with faults on demand."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tests.contract.sources.coordinator import answer

if TYPE_CHECKING:
    from collections.abc import Callable


class LoopbackServer:
    """Answers GET with the JSON of `body`; 404 where it is None."""

    def __init__(self) -> None:
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

    def body(self, path: str, query: dict[str, list[str]]) -> Any:
        """What a path is answered with."""
        raise NotImplementedError

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                outer.asked.append(parts.path)
                if outer.fault is not None and outer.fault(parts.path, self):
                    return
                body = outer.body(parts.path, parse_qs(parts.query))
                if body is None:
                    answer(self, 404, b'{"errors":["it could not be found"]}')
                else:
                    answer(self, 200, json.dumps(body).encode())

            def log_message(self, *_: object) -> None:
                pass

        return Handler
