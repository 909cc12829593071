"""A real history server on logs of a real application tells what the event log tells."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from agents.collect import run_once
from collectors.registry import build_source
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.processes import ProcessSpec
from lakehouse_core.runtime.readiness import http_answers
from lakehouse_core.runtime.spark import spark_environment, spark_home, spark_submit_command
from lakehouse_core.store.owner import OwnerStore
from tests.factories import free_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.collect import CollectReport
    from lakehouse_core.config import Config
    from lakehouse_core.config.environment import Machine
    from lakehouse_core.runtime.java import Java
    from tests.conftest import DemoConfig
    from tests.fixtures_runtime import StartProcess

pytestmark = [pytest.mark.spark]

PATIENCE_SECONDS = 90
SCRIPT = Path(__file__).with_name("spark_app.py")
RUNNING, EMPTY = "local-8", "local-9"
# Events of an application that does nothing.
_FRAME = ("ListenerLogStart", "ListenerApplication", "EnvironmentUpdate", "BlockManagerAdded")
# What the REST interface knows as exactly as the log does.
TOLD = (
    "status", "submitted_at", "ended_at", "elapsed_ms", "user_name", "source", "bytes_scanned",
    "rows_scanned", "bytes_written", "rows_written", "spilled_bytes", "cpu_ms", "snapshot_ids",
    "error_code",
)  # fmt: skip


@pytest.fixture(scope="module")
def config(load_demo_config: DemoConfig) -> Config:
    loaded = load_demo_config()
    for catalog in loaded.catalogs.values():
        catalog.warehouse.mkdir(parents=True, exist_ok=True)
    folder = Path(loaded.engines["spark"].event_log)
    folder.mkdir(parents=True)
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    return with_spark(loaded, conf=conf, master="local[2]", driver_memory=2**30)


@pytest.fixture(scope="module")
def app_id(config: Config, machine: Machine, spark_java: Java, artifacts: list[Path]) -> str:
    """An application that has ended, one that still runs, and one that ran no SQL."""
    del artifacts
    namespace = f"night_{uuid4().hex[:8]}"
    command = spark_submit_command(config, machine, spark_java, SCRIPT, [namespace])
    done = subprocess.run(
        command.argv, env={**os.environ, **command.env}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-4_000:]
    folder = Path(config.engines["spark"].event_log)
    (log,) = folder.iterdir()
    lines = log.read_text().splitlines(keepends=True)
    copies = {
        f"{RUNNING}.inprogress": [line for line in lines if "ApplicationEnd" not in line],
        EMPTY: [line for line in lines if any(name in line for name in _FRAME)],
    }
    for name, kept in copies.items():
        app = name.removesuffix(".inprogress")
        (folder / name).write_text("".join(kept).replace(log.name, app))
    return log.name


@pytest.fixture(scope="module")
def server(config: Config, app_id: str, spark_java: Java, start_process: StartProcess) -> Config:
    """The configuration of an engine that is read from the history server."""
    port, folder = free_port(), Path(config.engines["spark"].event_log)
    assert (folder / app_id).is_file()
    options = {
        "spark.history.fs.logDirectory": folder.as_uri(),
        "spark.history.ui.port": port,
        "spark.history.fs.update.interval": "1s",
    }
    command = Command(
        argv=(
            str(spark_home() / "bin" / "spark-class"),
            "org.apache.spark.deploy.history.HistoryServer",
        ),
        env={
            **spark_environment(spark_java),
            "SPARK_DAEMON_MEMORY": "512m",
            "SPARK_HISTORY_OPTS": " ".join(f"-D{k}={v}" for k, v in options.items()),
        },
    )
    ready = http_answers("127.0.0.1", port, "/api/v1/applications")
    spec = ProcessSpec(name="history-server", command=command, ready=ready, ready_seconds=120.0)
    start_process(spec, config.home / "logs")
    return with_spark(config, history_server=f"http://127.0.0.1:{port}")


def with_spark(config: Config, **changes: Any) -> Config:
    spark = config.engines["spark"].model_copy(update=changes)
    return config.model_copy(update={"engines": {**config.engines, "spark": spark}})


def collect(config: Config, store: OwnerStore) -> CollectReport:
    source = build_source("spark", config, store)
    report = run_once(source, store, utc_now, timeout=timedelta(minutes=2))
    assert report.error is None
    return report


def rows(store: OwnerStore, app: str) -> dict[str, dict[str, Any]]:
    found = store.read("FROM query_event WHERE query_id LIKE $app || ':%'", app=app)
    return {row["query_id"]: row for row in found.to_pylist()}


def wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        threading.Event().wait(0.3)


def test_the_history_server_tells_what_the_event_log_tells(
    server: Config, config: Config, app_id: str, tmp_path: Path
) -> None:
    with OwnerStore.at(tmp_path / "log") as by_log, OwnerStore.at(tmp_path / "rest") as by_rest:
        collect(config, by_log)

        def is_listed() -> bool:
            collect(server, by_rest)
            return bool(rows(by_rest, app_id)) and bool(rows(by_rest, RUNNING))

        wait(is_listed)
        for app in (app_id, RUNNING):
            logged, told = rows(by_log, app), rows(by_rest, app)
            measured = {key for key, row in logged.items() if row["cpu_ms"] is not None}
            assert len(measured) == 4
            assert measured <= set(told)
            for key in measured:
                assert {n: told[key][n] for n in TOLD} == {n: logged[key][n] for n in TOLD}
        statuses = sorted(row["status"] for row in rows(by_rest, app_id).values())
        assert statuses.count("failed") == 1
        written = [row["rows_written"] for row in rows(by_rest, app_id).values()]
        assert 1_000 in written
        assert rows(by_rest, EMPTY) == {}
        assert by_rest.read("FROM dead_letter").num_rows == 0
        before = by_rest.read("FROM query_event ORDER BY ALL")
        assert collect(server, by_rest).rows == 0
        assert by_rest.read("FROM query_event ORDER BY ALL") == before
        an_expired_application_is_told(server, by_rest)


def an_expired_application_is_told(server: Config, store: OwnerStore) -> None:
    """The one that never ended: what came after the last look is lost."""
    folder = Path(server.engines["spark"].event_log)
    shutil.move(folder / f"{RUNNING}.inprogress", folder.parent / "gone")

    def is_told() -> bool:
        collect(server, store)
        return store.read("FROM dead_letter").num_rows == 1

    wait(is_told)
    (letter,) = store.read("FROM dead_letter").to_pylist()
    assert RUNNING in letter["reason"]
