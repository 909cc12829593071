"""A Trino that does as it is told: answers, waits, dies; knows what it was asked."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COLUMN = {
    "name": "x",
    "type": "varchar(5)",
    "typeSignature": {"rawType": "varchar", "arguments": [{"kind": "LONG", "value": 5}]},
}


class MockTrino:
    """Serves until it is closed.

    Attributes:
        pages: what each query gives: one list of rows per page.
        dies_at: the request, counted from 0 per query, at which the connection breaks; None: never.
        hangs: requests for pages wait until it is closed.
        asked: method, path and headers of every request.
    """

    def __init__(self, name: str = "a", port: int = 0) -> None:
        self.name = name
        self.pages: list[list[list[Any]]] = [[["one"]]]
        self.dies_at: int | None = None
        self.hangs = False
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.statements: list[str] = []
        self._release = threading.Event()
        mock = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # sent one by one, a body waits until its headers are acknowledged

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                mock.statements.append(body)
                mock.answer(self, 0)

            def do_GET(self) -> None:
                mock.answer(self, int(self.path.rpartition("/")[2].partition("?")[0]))

            def do_DELETE(self) -> None:
                mock.note(self)
                self.send_response(204)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def note(self, handler: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.asked.append((handler.command, handler.path, headers))

    def answer(self, handler: BaseHTTPRequestHandler, number: int) -> None:
        self.note(handler)
        if self.hangs and number > 0:
            self._release.wait(30)
        if self.dies_at is not None and number >= self.dies_at:
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        body = json.dumps(self._page(number), separators=(",", ":")).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _page(self, number: int) -> dict[str, Any]:
        query_id = f"20260101_000000_00001_{self.name}"
        base = f"http://127.0.0.1:{self.port}"
        page: dict[str, Any] = {"id": query_id, "infoUri": f"{base}/ui/query.html?{query_id}"}
        is_last = number >= len(self.pages)
        if not is_last:
            page["nextUri"] = f"{base}/v1/statement/executing/{query_id}/slug/{number + 1}"
        if number > 0:
            page |= {"columns": [COLUMN], "data": self.pages[number - 1]}
        page["stats"] = {
            "state": "FINISHED" if is_last else "RUNNING",
            "cpuTimeMillis": 7,
            "physicalInputBytes": 11,
            "nodes": 1,
        }
        return page

    def close(self) -> None:
        self._release.set()
        self._server.shutdown()
        self._server.server_close()
