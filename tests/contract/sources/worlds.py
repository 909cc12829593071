"""The matrix of sources: for each a small world that it reads, which tests can add to and break.

Every query of a world scans `BYTES` bytes, so that a total shows what was lost or doubled.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
import zstandard

from collectors.duckdb.config import JournalSettings
from collectors.duckdb.source import JournalSource
from collectors.events import to_json
from collectors.spark.config import EventLogSettings
from collectors.spark.source import EventLogSource
from collectors.trino.config import TrinoSettings
from collectors.trino.source import TrinoSource
from collectors.understanding import Understanding
from lakehouse_core.domain.query import EngineId, QueryStatus
from tests.contract.sources.coordinator import Coordinator
from tests.factories import NOW, query_event

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from collectors.base import Source

BYTES = 1_000
SQL = "SELECT v FROM lake.demo.t WHERE id = {}"


class World(Protocol):
    """What a source reads, in the hands of a test."""

    place: str  # what an error must name

    def source(self) -> Source:
        """A new source on this world, with small batches."""
        ...

    def run(self, number: int, at: datetime = NOW) -> str:
        """A query begins and ends; returns its id."""
        ...

    def begin(self, number: int) -> Callable[[], str]:
        """A query begins; call the result to end it and get its id."""
        ...

    def spoil(self) -> None:
        """A row appears that cannot be understood."""
        ...

    def drop(self) -> None:
        """History that was not read yet disappears."""
        ...

    def vanish(self) -> None:
        """The source is not there any more."""
        ...

    def close(self) -> None:
        """Release what the world holds."""
        ...


class TrinoWorld:
    """A coordinator on loopback."""

    def __init__(self, _folder: Path) -> None:
        self.coordinator = Coordinator()
        self.place = self.coordinator.url

    def source(self) -> Source:
        return trino_source(self.place)

    def run(self, number: int, at: datetime = NOW) -> str:
        return self.begin(number, at)()

    def begin(self, number: int, at: datetime = NOW) -> Callable[[], str]:
        query_id = f"20261116_000000_{number:05}_world"
        basic = self.coordinator.add(query_id, at, state="RUNNING", query=SQL.format(number))
        basic["queryStats"]["physicalInputDataSize"] = f"{BYTES // 2}B"

        def end() -> str:
            basic["state"] = "FINISHED"
            basic["queryStats"]["physicalInputDataSize"] = f"{BYTES}B"
            return query_id

        return end

    def spoil(self) -> None:
        basic = self.coordinator.add("20261116_000000_09999_world")
        basic["queryStats"] = {"createTime": "not a time"}

    def drop(self) -> None:
        newest = max(self.coordinator.queries)
        self.coordinator.queries.clear()
        self.run(int(newest.split("_")[2]) + 50)

    def vanish(self) -> None:
        self.coordinator.close()

    def close(self) -> None:
        if self.coordinator.release.is_set():
            return
        self.coordinator.close()


@dataclass
class SparkWorld:
    """An application's rolling log, written as Spark writes it: a zstd frame per flush."""

    folder: Path
    _stages: int = 0
    place: str = ""
    _file: Path = field(init=False)

    def __post_init__(self) -> None:
        logs = self.folder / "spark"
        app = logs / "eventlog_v2_local-1"
        app.mkdir(parents=True)
        (app / "appstatus_local-1.inprogress").touch()
        self.place = str(logs)
        self._file = app / "events_1_local-1.zstd"
        self._log({"Event": "SparkListenerLogStart", "Spark Version": "4.1.4"})
        self._log(
            {
                "Event": "SparkListenerApplicationStart",
                "App Name": "world",
                "App ID": "local-1",
                "Timestamp": 1,
                "User": "spark",
            }
        )

    def source(self) -> Source:
        return spark_source(self.place)

    def run(self, number: int, at: datetime = NOW) -> str:
        return self.begin(number, at)()

    def begin(self, number: int, at: datetime = NOW) -> Callable[[], str]:
        key = f"00000000-0000-0000-0000-{number:012}"
        tag = f"SparkConnect_OperationTag_User_ana_Session_s_Operation_{key}"
        time = int(at.timestamp() * 1_000)
        operation = {"jobTag": tag, "operationId": key}
        self._stages += 1
        stage = self._stages
        text = f'common {{\n  plan_id: 1\n}}\nsql {{\n  query: "{SQL.format(number)}"\n}}\n'
        self._connect("Started", time, operation, userId="ana", statementText=text)
        self._connect("ReadyForExecution", time + 10, operation)
        self._log(
            {
                "Event": "SparkListenerStageSubmitted",
                "Stage Info": {"Stage ID": stage},
                "Properties": {"spark.job.tags": f"x,{tag}"},
            }
        )
        self._task(stage)

        def end() -> str:
            self._task(stage)
            self._connect("Finished", time + 500, operation, producedRowCount=1)
            self._connect("Closed", time + 510, operation)
            return key

        return end

    def spoil(self) -> None:
        self._append(b'{"Event":"SparkListenerTaskEnd","Stage ID":"seven"}\n')

    def drop(self) -> None:
        app = self._file.parent
        self._file.unlink()
        (app / "events_4_local-1.zstd.compact").touch()
        self._file = app / "events_5_local-1.zstd"
        self._file.touch()

    def vanish(self) -> None:
        (self.folder / "spark").rename(self.folder / "elsewhere")

    def close(self) -> None:
        pass

    def _task(self, stage: int) -> None:
        self._log({"Event": "SparkListenerTaskStart", "Stage ID": stage})
        metrics = {"Executor CPU Time": 1_000_000, "Input Metrics": {"Bytes Read": BYTES // 2}}
        self._log({"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Metrics": metrics})

    def _connect(self, what: str, time: int, operation: dict[str, str], **more: Any) -> None:
        name = f"org.apache.spark.sql.connect.service.SparkListenerConnectOperation{what}"
        self._log({"Event": name, "eventTime": time, **operation, **more})

    def _log(self, event: dict[str, Any]) -> None:
        self._append(json.dumps(event, separators=(",", ":")).encode() + b"\n")

    def _append(self, line: bytes) -> None:
        with self._file.open("ab") as file:
            file.write(zstandard.ZstdCompressor().compress(line))


@dataclass
class DuckDBWorld:
    """A journal of one process."""

    folder: Path
    place: str = ""

    def __post_init__(self) -> None:
        journal = self.folder / "duckdb"
        journal.mkdir()
        self.place = str(journal)
        self._file = journal / "2026111612-4711.jsonl"

    def source(self) -> Source:
        return duckdb_source(self.place)

    def run(self, number: int, at: datetime = NOW) -> str:
        return self.begin(number, at)()

    def begin(self, number: int, at: datetime = NOW) -> Callable[[], str]:
        event = query_event(
            query_id=f"q-{number:05}",
            sql_text=SQL.format(number),
            statement_kind=None,
            submitted_at=at,
            bytes_scanned=BYTES // 2,
            status=QueryStatus.RUNNING,
        )
        self._write(event)

        def end() -> str:
            self._write(
                query_event(
                    query_id=event.query_id,
                    sql_text=SQL.format(number),
                    statement_kind=None,
                    submitted_at=at,
                    bytes_scanned=BYTES,
                )
            )
            return event.query_id

        return end

    def spoil(self) -> None:
        with self._file.open("ab") as file:
            file.write(b'{"engine_id": "duckdb", "query_id": "q"}\n')

    def drop(self) -> None:
        self._file.write_bytes(b"")

    def vanish(self) -> None:
        (self.folder / "duckdb").rename(self.folder / "elsewhere")

    def close(self) -> None:
        pass

    def _write(self, event: Any) -> None:
        with self._file.open("ab") as file:
            file.write(json.dumps(to_json(event)).encode() + b"\n")


def trino_source(place: str) -> Source:
    """A source on a coordinator."""
    settings = TrinoSettings(
        engine_id=EngineId("trino"),
        url=place,
        user="lakehelm",
        call_timeout=timedelta(seconds=5),
        batch_queries=3,
    )
    return TrinoSource(settings, Understanding(), lambda: NOW)


def spark_source(place: str) -> Source:
    """A source on a folder of event logs."""
    settings = EventLogSettings(engine_id=EngineId("spark"), folder=Path(place), batch_bytes=3_000)
    return EventLogSource(settings, Understanding(), lambda: NOW)


def duckdb_source(place: str) -> Source:
    """A source on a journal."""
    settings = JournalSettings(engine_id=EngineId("duckdb"), folder=Path(place), batch_bytes=1_500)
    return JournalSource(settings, Understanding(), lambda: NOW)


def athena_source(place: str) -> Source:
    """A source on a region of AWS."""
    from tests.contract.sources import athena_world  # noqa: PLC0415 its server takes a second

    return athena_world.athena_source(place)


def make_athena_world(folder: Path) -> World:
    """Athena on loopback."""
    from tests.contract.sources.athena_world import AthenaWorld  # noqa: PLC0415 as above

    return AthenaWorld(folder)


def flink_source(place: str) -> Source:
    """A source on a JobManager."""
    from tests.contract.sources import flink_world  # noqa: PLC0415 it needs this module

    return flink_world.flink_source(place)


def make_flink_world(folder: Path) -> World:
    """Flink on loopback."""
    from tests.contract.sources.flink_world import FlinkWorld  # noqa: PLC0415 as above

    return FlinkWorld(folder)


def snowflake_source(place: str) -> Source:
    """A source on a Snowflake account."""
    from tests.contract.sources import snowflake_world  # noqa: PLC0415 only where it is installed

    return snowflake_world.snowflake_source(place)


def make_snowflake_world(folder: Path) -> World:
    """Snowflake on loopback."""
    from tests.contract.sources.snowflake_world import SnowflakeWorld  # noqa: PLC0415 as above

    return SnowflakeWorld(folder)


def spark_history_source(place: str) -> Source:
    """A source on a history server."""
    from tests.contract.sources import history_server  # noqa: PLC0415 it needs this module

    return history_server.history_source(place)


def make_spark_history_world(folder: Path) -> World:
    """A history server on loopback."""
    from tests.contract.sources.history_server import SparkHistoryWorld  # noqa: PLC0415 as above

    return SparkHistoryWorld(folder)


SOURCES: dict[str, Callable[[str], Source]] = {
    "trino": trino_source,
    "spark": spark_source,
    "spark_history": spark_history_source,
    "duckdb": duckdb_source,
    "athena": athena_source,
    "snowflake": snowflake_source,
    "flink": flink_source,
}
WORLDS: dict[str, Callable[[Path], World]] = {
    "trino": TrinoWorld,
    "spark": SparkWorld,
    "spark_history": make_spark_history_world,
    "duckdb": DuckDBWorld,
    "athena": make_athena_world,
    "snowflake": make_snowflake_world,
    "flink": make_flink_world,
}
# One that needs more than this environment has its marker.
_MARKS = {"snowflake": pytest.mark.snowflake}
KINDS = [pytest.param(name, marks=_MARKS[name]) if name in _MARKS else name for name in WORLDS]
