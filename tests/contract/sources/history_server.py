"""A stand-in for a Spark history server, and the world of the source that reads it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from collectors.rest import Server
from collectors.spark.config import HistoryServerSettings
from collectors.spark.history.source import HistoryServerSource
from collectors.understanding import Understanding
from lakehouse_core.domain.query import EngineId
from tests.contract.sources.loopback import LoopbackServer
from tests.contract.sources.worlds import BYTES, SQL
from tests.factories import NOW

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from collectors.base import Source

APP = "app-20261116-0001"
API = "/api/v1/applications"
_NUMBERS = (
    "numCompleteTasks", "numFailedTasks", "numKilledTasks", "executorCpuTime", "inputBytes",
    "inputRecords", "outputBytes", "outputRecords", "diskBytesSpilled",
)  # fmt: skip


def moment(at: datetime) -> str:
    """A time as Spark's REST writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1_000:03}GMT"


class HistoryServer(LoopbackServer):
    """Applications with their executions; real HTTP on loopback."""

    def __init__(self) -> None:
        self.apps: dict[str, dict[str, Any]] = {}
        self._updates = 0
        super().__init__()

    def start(self, app: str = APP) -> dict[str, Any]:
        """An application begins."""
        attempt = {
            "startTime": moment(NOW),
            "endTime": "1969-12-31T23:59:59.999GMT",
            "lastUpdated": moment(NOW),
            "duration": 0,
            "sparkUser": "etl",
            "completed": False,
            "appSparkVersion": "4.1.4",
        }
        self.apps[app] = {"attempt": attempt, "sql": [], "jobs": [], "stages": []}
        return self.apps[app]

    def touch(self, app: str = APP, **changes: Any) -> None:
        """Something was logged."""
        self._updates += 1
        at = NOW + timedelta(milliseconds=self._updates)
        self.apps[app]["attempt"] |= {"lastUpdated": moment(at), **changes}

    def execute(self, description: str, at: datetime = NOW, app: str = APP) -> dict[str, Any]:
        """An execution begins: one job, one stage, half of its bytes read."""
        known = self.apps[app]
        number = known.setdefault("next", 0)
        known["next"] = number + 1
        entry = {
            "id": number,
            "status": "RUNNING",
            "description": description,
            "planDescription": f"BatchScan IcebergScan(table=lake.demo.t, schemaId=0, "
            f"snapshotId={number + 7}, filters=)",
            "submissionTime": moment(at),
            "duration": 500,
            "runningJobIds": [number],
            "successJobIds": [],
            "failedJobIds": [],
            "nodes": [],
            "edges": [],
        }
        known["sql"].append(entry)
        known["jobs"].append({"jobId": number, "jobTags": [], "stageIds": [number]})
        stage = {"stageId": number, "attemptId": 0, **dict.fromkeys(_NUMBERS, 0)}
        known["stages"].append(stage | {"inputBytes": BYTES // 2, "numCompleteTasks": 1})
        self.touch(app)
        return entry

    def finish(self, number: int, status: str = "COMPLETED", app: str = APP) -> None:
        """It ends."""
        known = self.apps[app]
        (entry,) = [e for e in known["sql"] if e["id"] == number]
        entry |= {"status": status, "runningJobIds": [], "successJobIds": [number]}
        known["stages"][number] |= {"inputBytes": BYTES, "numCompleteTasks": 2}
        self.touch(app)

    def body(self, path: str, query: dict[str, list[str]]) -> Any:
        if path == API:
            return [
                {"id": name, "name": "nightly", "attempts": [app["attempt"]]}
                for name, app in self.apps.items()
            ]
        name, _, what = path.removeprefix(f"{API}/").partition("/")
        app = self.apps.get(name)
        if app is None:
            return None
        if what == "sql":
            offset, length = int(query["offset"][0]), int(query["length"][0])
            return app["sql"][offset : offset + length]
        if what.startswith("sql/"):
            found = [e for e in app["sql"] if e.get("id") == int(what.removeprefix("sql/"))]
            return found[0] if found else None
        return app[what]


class SparkHistoryWorld:
    """One application that runs statements of spark-sql."""

    def __init__(self, _folder: Path) -> None:
        self.server = HistoryServer()
        self.server.start()
        self.place = self.server.url

    def source(self) -> Source:
        return history_source(self.place)

    def run(self, number: int, at: datetime = NOW) -> str:
        return self.begin(number, at)()

    def begin(self, number: int, at: datetime = NOW) -> Callable[[], str]:
        execution = self.server.execute(SQL.format(number), at)["id"]

        def end() -> str:
            self.server.finish(execution)
            return f"{APP}:{execution}"

        return end

    def spoil(self) -> None:
        self.server.execute("odd")["status"] = "DREAMING"

    def drop(self) -> None:
        self.run(50)
        del self.server.apps[APP]["sql"][:-1]

    def vanish(self) -> None:
        self.server.close()

    def close(self) -> None:
        if not self.server.release.is_set():
            self.server.close()


def history_source(place: str, *, seconds: float = 5.0) -> Source:
    """A source on a history server, with small pages and batches."""
    server = Server(
        name="Spark's history server", url=place, call_timeout=timedelta(seconds=seconds)
    )
    settings = HistoryServerSettings(
        engine_id=EngineId("spark"),
        server=server,
        catalog="lake",
        page_executions=4,
        batch_queries=3,
    )
    return HistoryServerSource(settings, Understanding(), lambda: NOW)
