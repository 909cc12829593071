"""A stand-in for a Flink JobManager: real HTTP on loopback, payloads in the form Flink gave."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.contract.sources.coordinator import answer
from tests.factories import NOW
from tests.unit.collectors.flink.recorded import payloads

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

ENDED = {"FINISHED": "jobs-finished", "CANCELED": "jobs-cancelled", "FAILED": "jobs-failed"}


class JobManager:
    """Remembers jobs, and counts those that ended though it may have forgotten them."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.counts = dict.fromkeys(ENDED.values(), 0)
        self.leader = "/tmp/flink-web-1"  # noqa: S108 a name that nobody opens
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

    def start(self, job_id: str, at: datetime = NOW) -> None:
        """A job like the recorded one begins."""
        job = payloads("running")
        begin = int(at.timestamp() * 1_000)
        shift = begin - job["detail"]["start-time"]
        for form in (job["listed"], job["detail"]):
            form |= {"jid": job_id, "start-time": begin}
        detail = job["detail"]
        detail["now"] += shift
        detail["timestamps"] = {k: v + shift for k, v in detail["timestamps"].items() if v}
        self.jobs[job_id] = job

    def end(self, job_id: str, state: str = "FINISHED", seconds: int = 60) -> None:
        """It ends so many seconds after its begin."""
        job = self.jobs[job_id]
        for form in (job["listed"], job["detail"]):
            form |= {"state": state, "end-time": form["start-time"] + seconds * 1_000}
        self.counts[ENDED[state]] += 1

    def restart(self) -> None:
        """Another process takes its place, and knows nothing."""
        self.jobs.clear()
        self.counts = dict.fromkeys(self.counts, 0)
        self.leader += "x"

    def _body(self, path: str) -> Any:
        if path == "/overview":
            return {"taskmanagers": 1, "slots-total": 2, "jobs-running": 0, **self.counts}
        if path == "/jobs/overview":
            return {"jobs": [job["listed"] for job in self.jobs.values()]}
        if path == "/jobmanager/config":
            return [{"key": "web.tmpdir", "value": self.leader}]
        parts = path.removeprefix("/jobs/").split("/", maxsplit=1)
        job = self.jobs.get(parts[0])
        if job is None:
            return None
        form = {
            "": "detail",
            "checkpoints": "checkpoints",
            "checkpoints/config": "checkpoint_config",
            "exceptions": "exceptions",
        }[parts[1] if len(parts) > 1 else ""]
        return job.get(form, {})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.split("?")[0]
                outer.asked.append(path)
                if outer.fault is not None and outer.fault(path, self):
                    return
                body = outer._body(path)
                if body is None:
                    answer(self, 404, b'{"errors":["Job could not be found"]}')
                else:
                    answer(self, 200, json.dumps(body).encode())

            def log_message(self, *_: object) -> None:
                pass

        return Handler
