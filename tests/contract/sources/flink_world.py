"""A session cluster, in the hands of a test."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from collectors.flink.config import FlinkSettings
from collectors.flink.source import FlinkSource
from collectors.rest import Server
from collectors.understanding import Understanding
from lakehouse_core.domain.query import EngineId
from tests.contract.sources.jobmanager import JobManager
from tests.factories import NOW

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from collectors.base import Source


class FlinkWorld:
    """A JobManager on loopback; its jobs have no SQL, and nobody knows what they scan."""

    tells_sql = False
    bytes_per_query = 0

    def __init__(self, _folder: Path) -> None:
        self.manager = JobManager()
        self.place = self.manager.url

    def source(self) -> Source:
        return flink_source(self.place)

    def run(self, number: int, at: datetime = NOW) -> str:
        return self.begin(number, at)()

    def begin(self, number: int, at: datetime = NOW) -> Callable[[], str]:
        job_id = f"{number:032x}"
        self.manager.start(job_id, at)

        def end() -> str:
            self.manager.end(job_id, seconds=1)
            return job_id

        return end

    def spoil(self) -> None:
        job_id = f"{9_999:032x}"
        self.run(9_999)
        for form in ("listed", "detail"):
            self.manager.jobs[job_id][form]["start-time"] = "not a time"

    def drop(self) -> None:
        self.manager.jobs.clear()

    def vanish(self) -> None:
        self.manager.close()

    def close(self) -> None:
        if not self.manager.release.is_set():
            self.manager.close()


def flink_source(place: str, *, seconds: float = 5.0) -> Source:
    """A source on a JobManager."""
    server = Server(name="Flink's JobManager", url=place, call_timeout=timedelta(seconds=seconds))
    settings = FlinkSettings(engine_id=EngineId("flink"), server=server, batch_jobs=3)
    return FlinkSource(settings, Understanding(), lambda: NOW)
