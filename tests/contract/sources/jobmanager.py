"""A stand-in for a Flink JobManager, with payloads in the form Flink gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.sources.loopback import LoopbackServer
from tests.factories import NOW
from tests.unit.collectors.flink.recorded import payloads

if TYPE_CHECKING:
    from datetime import datetime

ENDED = {"FINISHED": "jobs-finished", "CANCELED": "jobs-cancelled", "FAILED": "jobs-failed"}


class JobManager(LoopbackServer):
    """Remembers jobs, and counts those that ended though it may have forgotten them."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.counts = dict.fromkeys(ENDED.values(), 0)
        self.leader = "/tmp/flink-web-1"  # noqa: S108 a name that nobody opens
        super().__init__()

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

    def body(self, path: str, query: dict[str, list[str]]) -> Any:
        del query
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
