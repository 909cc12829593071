"""After the demo's workload the store counts what each engine itself counts, bytes included.

Each engine is asked in another way than its collector asks: Trino by its system tables of tasks,
Spark by the stages and the Connect page of its own UI, DuckDB by what the kernel saw it read.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agents.collect import run_once
from collectors.registry import build_source
from lakehouse_core.bootstrap import open_engine
from lakehouse_core.demo.personas import PERSONAS
from lakehouse_core.demo.plan import PlanSettings, plan
from lakehouse_core.demo.runner import Tally
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.engines.base import Statement
from lakehouse_core.runtime.demo_lake import marker_path
from lakehouse_core.store.owner import OwnerStore

if TYPE_CHECKING:
    from lakehouse_core.config import Config

pytestmark = [pytest.mark.lake, pytest.mark.spark]

STATEMENTS = 14
PATIENCE_SECONDS = 120.0


@dataclass
class Ran:
    """What the workload says it ran, and what the store knows of it, by query id."""

    config: Config
    started: datetime
    tally: Tally
    rows: dict[str, dict[str, Any]]

    @property
    def bytes_scanned(self) -> int:
        return sum(row["bytes_scanned"] or 0 for row in self.rows.values())


def run_workload(config: Config, name: str, folder: Path) -> Ran:
    """The workload's statements on one engine, and its history once that is complete."""
    anchor = datetime.fromisoformat(json.loads(marker_path(config).read_text())["anchor"])
    engine = open_engine(config, name)
    steps = plan(
        PlanSettings(
            engines={name: engine.capabilities},
            seed=7,
            rate_per_second=0.2,
            anchor=anchor,
            clock=utc_now,
        )
    )
    started = utc_now()
    tally = Tally(name)
    with closing(engine):
        for step in itertools.islice(steps, STATEMENTS):
            try:
                engine.execute(step.statement)
                tally.finished += 1
            except QueryFailedError:
                tally.failed += 1
    with OwnerStore.at(folder) as store:
        rows = collected(config, name, store, started, tally)
        before = content(store)
        for _ in range(2):
            collect(config, name, store)
        assert content(store) == before
    return Ran(config, started, tally, rows)


def collect(config: Config, name: str, store: OwnerStore) -> None:
    """With a new source each time, as a new process would."""
    source = build_source(name, config, store)
    report = run_once(source, store, utc_now, timeout=timedelta(minutes=1))
    close = getattr(source, "close", lambda: None)
    close()
    assert (report.error, report.dead_letters) == (None, 0)


def collected(
    config: Config, name: str, store: OwnerStore, started: datetime, tally: Tally
) -> dict[str, dict[str, Any]]:
    """The rows of the workload, once all of them are over: histories are written a bit late."""
    users = [persona.user for persona in PERSONAS]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        collect(config, name, store)
        found = store.read(
            "FROM query_event WHERE submitted_at >= $started AND list_contains($users, user_name)",
            started=started,
            users=users,
        ).to_pylist()
        rows = {row["query_id"]: row for row in found}
        assert len(rows) == len(found)
        open_rows = [row for row in found if row["revision"] < 2]
        if len(found) >= tally.finished + tally.failed and not open_rows:
            return rows
        assert time.monotonic() < deadline, f"{tally} but {len(found)} rows, {len(open_rows)} open"
        time.sleep(0.5)


def content(store: OwnerStore) -> dict[str, list[dict[str, Any]]]:
    """A number for the content of each table; when we looked is no content."""
    return {
        table: store.read(
            f"SELECT count(*) AS n, bit_xor(hash(t)) AS content FROM (FROM {table}) AS t"  # noqa: S608 ours
        ).to_pylist()
        for table in ("query_event", "query_template", "column_usage")
    }


def agrees_with_the_workload(ran: Ran) -> None:
    statuses = [row["status"] for row in ran.rows.values()]
    assert statuses.count("finished") == ran.tally.finished > 0
    assert statuses.count("failed") == ran.tally.failed
    assert len(statuses) == ran.tally.finished + ran.tally.failed


@pytest.mark.trino
def test_trino_counts_the_same_queries_and_bytes(
    demo_lake: Config, trino_server: Config, tmp_path: Path
) -> None:
    del trino_server
    ran = run_workload(demo_lake, "trino", tmp_path)
    agrees_with_the_workload(ran)
    with closing(open_engine(demo_lake, "trino")) as engine:
        own = engine.execute(
            Statement(
                sql="SELECT q.query_id, q.state, sum(t.physical_input_bytes) AS bytes "
                "FROM system.runtime.queries q LEFT JOIN system.runtime.tasks t "
                "ON q.query_id = t.query_id GROUP BY 1, 2",
                user="auditor",
            )
        ).rows.to_pylist()
    theirs = {row["query_id"]: row for row in own if row["query_id"] in ran.rows}
    assert theirs.keys() == ran.rows.keys()
    for query_id, row in ran.rows.items():
        assert row["status"].upper() == theirs[query_id]["state"]
        # Trino says sizes with three digits and a unit.
        own_bytes = theirs[query_id]["bytes"] or 0
        assert (row["bytes_scanned"] or 0) == pytest.approx(own_bytes, rel=5e-3)
    assert ran.bytes_scanned > 0


def test_spark_counts_the_same_queries_and_bytes(
    demo_lake: Config, spark_server: Config, tmp_path: Path
) -> None:
    ui = f"http://127.0.0.1:{spark_server.engines['spark'].ui_port}"  # type: ignore[union-attr]
    before = requests_of(ui)
    ran = run_workload(demo_lake, "spark", tmp_path)
    agrees_with_the_workload(ran)
    # The client sends each statement, then asks for its rows; a refused one has none.
    assert requests_of(ui) - before == 2 * ran.tally.finished + ran.tally.failed
    (application,) = get(f"{ui}/api/v1/applications").json()
    stages = get(f"{ui}/api/v1/applications/{application['id']}/stages").json()
    own = [s for s in stages if s.get("submissionTime") and spark_time(s) >= ran.started]
    assert own
    assert ran.bytes_scanned == sum(stage["inputBytes"] for stage in own) > 0


def get(address: str) -> httpx.Response:
    return httpx.get(address, timeout=PATIENCE_SECONDS).raise_for_status()


def requests_of(ui: str) -> int:
    """How many requests Spark's own page of Connect has counted."""
    page = get(f"{ui}/connect/").text
    found = re.search(r"Request Statistics \((\d+)\)", page)
    return int(found[1]) if found else 0


def spark_time(stage: dict[str, Any]) -> datetime:
    return datetime.strptime(stage["submissionTime"], "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC)


def test_duckdb_history_is_what_ran_and_what_the_kernel_saw_it_read(
    demo_lake: Config, tmp_path: Path
) -> None:
    before = bytes_read()
    ran = run_workload(demo_lake, "duckdb", tmp_path)
    agrees_with_the_workload(ran)
    # The kernel counts everything this process reads, metadata and our own files too.
    assert 0 < ran.bytes_scanned <= bytes_read() - before


def bytes_read() -> int:
    """What this process has read so far, by the kernel's count."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])
