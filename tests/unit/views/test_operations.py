from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lakehouse_core.config import load_config
from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.domain.query import EngineId, QueryStatus, TemplateId
from lakehouse_core.store.tables import TABLES
from lakehouse_core.views.agents import list_agents, recent_runs
from lakehouse_core.views.changes import what_changed
from lakehouse_core.views.engines import engine_names, list_engines, state_changes
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.freshness import Job, freshness, jobs
from lakehouse_core.views.overview import overview
from lakehouse_core.views.settings import connections, list_settings, store_facts, versions
from lakehouse_core.views.window import parse_window
from tests.factories import (
    NOW,
    agent_run,
    engine_probe,
    lake_table,
    query_event,
    table_health,
    watermark,
)
from tests.unit.views.conftest import clock

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config
    from tests.unit.views.conftest import Shelf

HOUR = Filters(window="1h")
TEN = timedelta(seconds=10)
TRINO = Job(agent="collect:trino", every=TEN, feeds="queries")
LAKE = Job(agent="collect:iceberg", every=timedelta(seconds=30), feeds="tables")


def engine(**given: Any) -> dict[str, Any]:
    return {"engine_id": "trino", "engine_type": "trino", "dialect": "trino", "catalog": "lake",
            "url": None, "configured": "active", "changed_by": "configuration", "reason": None,
            "changed_at": NOW, **given}  # fmt: skip


def run(seconds_ago: float, **given: Any) -> Any:
    started = NOW - timedelta(seconds=seconds_ago)
    return agent_run(started_at=started, ended_at=started + timedelta(seconds=1), **given)


def test_freshness_is_that_of_the_slowest_job_behind_a_figure(store: Shelf) -> None:
    store.add("agent_run", run(8, agent="collect:trino"), run(25, agent="collect:iceberg"))
    seen = freshness(store, (TRINO, LAKE), clock)
    assert seen.of("queries").caption().endswith("collected 8 s ago")
    assert seen.caption() == "As of 2026-11-16 11:59:35 UTC, collected 25 s ago"
    assert seen.worst is not None
    assert seen.worst.job == LAKE
    assert seen.warning() is None


def test_a_failed_run_does_not_make_a_figure_fresh(store: Shelf) -> None:
    store.add(
        "agent_run",
        run(100, agent="collect:trino"),
        run(5, agent="collect:trino", outcome="failed", error="no answer"),
        run(1, agent="collect:trino", outcome="running"),
    )
    seen = freshness(store, (TRINO,), clock)
    assert seen.jobs[0].age == timedelta(seconds=100)
    assert "collect:trino last succeeded 1 m 40 s ago" in str(seen.warning())


def test_a_long_run_of_a_job_that_writes_as_it_goes_makes_no_figure_old(store: Shelf) -> None:
    work = Job(agent="maintain", every=timedelta(seconds=5), feeds="maintenance", is_live=True)
    store.add(
        "agent_run",
        run(200, agent="maintain"),
        run(190, agent="maintain", outcome="running"),
        run(20, agent="collect:trino"),
    )
    seen = freshness(store, (TRINO, work), clock)
    assert seen.of("maintenance").warning() is None
    assert seen.of("maintenance").as_of == NOW


def test_a_run_that_a_killed_process_left_open_is_no_run(store: Shelf) -> None:
    work = Job(agent="maintain", every=timedelta(seconds=5), feeds="maintenance", is_live=True)
    store.add(
        "agent_run", run(200, agent="maintain"), run(190, agent="maintain", outcome="running")
    )
    seen = freshness(store, (TRINO, work), clock)
    assert "maintain last succeeded 3 m 20 s ago" in str(seen.of("maintenance").warning())


def test_a_job_that_never_ran_is_said_to_be_missing(store: Shelf) -> None:
    seen = freshness(store, (TRINO,), clock)
    assert seen.as_of is None
    assert seen.caption() == "Not collected yet: collect:trino"
    assert "has not succeeded yet" in str(seen.warning())


