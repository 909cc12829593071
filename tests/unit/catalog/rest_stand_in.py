"""A stand-in for an Iceberg REST catalog: real HTTP on loopback, with faults on demand.

It speaks as the specification does (pages, ETags, error bodies, tokens); the real server is in
tests/contract/catalogs.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

SEPARATOR = "\x1f"
Levels = tuple[str, ...]


@dataclass(frozen=True)
class Reply:
    """One answer."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def problem(status: int, kind: str, message: str = "because", **headers: str) -> Reply:
    """An error as the specification has it."""
    error = {"error": {"message": message, "type": kind, "code": status}}
    return Reply(status, error, {name.replace("_", "-"): text for name, text in headers.items()})


class RestStandIn:
    """Tables with a location each, below namespaces."""

    def __init__(self) -> None:
        self.tables: dict[tuple[Levels, str], str] = {}
        self.namespaces: set[Levels] = set()
        self.overrides: dict[str, str] = {}
        self.page_size = 1_000
        self.has_etags = True
        self.token: str | None = None  # what it wants to see
        self.issued = 0
        # Asked before anything else; the answer is sent instead, unless it is None.
        self.fault: Callable[[str, dict[str, str]], Reply | None] | None = None
        self.asked: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.forms: list[dict[str, list[str]]] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    @property
    def uri(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def add(self, namespace: Levels, name: str, location: str = "file:/lake/v1.json") -> None:
        for depth in range(1, len(namespace) + 1):
            self.namespaces.add(namespace[:depth])
        self.tables[namespace, name] = location

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, query: dict[str, str], headers: dict[str, str]) -> Reply:
        if self.token and headers.get("authorization") != f"Bearer {self.token}":
            return problem(401, "NotAuthorizedException", f"not {headers.get('authorization')}")
        if path == "/v1/config":
            return Reply(200, {"defaults": {}, "overrides": self.overrides})
        return self._resource(path, query, headers)

    def _resource(self, path: str, query: dict[str, str], headers: dict[str, str]) -> Reply:
        prefix = f"/v1/{self.overrides['prefix']}" if "prefix" in self.overrides else "/v1"
        if not path.startswith(f"{prefix}/namespaces"):
            return problem(404, "NotFoundException", f"no such place: {path}")
        parts = path.removeprefix(f"{prefix}/namespaces").strip("/").split("/")
        if parts == [""]:
            parent = tuple(query["parent"].split(SEPARATOR)) if "parent" in query else ()
            below = [one for one in sorted(self.namespaces) if one[:-1] == parent]
            return self._page("namespaces", [list(one) for one in below], query)
        namespace = tuple(unquote(parts[0]).split(SEPARATOR))
        if namespace not in self.namespaces:
            return problem(404, "NoSuchNamespaceException")
        if len(parts) == 2:
            found = [
                {"namespace": list(where), "name": name}
                for where, name in sorted(self.tables)
                if where == namespace
            ]
            return self._page("identifiers", found, query)
        return self._table(namespace, unquote(parts[2]), headers)

    def _page(self, key: str, items: list[Any], query: dict[str, str]) -> Reply:
        start = int(query.get("pageToken") or 0)
        end = start + self.page_size
        token = str(end) if end < len(items) else None
        return Reply(200, {key: items[start:end], "next-page-token": token})

    def _table(self, namespace: Levels, name: str, headers: dict[str, str]) -> Reply:
        location = self.tables.get((namespace, name))
        if location is None:
            return problem(404, "NoSuchTableException", f"no table {name}")
        etag = f'"{location}"'
        if self.has_etags and headers.get("if-none-match") == etag:
            return Reply(304)
        body = {"metadata-location": location, "metadata": {"snapshots": []}, "config": {}}
        return Reply(200, body, {"ETag": etag} if self.has_etags else {})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # sent one by one, a body waits until its headers are acknowledged

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                headers = {name.lower(): text for name, text in self.headers.items()}
                with outer._lock:
                    outer._at_once += 1
                    outer.most_at_once = max(outer.most_at_once, outer._at_once)
                    outer.asked.append(parts.path)
                try:
                    reply = outer.fault(parts.path, headers) if outer.fault else None
                    query = {
                        key: values[0]
                        for key, values in parse_qs(parts.query, keep_blank_values=True).items()
                    }
                    self.send(reply or outer.answer(parts.path, query, headers))
                finally:
                    with outer._lock:
                        outer._at_once -= 1

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                outer.asked.append(self.path)
                outer.forms.append(parse_qs(body))
                reply = outer.fault(self.path, {}) if outer.fault else None
                outer.issued += 1
                outer.token = f"issued-{outer.issued}"
                token = {"access_token": outer.token, "token_type": "bearer", "expires_in": 3600}
                self.send(reply or Reply(200, token))

            def send(self, reply: Reply) -> None:
                outer.statuses[reply.status] += 1
                is_text = isinstance(reply.body, str)
                data = reply.body.encode() if is_text else json.dumps(reply.body).encode()
                data = b"" if reply.body is None else data
                self.send_response(reply.status)
                for name, text in reply.headers.items():
                    self.send_header(name, text)
                if reply.status != 304:
                    self.send_header("Content-Length", str(len(data)))
                with contextlib.suppress(BrokenPipeError):  # whoever asked may have given up
                    self.end_headers()
                    if reply.status != 304:
                        self.wfile.write(data)
                    self.wfile.flush()

            def log_message(self, *_: object) -> None:
                pass

        return Handler
