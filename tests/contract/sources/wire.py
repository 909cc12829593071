"""An HTTP hop on loopback in front of a server, where a test can break things."""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from tests.contract.sources.coordinator import answer

if TYPE_CHECKING:
    from collections.abc import Callable

_OF_THE_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")


class Wire:
    """Passes every request on, unless a fault answers it; that is given the path and the body."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.asked: list[str] = []
        self.fault: Callable[[str, bytes, BaseHTTPRequestHandler], bool] | None = None
        self.release = threading.Event()  # lets a hanging answer go
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.split("?")[0]
                outer.asked.append(path)
                if outer.fault is not None and outer.fault(path, body, self):
                    return
                outer._pass_on(self, body)

            do_GET = do_POST  # noqa: N815 the name that the server looks for

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _pass_on(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        given = {k: v for k, v in handler.headers.items() if k.lower() not in _OF_THE_HOP}
        line = http.client.HTTPConnection("127.0.0.1", self._target, timeout=60)
        try:
            line.request(handler.command, handler.path, body, given)
            reply = line.getresponse()
            content = reply.read()
            kept = {
                k.replace("-", "_"): v
                for k, v in reply.getheaders()
                if k.lower() not in _OF_THE_HOP
            }
            answer(handler, reply.status, content, **kept)
        finally:
            line.close()
