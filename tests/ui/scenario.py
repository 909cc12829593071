"""A lakehouse's telemetry as it looks after some busy days; the same for the same seed.

Not a simulation of the product: rows that pages, screenshots and browser tests can show.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from agents import budgets
from agents.costs import DayCosts
from collectors.letters import gap_letter
from lakehouse_core.domain.agent import AgentProgress
from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.domain.health import HealthState
from lakehouse_core.domain.query import EngineId, QueryStatus, StatementKind
from lakehouse_core.domain.table import MIB
from lakehouse_core.finops.attribution import settle_hours
from lakehouse_core.finops.prices import keep_prices
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.schema import schema_of
from tests import factories
from tests.ui import routed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.agent import AgentRun
    from lakehouse_core.store.owner import OwnerStore
    from lakehouse_core.store.port import TelemetryStore

ENGINES = {"duckdb": 90.0, "spark": 2_400.0, "trino": 620.0}  # typical milliseconds
VERSIONS = {"duckdb": "1.5.5", "spark": "4.1.4", "trino": "476"}
JOBS = {  # seconds between runs
    "collect:trino": 10,
    "collect:spark": 10,
    "collect:duckdb": 5,
    "collect:iceberg": 30,
    "probe": 10,
    "health": 30,
    "rollup": 30,
    "retention": 3_600,
    "pipeline": 600,
    "recommend": 30,
    "maintain": 5,
    "savings": 900,
    "finops": 60,
    "costs": 60,
    "route": 300,
    "learn": 21_600,
    "budgets": 300,
    "layout": 21_600,
}
PEOPLE = ("ana", "bo", "chen", "dashboards", "etl_nightly")
TEMPLATES: tuple[tuple[str, str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "SELECT event_type, count(*)\nFROM lake.demo.events WHERE event_day = {day} GROUP BY 1",
        "select",
        (
            ("lake.demo.events", "event_day", "filter_eq"),
            ("lake.demo.events", "event_type", "group"),
            ("lake.demo.events", "event_type", "project"),
        ),
    ),
    (
        (
            "SELECT l_returnflag, l_linestatus, sum(l_quantity), avg(l_extendedprice)\n"
            "FROM lake.tpch.lineitem\nWHERE l_shipdate <= {day}\nGROUP BY 1, 2"
        ),
        "select",
        (
            ("lake.tpch.lineitem", "l_shipdate", "filter_range"),
            ("lake.tpch.lineitem", "l_returnflag", "group"),
            ("lake.tpch.lineitem", "l_quantity", "project"),
        ),
    ),
    (
        (
            "SELECT c_name, o_totalprice FROM lake.tpch.orders\n"
            "JOIN lake.tpch.customer ON o_custkey = c_custkey\n"
            "WHERE o_orderdate = {day} ORDER BY o_totalprice DESC LIMIT 10"
        ),
        "select",
        (
            ("lake.tpch.orders", "o_orderdate", "filter_eq"),
            ("lake.tpch.orders", "o_custkey", "join"),
            ("lake.tpch.orders", "o_totalprice", "order"),
            ("lake.tpch.customer", "c_custkey", "join"),
            ("lake.tpch.customer", "c_name", "project"),
        ),
    ),
    (
        (
            "MERGE INTO lake.demo.orders_cdc t USING staged s ON t.order_id = s.order_id\n"
            "WHEN MATCHED THEN UPDATE SET *"
        ),
        "merge",
        (("lake.demo.orders_cdc", "order_id", "join"),),
    ),
)
FAILURES = (
    ("EXCEEDED_MEMORY_LIMIT", "Query exceeded per-node memory limit of 1GB [Allocated: 998MB]"),
    ("COLUMN_NOT_FOUND", "line 1:8: Column 'custmer_id' cannot be resolved"),
    ("TABLE_NOT_FOUND", "Table lake.demo.evnts does not exist"),
)
TABLES = {
    "lake.demo.churn": (HealthState.CRITICAL, 38.0, 310, 640),
    "lake.demo.events": (HealthState.CRITICAL, 21.0, 1_344, 1_344),
    "lake.demo.healthy": (HealthState.HEALTHY, 100.0, 12, 3),
    "lake.demo.orders_cdc": (HealthState.WARNING, 66.0, 48, 62),
    "lake.demo.skewed": (HealthState.WARNING, 74.0, 40, 9),
    "lake.tpch.customer": (HealthState.HEALTHY, 100.0, 1, 1),
    "lake.tpch.lineitem": (HealthState.HEALTHY, 96.0, 9, 1),
    "lake.tpch.orders": (HealthState.HEALTHY, 98.0, 4, 1),
}


def fill(store: TelemetryStore, now: datetime, *, queries: int = 900, seed: int = 7) -> None:
    """Write engines, queries, tables, health and agent runs up to `now`."""
    rng = random.Random(seed)  # noqa: S311 a repeatable scene, not a secret
    for table, rows in (
        ("engine", _engines(now)),
        ("engine_probe", to_arrow("engine_probe", _probes(now, rng))),
        ("query_template", _templates(now)),
        ("column_usage", _usage()),
        ("query_event", to_arrow("query_event", _queries(now, rng, queries))),
        ("lake_table", to_arrow("lake_table", _lake_tables(now))),
        ("table_metrics", to_arrow("table_metrics", _metrics(now))),
        ("snapshot_commit", to_arrow("snapshot_commit", _commits(now, rng))),
        ("health", to_arrow("health", _health(now))),
        ("agent_run", to_arrow("agent_run", _runs(now, rng))),
        ("agent_state", to_arrow("agent_state", _states(now))),
        ("watermark", to_arrow("watermark", _watermarks(now))),
        ("dead_letter", to_arrow("dead_letter", _letters(now))),
    ):
        store.upsert(table, rows)
    routed.fill(store, now)


def cost(store: OwnerStore, config: Config, now: datetime) -> None:
    """Charge the hours and split them, as the agents would: by the price book, what is measured."""
    book = keep_prices(store, config, now)
    first = store.read("SELECT min(submitted_at) AS at FROM query_event").column("at")[0].as_py()
    hours = range(int(first.timestamp()) // 3600, int(now.timestamp()) // 3600 + 1)
    settle_hours(store, config, book, hours, now)
    DayCosts(store, lambda: now).run_once()
    budgets.run_once(store, config, lambda: now)


def refresh(store: TelemetryStore, now: datetime, without: Collection[str] = ()) -> None:
    """A moment later: every job has run again, every engine was probed again."""
    again = [
        factories.agent_run(
            run_id=f"{agent}-at-{now:%H%M%S}",
            agent=agent,
            started_at=now - timedelta(seconds=2),
            ended_at=now - timedelta(seconds=1),
        )
        for agent in JOBS
        if agent not in without
    ]
    probes = [
        factories.engine_probe(engine_id=EngineId(engine), probed_at=now, version=version)
        for engine, version in VERSIONS.items()
    ]
    store.upsert("agent_run", to_arrow("agent_run", again))
    store.upsert("engine_probe", to_arrow("engine_probe", probes))


def begin(store: TelemetryStore, now: datetime, agents: list[str]) -> list[AgentRun]:
    """Runs that begin now."""
    runs = [
        factories.agent_run(
            run_id=f"{agent}-asked-{now:%H%M%S}",
            agent=agent,
            started_at=now,
            ended_at=None,
            outcome="running",
            rows_written=0,
        )
        for agent in agents
    ]
    if runs:
        store.upsert("agent_run", to_arrow("agent_run", runs))
    return runs


def go_on(
    store: TelemetryStore,
    now: datetime,
    runs: list[AgentRun],
    when_ended: Callable[[AgentRun], None],
    seconds: float = 6.0,
) -> list[AgentRun]:
    """Runs tell how far they are, and end after some seconds; returns those that go on."""
    going = []
    for run in runs:
        share = (now - run.started_at).total_seconds() / seconds
        if share < 1:
            said = AgentProgress(
                agent=run.agent, done=int(share * 4_000), total=4_000, unit="rows", updated_at=now
            )
            store.upsert("agent_progress", to_arrow("agent_progress", [said]))
            going.append(run)
            continue
        ended = replace(run, ended_at=now, outcome="ok", rows_written=4_000)
        store.upsert("agent_run", to_arrow("agent_run", [ended]))
        when_ended(ended)
    return going


def rows_of(table: str, values: list[dict[str, Any]]) -> pa.Table:
    """Rows of a table that has no record; columns not given are NULL."""
    return pa.Table.from_pylist(values, schema=schema_of(table))


def _engines(now: datetime) -> pa.Table:
    urls = {"spark": "http://127.0.0.1:4040", "trino": "http://127.0.0.1:8085/ui/"}
    return rows_of(
        "engine",
        [
            {
                "engine_id": engine,
                "engine_type": engine,
                "dialect": engine,
                "catalog": "lake",
                "url": urls.get(engine),
                "configured": "active",
                "changed_by": "configuration",
                "reason": None,
                "changed_at": now - timedelta(days=3),
            }
            for engine in ENGINES
        ],
    )


def _probes(now: datetime, rng: random.Random) -> list[Any]:
    found = []
    for engine in ENGINES:
        for ago in range(0, 7_200, 60):
            is_down = engine == "trino" and 3_000 <= ago < 3_300
            found.append(
                factories.engine_probe(
                    engine_id=EngineId(engine),
                    probed_at=now - timedelta(seconds=ago + 4),
                    observed=ObservedState.UNHEALTHY if is_down else ObservedState.HEALTHY,
                    detail="connection refused" if is_down else None,
                    version=None if is_down else VERSIONS[engine],
                    latency_ms=None if is_down else rng.uniform(1, 30),
                    running_queries=rng.randrange(3),
                    queued_queries=0,
                )
            )
    return found


def _templates(now: datetime) -> pa.Table:
    return rows_of(
        "query_template",
        [
            {
                "template_id": f"template-{number}",
                "dialect": "trino",
                "template": text.format(day="?"),
                "statement_kind": kind,
                "parse_error": None,
                "seen_at": now,
            }
            for number, (text, kind, _) in enumerate(TEMPLATES)
        ],
    )


def _usage() -> pa.Table:
    return rows_of(
        "column_usage",
        [
            {
                "template_id": f"template-{number}",
                "table_name": table,
                "column_name": column,
                "role": role,
            }
            for number, (_, _, used) in enumerate(TEMPLATES)
            for table, column, role in used
        ],
    )


def _queries(now: datetime, rng: random.Random, queries: int) -> list[Any]:
    found = []
    for number in range(queries):
        ago = timedelta(hours=48 * rng.random() ** 1.3, seconds=20)
        engine = rng.choices(list(ENGINES), weights=(6, 2, 4))[0]
        elapsed = ENGINES[engine] * math.exp(rng.gauss(0, 0.9))
        template = rng.randrange(len(TEMPLATES))
        text, kind, _ = TEMPLATES[template]
        status = rng.choices(
            (QueryStatus.FINISHED, QueryStatus.FAILED, QueryStatus.CANCELLED), weights=(95, 4, 1)
        )[0]
        if number < 4:
            status, ago = QueryStatus.RUNNING, timedelta(seconds=7 + 31 * number)
        is_failed, is_over = status is QueryStatus.FAILED, status.revision == 2
        error = rng.choice(FAILURES) if is_failed else (None, None)
        found.append(
            factories.query_event(
                engine_id=EngineId(engine),
                query_id=f"{engine}-{number:05d}",
                status=status,
                submitted_at=now - ago,
                collected_at=now,
                dialect=engine,
                sql_text=text.format(day=f"DATE '2026-11-{1 + rng.randrange(15):02d}'"),
                statement_kind=StatementKind(kind),
                template_id=f"template-{template}",
                user_name=rng.choice(PEOPLE),
                tags=(f"team:{rng.choice(('bi', 'etl', 'science'))}",),
                elapsed_ms=elapsed if is_over else None,
                queued_ms=elapsed * 0.05 if is_over else None,
                planning_ms=elapsed * 0.1 if is_over else None,
                execution_ms=elapsed * 0.85 if is_over else None,
                bytes_scanned=int(elapsed * MIB * rng.random()) if is_over else None,
                rows_returned=rng.randrange(1, 2_000) if status is QueryStatus.FINISHED else None,
                error_class=error[0],
                error_message=error[1],
                engine_url=f"http://127.0.0.1:8085/ui/query.html?{number}"
                if engine == "trino"
                else None,
            )
        )
    return found


def _lake_tables(now: datetime) -> list[Any]:
    broken = factories.lake_table(
        table_id="lake.demo.broken",
        seen_at=now,
        current_snapshot_id=9,
        error="Manifest list snap-9.avro is missing",
    )
    dropped = factories.lake_table(table_id="lake.demo.gone", seen_at=now, dropped_at=now)
    known = [factories.lake_table(table_id=t, seen_at=now, current_snapshot_id=14) for t in TABLES]
    return [*known, broken, dropped]


def _metrics(now: datetime) -> list[Any]:
    found = []
    for table, (state, _, files, snapshots) in TABLES.items():
        is_well = state is HealthState.HEALTHY
        for version in range(1, 15):
            share = version / 14
            count = max(1, round(files * share))
            small = 0 if is_well or "skewed" in table else round(count * 0.95)
            found.append(
                factories.table_metrics(
                    table_id=table,
                    snapshot_id=version,
                    collected_at=now - timedelta(hours=6 * (14 - version), seconds=12),
                    data_files=count,
                    total_bytes=count * (96 * MIB if is_well else 900_000),
                    small_files=small,
                    file_size_histogram=(small, 0, 0, count - small, 0, 0),
                    delete_files=round(30 * share) if "cdc" in table else 0,
                    position_delete_files=round(30 * share) if "cdc" in table else 0,
                    delete_ratio=0.14 if "cdc" in table else 0.0,
                    manifests=max(1, snapshots // 8),
                    snapshots=snapshots,
                    oldest_snapshot_at=now - timedelta(days=14),
                    latest_snapshot_at=now - timedelta(hours=6 * (14 - version), minutes=9),
                    partitions=14 if table == "lake.demo.events" else 1,
                    skew=7.5 if "skewed" in table else 1.1,
                )
            )
    return found


def _commits(now: datetime, rng: random.Random) -> list[Any]:
    return [
        factories.snapshot_commit(
            table_id=table,
            snapshot_id=1_000 + number,
            committed_at=now - timedelta(hours=72 * rng.random()),
            operation=rng.choice(("append", "append", "append", "overwrite", "delete")),
        )
        for table, (_, _, _, snapshots) in TABLES.items()
        for number in range(min(snapshots, 160))
    ]


def _contributors() -> dict[str, tuple[Any, ...]]:
    return {
        "lake.demo.events": (
            factories.contributor(
                points_lost=50.0, message="95 % of 1 344 data files are smaller than 32 MiB"
            ),
            factories.contributor(
                rule="snapshots",
                value=1_344.0,
                warning=100.0,
                critical=500.0,
                unit="snapshots",
                points_lost=29.0,
                message="1 344 snapshots are kept; 500 is critical",
            ),
        ),
        "lake.demo.orders_cdc": (
            factories.contributor(
                rule="delete_ratio",
                state=HealthState.WARNING,
                value=0.14,
                warning=0.10,
                critical=0.25,
                points_lost=34.0,
                message="14 % of the rows are deleted by 30 delete files",
            ),
        ),
        "lake.demo.skewed": (
            factories.contributor(
                rule="skew",
                state=HealthState.WARNING,
                value=7.5,
                warning=3.0,
                critical=10.0,
                unit="max/mean",
                points_lost=26.0,
                message="The largest partition is 7.5 times the mean",
            ),
        ),
        "lake.demo.churn": (
            factories.contributor(
                rule="snapshots",
                value=640.0,
                warning=100.0,
                critical=500.0,
                unit="snapshots",
                points_lost=62.0,
                message="640 snapshots are kept; 500 is critical",
            ),
        ),
    }


def _health(now: datetime) -> list[Any]:
    contributors = _contributors()
    found = []
    for table, (state, score, _, _) in TABLES.items():
        before = HealthState.WARNING if state is HealthState.CRITICAL else state
        for at, seen in ((now - timedelta(hours=30), before), (now - timedelta(seconds=14), state)):
            found.append(
                factories.table_health(
                    table_id=table,
                    assessed_at=at,
                    state=seen,
                    score=score,
                    amoro_score=min(100.0, score + 9),
                    contributors=contributors.get(table, ()),
                )
            )
    return found


def _runs(now: datetime, rng: random.Random) -> list[Any]:
    found = []
    for agent, seconds in JOBS.items():
        for number in range(40):
            started = now - timedelta(seconds=3 + seconds * number)
            is_bad = agent == "collect:trino" and 12 <= number < 15
            has_letters = agent == "collect:duckdb" and number == 20
            found.append(
                factories.agent_run(
                    run_id=f"{agent}-{number}",
                    agent=agent,
                    started_at=started,
                    ended_at=started + timedelta(milliseconds=rng.randrange(20, 900)),
                    outcome="failed" if is_bad else "ok",
                    rows_written=0 if is_bad else rng.choice((0, 0, 3, 18)),
                    dead_letters=2 if has_letters else 0,
                    error="Trino at 127.0.0.1:8085 does not answer" if is_bad else None,
                )
            )
    return found


def _states(now: datetime) -> list[Any]:
    since = now - timedelta(days=1)
    return [factories.agent_state(agent=agent, since=since, updated_at=since) for agent in JOBS]


def _watermarks(now: datetime) -> list[Any]:
    return [
        factories.watermark(source=source, event_at=now - timedelta(seconds=25), updated_at=now)
        for source in ("duckdb", "spark", "trino")
    ]


def _letters(now: datetime) -> list[Any]:
    reasons = ("line is not JSON: unexpected end", "elapsed_ms: -3 is not a duration")
    letters = [
        factories.dead_letter(
            letter_id=f"letter-{number}",
            seen_at=now - timedelta(hours=number + 1),
            reason=reasons[number % 2],
            payload='{"engine_id": "duckdb", "query_id": "…',
        )
        for number in range(5)
    ]
    lost = gap_letter(
        "trino",
        "20261115_abcde_17_40",
        "history was dropped before it was read: up to 22 queries between 17 and 40",
        now - timedelta(hours=9),
    )
    return [*letters, lost]