def test_jobs_follow_the_configuration_and_leave_out_what_is_switched_off(
    demo_config: Config, load_demo_config: Any, tmp_path: Path
) -> None:
    assert [job.agent for job in jobs(demo_config)] == [
        *("collect:trino", "collect:spark", "collect:duckdb", "collect:iceberg"),
        *("probe", "health", "rollup", "retention", "backup", "finops", "costs", "route"),
        *("learn", "budgets", "pipeline"),
        *("recommend", "maintain", "savings", "layout"),
    ]
    without = load_demo_config(tmp_path / "other", LAKEHELM__ENGINES__TRINO__ENABLED="false")
    assert "collect:trino" not in [job.agent for job in jobs(without)]


def test_engine_shows_wanted_and_seen_state_with_its_service(store: Shelf) -> None:
    store.add_rows("engine", engine(configured="maintenance", changed_by="ana", reason="upgrade"))
    store.add(
        "engine_probe",
        engine_probe(engine_id=EngineId("trino"), probed_at=NOW - timedelta(minutes=9)),
        engine_probe(engine_id=EngineId("trino"), probed_at=NOW - timedelta(seconds=5),
                     observed=ObservedState.UNHEALTHY, detail="connection refused",
                     running_queries=None),
    )  # fmt: skip
    store.add(
        "query_event",
        query_event(engine_id=EngineId("trino")),
        query_event(engine_id=EngineId("trino"), status=QueryStatus.FAILED),
    )
    (view,) = list_engines(store, HOUR, clock, probe_every=TEN).engines
    assert (view.engine.configured, view.engine.reason) == ("maintenance", "upgrade")
    assert (view.state, view.engine.detail) == ("unhealthy", "connection refused")
    assert view.engine.running_queries is None
    assert view.served.success_ratio == 0.5


def test_an_old_observation_is_no_observation(store: Shelf) -> None:
    store.add_rows("engine", engine(), engine(engine_id="spark", engine_type="spark"))
    store.add(
        "engine_probe",
        engine_probe(engine_id=EngineId("trino"), probed_at=NOW - timedelta(minutes=5)),
    )
    seen = list_engines(store, HOUR, clock, probe_every=TEN)
    assert [view.state for view in seen.engines] == ["unknown", "unknown"]
    assert seen.count("unknown") == 2
    assert [name.engine_id for name in engine_names(store)] == ["spark", "trino"]


def test_engine_changes_tell_the_last_one_and_how_many(store: Shelf) -> None:
    for minutes, state in ((70, "healthy"), (40, "unhealthy"), (20, "unhealthy"), (10, "healthy")):
        store.add(
            "engine_probe",
            engine_probe(probed_at=NOW - timedelta(minutes=minutes), observed=ObservedState(state)),
        )
    (change,) = state_changes(store, HOUR, parse_window("1h", NOW))
    assert (change.before, change.after, change.changes) == ("unhealthy", "healthy", 2)


def test_a_failure_is_new_when_the_window_before_did_not_have_it(store: Shelf) -> None:
    def failed(minutes: int, template: str, **given: Any) -> Any:
        return query_event(
            submitted_at=NOW - timedelta(minutes=minutes),
            status=QueryStatus.FAILED,
            template_id=TemplateId(template),
            error_class="OOM",
            **given,
        )

    store.add(
        "query_event",
        failed(10, "old"),
        failed(100, "old"),
        failed(10, "new"),
        failed(5, "new", query_id="latest", user_name="bo", error_message="too *large*"),
    )
    (change,) = what_changed(store, HOUR, parse_window("1h", NOW))
    assert change.title == "OOM on duckdb, 2 times, by 2 users"
    assert change.detail == "too *large*"
    assert (change.page, dict(change.query)["query"]) == ("query_history", "duckdb:latest")


def test_overview_of_an_empty_store_invents_nothing(store: Shelf) -> None:
    seen = overview(store, (TRINO,), HOUR, clock, probe_every=TEN)
    assert (seen.red.total.queries, seen.before.queries, seen.tables.total) == (0, 0, 0)
    assert (seen.care, seen.changes) == ((), ())
    assert seen.red.total.p95_ms is None


