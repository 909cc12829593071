"""A small HTTP server in a thread, for clients that speak Trino's protocol."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Server:
    """Answers with what a function makes of the request; notes what was asked."""

    def __init__(self, answer: Callable[[str, str, str], tuple[int, Any]]) -> None:
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _do(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                outer.asked.append((self.command, self.path, dict(self.headers)))
                status, body = answer(self.command, self.path, outer.url)
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_DELETE = _do  # noqa: N815 names of the library

            def log_message(self, format: str, *args: Any) -> None:
                del format, args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def serving(answer: Callable[[str, str, str], tuple[int, Any]]) -> Iterator[Server]:
    found = Server(answer)
    thread = threading.Thread(target=found.server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield found
    finally:
        found.server.shutdown()
        thread.join()
        found.server.server_close()
