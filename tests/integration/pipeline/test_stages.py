"""Bronze, silver and gold on real Spark and Iceberg, against an independent computation."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from collectors.columns import LakeColumns
from collectors.understanding import Observed, Understanding
from lakehouse_core.domain.query import EngineId, QueryStatus
from lakehouse_core.pipeline.state import read_state
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.usage import UsageFilters, table_usage
from lakehouse_core.views.workloads import WorkloadFilters, list_workloads
from tests.factories import NOW, lake_table, query_event, snapshot_commit
from tests.integration.pipeline.oracle import comparable, expected

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.domain.query import QueryEvent
    from tests.integration.pipeline.conftest import NewPipeline
    from tests.integration.pipeline.lakes import Pipeline

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WHOLE = "2026-11-01/2026-11-30"
TEXTS = (
    "SELECT count(*) FROM lake.demo.events WHERE day = DATE '2026-11-{n:02}'",
    """SELECT e.kind, sum(e.amount) FROM demo.events e JOIN demo.healthy h ON e.id = h.id
    WHERE h.size > {n} GROUP BY e.kind ORDER BY 2""",
    "SELECT id FROM healthy WHERE name IN ('a', 'b{n}')",
    "SELECT FROM WHERE (( {n}",
)
PROFILES = """
SELECT template_id, sum(runs), sum(failed), sum(bytes_scanned), max(users)
FROM IDENTIFIER(:gold) GROUP BY template_id
"""
CELLS = """
SELECT column_name, role, engine_id, sum(runs), sum(bytes_scanned) FROM IDENTIFIER(:gold)
WHERE table_name = 'lake.demo.events' AND role <> 'table' AND day < DATE '2026-11-16' GROUP BY ALL
"""


def some_events(count: int, seed: int, **fixed: object) -> list[QueryEvent]:
    luck = random.Random(seed)  # noqa: S311 no secret
    statuses = (QueryStatus.FINISHED,) * 6 + (QueryStatus.FAILED, QueryStatus.CANCELLED)
    events = []
    for number in range(count):
        given = {
            "query_id": f"{seed}-{number}",
            "engine_id": EngineId(luck.choice(("trino", "spark"))),
            "dialect": luck.choice(("trino", "spark")),
            "status": luck.choice((*statuses, QueryStatus.RUNNING)),
            "submitted_at": NOW - timedelta(minutes=luck.randrange(60 * 50)),
            "sql_text": luck.choice(TEXTS).format(n=luck.randrange(1, 20)),
            "default_catalog": "lake",
            "default_namespace": luck.choice((None, "demo")),
            "user_name": luck.choice(("ana", "bo", "cy", None)),
            "source": luck.choice(("bi", None)),
            # Durations are added up to the microsecond.
            "elapsed_ms": luck.choice((None, 0.0, luck.randrange(10**7) / 1_000)),
            "execution_ms": luck.randrange(10**7) / 1_000,
            "cpu_ms": luck.randrange(10**6) / 1_000,
            "bytes_scanned": luck.choice((None, luck.randrange(10**9))),
        }
        events.append(query_event(**{**given, **fixed}))
    return events


def check(pipeline: Pipeline) -> None:
    """Lake and store hold what the independent computation says."""
    for name, wanted in expected(pipeline.store).items():
        columns = wanted.column_names
        rows = comparable(wanted, columns)
        if not rows and name not in pipeline.snapshots():
            continue
        assert comparable(pipeline.rows(name), columns) == rows, f"{name} in the lake"
        stored = pipeline.store.read(f"SELECT * FROM {name}")  # noqa: S608 our own names
        counted = "commits" if name == "commit_hour" else "runs"
        alive = stored.filter([value > 0 for value in stored.column(counted).to_pylist()])
        assert comparable(alive, columns) == rows, f"{name} in the store"


def test_gold_equals_an_independent_computation_and_the_views(pipeline: Pipeline) -> None:
    huge = "SELECT id FROM lake.demo.healthy WHERE name = '" + "x" * 5_000_000 + "'"
    pipeline.add(*some_events(300, seed=1), query_event(query_id="huge", sql_text=huge))
    pipeline.add(query_event(query_id="no text", sql_text=None))
    commits = [snapshot_commit(committed_at=NOW - timedelta(hours=n % 5)) for n in range(20)]
    pipeline.store.upsert("snapshot_commit", to_arrow("snapshot_commit", commits))
    report = pipeline.run()
    check(pipeline)
    check_views(pipeline)
    stages = {stage["name"]: stage for stage in report.stages}
    assert stages["bronze"]["rows_out"] == 322
    assert stages["silver"]["rows_out"] == 302
    # One text is too long to be analysed, and one template does not parse, under each dialect.
    texts = pipeline.rows("sql_text", "SELECT * FROM gold WHERE error IS NOT NULL").to_pylist()
    assert stages["texts"]["facts"]["unparsed"] == len(texts) > 1
    assert {len(text["sql_text"]) > 2_000_000 for text in texts} == {True, False}
    assert report.loaded["template_hour"] == pipeline.rows("template_hour").num_rows
    # Nothing new: no plan, no commit, not a row changed.
    content, snapshots = pipeline.content(()), pipeline.snapshots()
    again = pipeline.run()
    assert (again.outcome, again.stages, len(pipeline.plans)) == ("nothing_new", (), 1)
    assert (pipeline.content(()), pipeline.snapshots()) == (content, snapshots)


def test_live_and_gold_agree_on_one_text_under_two_schemas(pipeline: Pipeline) -> None:
    tables = [
        lake_table(table_id=f"lake.{schema}.{name}", columns=columns)
        for schema in ("a", "b")
        for name, columns in (("users", ("id", "name")), ("orders", ("user_id", f"of_{schema}")))
    ]
    pipeline.store.upsert("lake_table", to_arrow("lake_table", tables))
    texts = (
        "SELECT count(*) FROM orders",
        "SELECT name, of_b FROM users, orders WHERE id = user_id",
    )
    yesterday = NOW - timedelta(days=1)
    observed = [
        Observed(query_event(sql_text=text, dialect="trino", submitted_at=yesterday), "lake", (at,))
        for text in texts
        for at in ("a", "b", "b")
    ]
    understanding = Understanding(LakeColumns(pipeline.store))
    for name, rows in understanding.rows(observed).items():
        pipeline.store.upsert(name, rows)

    def usage() -> dict[str, list[tuple[str, str, int]]]:
        filters = UsageFilters(window="2026-11-01/2026-11-15T23:59")
        found = [table_usage(pipeline.store, t.table_id, filters, lambda: NOW) for t in tables]
        return {
            one.table_id: [(c.column_name, c.role, c.runs) for c in (*one.queries, *one.cells)]
            for one in found
        }

    live = usage()
    assert live["lake.a.orders"] == [("", "table", 2), ("user_id", "join", 1)]
    assert live["lake.b.orders"][:2] == [("", "table", 4), ("of_b", "project", 2)]
    report = pipeline.run()
    assert usage() == live
    facts = next(stage["facts"] for stage in report.stages if stage["name"] == "texts")
    assert facts["with_unresolved_columns"] == 1  # lake.a has no of_b
    check(pipeline)


def test_late_changed_and_moved_rows_change_only_their_hours(
    pipeline: Pipeline, new_pipeline: NewPipeline
) -> None:
    running, asked = NOW - timedelta(hours=3), NOW - timedelta(hours=9)
    pipeline.add(*some_events(150, seed=1))
    pipeline.add(query_event(query_id="q", status=QueryStatus.RUNNING, submitted_at=running))
    pipeline.add(
        query_event(
            query_id="gw-1",
            gateway_id="gw-1",
            status=QueryStatus.RUNNING,
            reporter="gateway",
            submitted_at=asked,
        )
    )
    pipeline.run()
    check(pipeline)

    late = NOW - timedelta(hours=30, minutes=7)
    pipeline.add(*some_events(5, seed=2, submitted_at=late, status=QueryStatus.FINISHED))
    report = pipeline.run()
    assert report.recomputed["template_hour"] == (hour_of(late),)
    assert report.recomputed["usage_day"] == (late.date().isoformat(),)
    texts = next(stage for stage in report.stages if stage["name"] == "texts")
    assert texts["rows_in"] < 5  # most were parsed by the first run
    check(pipeline)

    moved = running - timedelta(hours=4)  # the engine's clock was put right
    pipeline.add(query_event(query_id="q", submitted_at=moved))
    pipeline.add(query_event(query_id="real", gateway_id="gw-1", submitted_at=asked))
    report = pipeline.run()
    hours = sorted(hour_of(moment) for moment in (running, moved, asked))
    assert report.recomputed["template_hour"] == tuple(hours)
    check(pipeline)
    silver = pipeline.rows("query_event").to_pylist()
    assert [row["status"] for row in silver if row["query_id"] == "q"] == ["finished"]
    assert "gw-1" not in {row["query_id"] for row in silver}

    anew = new_pipeline(beside=pipeline)
    anew.run()
    check(anew)
    same = ("template_hour", "workload_hour", "usage_day", "literal_day", "query_template")
    assert {name: anew.content()[name] for name in same} == {
        name: pipeline.content()[name] for name in same
    }


def test_gold_comes_back_to_a_store_or_a_lake_that_lost_it(pipeline: Pipeline) -> None:
    pipeline.add(*some_events(60, seed=1))
    pipeline.run()
    for name in ("template_hour", "workload_hour", "usage_day", "literal_day", "watermark"):
        pipeline.store.transact(name, [f"DELETE FROM {name}"])  # noqa: S608 our own names
    assert pipeline.run().outcome == "ok"
    check(pipeline)
    for name in read_state(pipeline.config).tables:
        pipeline.spark.sql(f"DROP TABLE {pipeline.table(name)} PURGE")
    assert pipeline.run().rows == 60
    check(pipeline)


def check_views(pipeline: Pipeline) -> None:
    """The command line's figures are those of SQL on the lake."""
    page = list_workloads(pipeline.store, WorkloadFilters(window=WHOLE), lambda: NOW, limit=1_000)
    figures = {w.template_id or "": (w.runs, w.failed, w.bytes_scanned) for w in page.rows}
    assert page.coverage.gold_until == NOW.replace(minute=0)
    sql = pipeline.spark.sql
    rows = sql(PROFILES, args={"gold": pipeline.table("template_hour")}).collect()
    assert figures == {row[0]: tuple(row)[1:4] for row in rows}
    filters = UsageFilters(window="2026-11-01/2026-11-15")  # days that are over
    used = table_usage(pipeline.store, "lake.demo.events", filters, lambda: NOW)
    cells = {(c.column_name, c.role, c.engine_id): (c.runs, c.bytes_scanned) for c in used.cells}
    rows = sql(CELLS, args={"gold": pipeline.table("usage_day")}).collect()
    assert cells == {tuple(row)[:3]: tuple(row)[3:] for row in rows}
    assert used.literals


def hour_of(moment: datetime) -> str:
    return moment.replace(minute=0, second=0, microsecond=0).isoformat()