def test_overview_puts_what_got_worse_first_and_compares_with_before(store: Shelf) -> None:
    store.add("lake_table", lake_table())
    store.add("health", table_health())
    for minutes, state in ((50, "unhealthy"), (10, "healthy")):
        store.add(
            "engine_probe",
            engine_probe(probed_at=NOW - timedelta(minutes=minutes), observed=ObservedState(state)),
        )
    store.add(
        "query_event",
        query_event(),
        query_event(submitted_at=NOW - timedelta(minutes=80)),
        query_event(submitted_at=NOW - timedelta(minutes=20), status=QueryStatus.FAILED),
    )
    seen = overview(store, (TRINO,), HOUR, clock, probe_every=TEN)
    assert (seen.red.total.queries, seen.before.queries) == (2, 1)
    assert [change.is_worse for change in seen.changes] == [True, False]
    assert [verdict.table_id for verdict in seen.care] == ["lake.demo.events"]


def test_agents_tell_lag_last_error_and_what_is_due(store: Shelf) -> None:
    store.add(
        "agent_run",
        run(4, agent="collect:trino", rows_written=7),
        run(14, agent="collect:trino", outcome="failed", error="no answer", rows_written=0),
        run(7_000, agent="collect:trino", rows_written=100),
        run(50, agent="collect:athena"),
    )
    store.add("watermark", watermark(source="trino", event_at=NOW - timedelta(seconds=9)))
    seen = list_agents(store, (TRINO, LAKE), HOUR, clock)
    trino, lake, athena = seen.agents
    assert (trino.state, lake.state, athena.state) == ("ok", "never ran", "not scheduled")
    assert trino.last is not None
    assert (trino.last.runs, trino.last.failed_runs, trino.last.rows_written) == (2, 1, 7)
    assert trino.last.last_error == "no answer"
    assert trino.last.newest_event_at == NOW - timedelta(seconds=9)
    assert trino.next_at == NOW + timedelta(seconds=6)
    assert seen.unwell == (lake,)


def test_agent_that_stopped_is_late_not_ok(store: Shelf) -> None:
    store.add("agent_run", run(600, agent="collect:trino"))
    (view,) = list_agents(store, (TRINO,), HOUR, clock).agents
    assert view.state == "late"


def test_idle_runs_can_be_left_out(store: Shelf) -> None:
    store.add(
        "agent_run",
        run(4, run_id="idle", rows_written=0),
        run(5, run_id="busy", rows_written=2),
        run(6, run_id="bad", rows_written=0, outcome="failed", error="x"),
    )
    assert [r.run_id for r in recent_runs(store, HOUR, clock)] == ["idle", "busy", "bad"]
    eventful = recent_runs(store, HOUR, clock, only_eventful=True)
    assert [r.run_id for r in eventful] == ["busy", "bad"]


def test_store_facts_cover_every_table(store: Shelf, tmp_path: Path) -> None:
    store.add("query_event", query_event(), query_event())
    file = tmp_path / "telemetry.duckdb"
    assert store_facts(store, file).file_bytes is None
    file.write_bytes(b"x" * 10)
    facts = store_facts(store, file)
    assert {table.table_name for table in facts.tables} == set(TABLES)
    assert (facts.row_count, facts.file_bytes) == (2, 10)


def test_settings_never_show_a_secret(repository: Path, tmp_path: Path) -> None:
    environ = {
        "LAKEHELM_HOME": str(tmp_path),
        "LAKEHELM__ENGINES__TRINO__PASSWORD": "env:TRINO_PASSWORD",
        "TRINO_PASSWORD": "canary-7f3a",
    }
    loaded = load_config(repository / "config" / "lakehelm.yaml", environ)
    rows = list_settings(loaded)
    assert "canary-7f3a" not in str(rows)
    by_key = {row.key: row for row in rows}
    assert by_key["store.port"].value == "9494"
    assert "lakehelm.yaml" in by_key["store.port"].origin
    assert by_key["engines.trino.password"].origin == "LAKEHELM__ENGINES__TRINO__PASSWORD"


def test_connections_name_every_engine_and_versions_say_what_is_missing(
    demo_config: Config,
) -> None:
    names = [connection.name for connection in connections(demo_config)]
    assert names == ["store", "lake", "duckdb", "spark", "trino", "gateway"]
    assert {v.package: v.version for v in versions()}["duckdb"] == "1.5.5"
