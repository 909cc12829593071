"""A real session cluster streams into Iceberg: jobs, checkpoints and commits are one history."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agents.collect import run_once
from collectors.registry import build_source
from lakehouse_core.catalog.loader import open_catalog
from lakehouse_core.config.models import FlinkEngine
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import NotInstalledError
from lakehouse_core.runtime.ivy import DownloadError
from lakehouse_core.runtime.java import find_javas, java_for_spark
from lakehouse_core.runtime.report import SilentReporter
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.tables import TABLES
from lakehouse_core.views.flink import CommitCadence, commit_cadence, slot_usage
from lakehouse_core.views.window import parse_window
from tests.integration.collectors.flink_cluster import HOST, FlinkCluster
from tools.flink import ensure_flink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agents.collect import CollectReport
    from lakehouse_core.config import Config
    from lakehouse_core.config.environment import Machine
    from tests.conftest import DemoConfig
    from tests.fixtures_runtime import StartProcess
    from tests.network import NetworkGuard

# A cluster and three JVMs on two cores.
pytestmark = [pytest.mark.long, pytest.mark.flink, pytest.mark.timeout(900)]

PATIENCE_SECONDS = 120
FLINK_REMEMBERS = timedelta(seconds=5)
STREAM, OTHER, BOUNDED, BROKEN = "orders into the lake", "idle stream", "fifty rows", "no division"
TABLE = "lake.streams.orders"


@pytest.fixture(scope="module")
def config(load_demo_config: DemoConfig) -> Config:
    loaded = load_demo_config()
    loaded.catalogs["lake"].warehouse.mkdir(parents=True, exist_ok=True)
    with closing(open_catalog("lake", loaded.catalogs["lake"]).iceberg()) as catalog:
        catalog.create_namespace("streams")
    return loaded


@pytest.fixture(scope="module")
def cluster(
    config: Config,
    machine: Machine,
    network_guard: NetworkGuard,
    start_process: StartProcess,
) -> FlinkCluster:
    """The cluster, with four jobs sent to it; skipped where it cannot be had."""
    try:
        java = java_for_spark(find_javas(machine))  # Flink 2.1 runs on the same ones
        with network_guard.opened():
            flink = ensure_flink(machine, SilentReporter())
    except (NotInstalledError, DownloadError) as error:
        pytest.skip(f"no Flink: {error}")
    made = FlinkCluster(flink, java, config.home / "flink", start_process)
    made.start()
    lake = config.catalogs["lake"]
    made.sql(
        "SET 'execution.target' = 'remote'",
        "SET 'restart-strategy.type' = 'none'",
        f"CREATE CATALOG lake WITH ('type'='iceberg', 'uri'='jdbc:sqlite:{lake.path}',"
        " 'catalog-impl'='org.apache.iceberg.jdbc.JdbcCatalog', 'jdbc.schema-version'='V1',"
        f" 'warehouse'='file:{lake.warehouse}')",
        f"CREATE TABLE {TABLE} (id BIGINT, v STRING)",
        "CREATE TEMPORARY TABLE few (id BIGINT, v STRING)"
        " WITH ('connector'='datagen', 'number-of-rows'='50')",
        "CREATE TEMPORARY TABLE many (id BIGINT, v STRING)"
        " WITH ('connector'='datagen', 'rows-per-second'='20')",
        "CREATE TEMPORARY TABLE hole (n BIGINT) WITH ('connector'='blackhole')",
        f"SET 'pipeline.name' = '{BROKEN}'",
        "INSERT INTO hole SELECT id / (id - id) FROM few",
        f"SET 'pipeline.name' = '{BOUNDED}'",
        "SET 'table.dml-sync' = 'true'",
        f"INSERT INTO {TABLE} SELECT id, v FROM few",  # noqa: S608 ours
        "SET 'table.dml-sync' = 'false'",
        "SET 'execution.checkpointing.interval' = '1s'",
        f"SET 'pipeline.name' = '{STREAM}'",
        f"INSERT INTO {TABLE} SELECT id, v FROM many",  # noqa: S608 ours
        f"SET 'pipeline.name' = '{OTHER}'",
        "INSERT INTO hole SELECT id FROM many",
    )
    return made


class History:
    """A store, and the two sources that fill it."""

    def __init__(self, config: Config, cluster: FlinkCluster, store: OwnerStore) -> None:
        flink = FlinkEngine(type="flink", catalog="lake", host=HOST, port=cluster.port)
        engines = {**config.engines, "flink": flink}
        self.config = config.model_copy(update={"engines": engines})
        self.cluster = cluster
        self.store = store
        self.ids = {name: job["jid"] for name, job in cluster.jobs().items()}

    def collect(self, name: str = "flink") -> CollectReport:
        source = build_source(name, self.config, self.store)
        report = run_once(source, self.store, utc_now, timeout=timedelta(minutes=1))
        assert report.error is None
        return report

    def job(self, name: str) -> dict[str, Any]:
        rows = self.store.read("FROM query_event WHERE query_id = $id", id=self.ids[name])
        (row,) = rows.to_pylist()
        return dict(row)

    def cadence(self, name: str) -> CommitCadence | None:
        found = commit_cadence(self.store, parse_window("1h", utc_now() + timedelta(minutes=1)))
        return next((one for one in found if one.job_id == self.ids[name]), None)

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Collect until it is so."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.collect("iceberg")
            self.collect()
            if is_so():
                return
            assert time.monotonic() < deadline, self.store.read("FROM query_event").to_pylist()
            threading.Event().wait(0.3)

    def commits(self) -> dict[str, int]:
        """How many snapshots of the table each job made, as the table itself says."""
        with closing(open_catalog("lake", self.config.catalogs["lake"]).iceberg()) as catalog:
            table = catalog.load_table(("streams", "orders"))
            made: dict[str, int] = {}
            for snapshot in table.snapshots():
                assert snapshot.summary is not None
                job_id = str(snapshot.summary["flink.job-id"])
                made[job_id] = made.get(job_id, 0) + 1
            return made


@pytest.fixture(scope="module")
def history(
    config: Config, cluster: FlinkCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[History]:
    with OwnerStore.at(tmp_path_factory.mktemp("store")) as store:
        yield History(config, cluster, store)


def test_the_life_of_jobs_from_submission_to_a_restart_that_forgets_them(history: History) -> None:
    """One story, as each part goes on from the one before and a cluster takes long to start."""
    streams_into_the_table(history)
    ended_jobs_end_as_flink_says(history)
    cancelled_is_cancelled(history)
    a_restart_closes_what_ran(history)
    collecting_again_changes_nothing(history)


def streams_into_the_table(history: History) -> None:
    def has_cadence() -> bool:
        found = history.cadence(STREAM)
        return found is not None and found.commits >= 4 and found.last_checkpoint is not None

    history.wait(has_cadence)
    event, cadence = history.job(STREAM), history.cadence(STREAM)
    assert cadence is not None
    assert (event["status"], event["source"], event["ended_at"]) == ("running", STREAM, None)
    assert event["submitted_at"] <= event["started_at"]
    assert (cadence.table_id, cadence.engine_id, cadence.job_name) == (TABLE, "flink", STREAM)
    assert cadence.checkpoint_interval_ms == 1_000
    assert cadence.median_gap_ms is not None
    assert cadence.median_gap_ms > 0
    assert (cadence.added_rows or 0) > 0
    committed = cadence.committed_checkpoint
    assert committed is not None
    assert (cadence.last_checkpoint_bytes or 0) > 0

    # A commit follows its checkpoint, but Flink tells of checkpoints from a cache.
    def tells_of_the_commit() -> bool:
        found = history.cadence(STREAM)
        return found is not None and (found.last_checkpoint or 0) >= committed

    history.wait(tells_of_the_commit)
    (job,) = history.store.read(
        "FROM flink_job WHERE job_id = $id", id=history.ids[STREAM]
    ).to_pylist()
    assert (job["state"], job["job_type"], job["slots"]) == ("RUNNING", "STREAMING", 1)
    assert job["checkpoints_completed"] >= 4


def ended_jobs_end_as_flink_says(history: History) -> None:
    history.wait(lambda: history.job(BROKEN)["status"] != "running")
    broken, bounded = history.job(BROKEN), history.job(BOUNDED)
    assert (broken["status"], broken["error_code"]) == ("failed", "ArithmeticException")
    assert (bounded["status"], bounded["error_code"]) == ("finished", None)
    told = history.cluster.get(f"/jobs/{history.ids[BOUNDED]}")
    assert bounded["elapsed_ms"] == told["duration"]
    once = history.cadence(BOUNDED)
    assert once is not None
    assert (once.commits, once.added_rows, once.committed_checkpoint) == (1, 50, None)


def cancelled_is_cancelled(history: History) -> None:
    job_id = history.ids[STREAM]
    history.cluster.cancel(job_id)
    history.wait(lambda: history.job(STREAM)["status"] == "cancelled")
    history.collect("iceberg")
    event, cadence = history.job(STREAM), history.cadence(STREAM)
    assert cadence is not None
    assert (cadence.status, cadence.commits) == ("cancelled", history.commits()[job_id])
    assert history.commits()[history.ids[BOUNDED]] == 1
    (held,) = history.store.read("FROM flink_slot_time WHERE job_id = $id", id=job_id).to_pylist()
    assert held["started_at"] == event["started_at"]
    # A job that has ended is still said to run for as long as Flink keeps its answers.
    late = held["ended_at"] - event["ended_at"]
    assert timedelta(0) <= late <= FLINK_REMEMBERS
    used = slot_usage(history.store, parse_window("1h", utc_now() + timedelta(minutes=1)))
    seconds = next(one.slot_seconds for one in used if one.job_id == job_id)
    told_ms = FLINK_REMEMBERS / timedelta(milliseconds=1)
    assert seconds * 1_000 == pytest.approx(event["execution_ms"], abs=told_ms)


def a_restart_closes_what_ran(history: History) -> None:
    assert history.job(OTHER)["status"] == "running"
    assert history.store.read("FROM dead_letter").num_rows == 0
    history.cluster.stop_manager()
    history.cluster.start_manager()
    history.collect()
    lost = history.job(OTHER)
    assert (lost["status"], lost["error_class"]) == ("failed", "history_lost")
    assert history.job(STREAM)["status"] == "cancelled"
    reasons = history.store.read("SELECT reason FROM dead_letter").column("reason").to_pylist()
    assert ["restarted" in reason for reason in reasons] == [True, True]


def collecting_again_changes_nothing(history: History) -> None:
    before = {name: history.store.read(f"FROM {name} ORDER BY ALL") for name in _SEEN}
    assert history.collect().rows == 0
    assert history.collect("iceberg").rows == 0
    assert {name: history.store.read(f"FROM {name} ORDER BY ALL") for name in _SEEN} == before


_SEEN = tuple(n for n in TABLES if n.startswith("flink_") or n in ("query_event", "dead_letter"))
