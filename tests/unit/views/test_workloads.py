"""Workloads and usage: the same figures whether hours come from gold or live from the history."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from agents.template_days import TemplateDays
from collectors.understanding import Observed, Understanding
from lakehouse_core import duck
from lakehouse_core.domain.agent import Watermark
from lakehouse_core.domain.errors import FilterError
from lakehouse_core.domain.query import EngineId, QueryStatus, TemplateId
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.processed import by_days, by_hours, read_processed
from lakehouse_core.views.usage import UsageFilters, table_usage
from lakehouse_core.views.window import parse_window
from lakehouse_core.views.workloads import WorkloadFilters, list_workloads, one_workload
from tests.factories import NOW, query_event
from tests.stores import emptied, new_store

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore

WINDOW = "2026-11-14/2026-11-16"
EVENTS = "lake.demo.events"
CUT = datetime(2026, 11, 16, tzinfo=UTC)  # midnight: hours and days are cut at one moment

FIGURES = """
  count(*) AS runs, count(*) FILTER (status = 'finished') AS finished,
  count(*) FILTER (status = 'failed') AS failed,
  count(*) FILTER (status = 'cancelled') AS cancelled,
  count(*) FILTER (status IN ('queued', 'running')) AS unfinished, sum(elapsed_ms) AS elapsed_ms,
  sum(cpu_ms) AS cpu_ms, sum(bytes_scanned)::BIGINT AS bytes_scanned,
  sum(rows_returned)::BIGINT AS rows_returned,
  list_transform(map_entries(histogram(ceil(ln(elapsed_ms) / ln(1.02))::INTEGER)
      FILTER (status = 'finished' AND elapsed_ms IS NOT NULL)),
    lambda one: {'bucket': one.key, 'runs': one.value::BIGINT}) AS elapsed_sketch
"""
TEMPLATE_HOUR = """
SELECT date_trunc('hour', submitted_at) AS hour_at, template_id, engine_id, {figures},
  count(DISTINCT user_name) AS users, list_sort(list(DISTINCT user_name)) AS user_names
FROM old GROUP BY ALL
"""
WORKLOAD_HOUR = """
SELECT date_trunc('hour', submitted_at) AS hour_at, template_id, engine_id, user_name, source,
  '' AS workload_group, {figures}
FROM old GROUP BY ALL
"""
USAGE_DAY = """
SELECT submitted_at::DATE AS day, 'lake.demo.events' AS table_name, column_name, role, engine_id,
  count(*) AS runs, sum(bytes_scanned)::BIGINT AS bytes_scanned,
  count(DISTINCT user_name) AS users, list_sort(list(DISTINCT user_name)) AS user_names
FROM old JOIN used USING (template_id) GROUP BY ALL
"""
GOLD = {
    "template_hour": TEMPLATE_HOUR.replace("{figures}", FIGURES),
    "workload_hour": WORKLOAD_HOUR.replace("{figures}", FIGURES),
    "usage_day": USAGE_DAY,
}
USED = [
    {"template_id": "t1", "column_name": "day", "role": "filter_eq"},
    {"template_id": "t1", "column_name": "kind", "role": "group"},
    {"template_id": "t2", "column_name": "day", "role": "filter_eq"},
]


@pytest.fixture
def store(shared_store: OwnerStore) -> OwnerStore:
    made = emptied(shared_store)
    luck = random.Random(3)  # noqa: S311 no secret
    events = [
        query_event(
            engine_id=EngineId(luck.choice(("trino", "spark"))),
            template_id=TemplateId(luck.choice(("t1", "t2", "t3"))),
            user_name=luck.choice(("ana", "bo")),
            status=luck.choice((QueryStatus.FINISHED,) * 4 + (QueryStatus.FAILED,)),
            submitted_at=datetime(2026, 11, 14, tzinfo=UTC)
            + timedelta(minutes=luck.randrange(60 * 60)),
            elapsed_ms=luck.choice((None, 1.0 + luck.randrange(10_000))),
            bytes_scanned=luck.choice((None, luck.randrange(1_000))),
        )
        for _ in range(300)
    ]
    made.upsert("query_event", to_arrow("query_event", events))
    usage = [{**use, "table_name": EVENTS} for use in USED]
    made.upsert("column_usage", pa.Table.from_pylist(usage))
    tables = [{"template_id": f"t{n}", "table_name": EVENTS} for n in (1, 2)]
    made.upsert("template_table", pa.Table.from_pylist(tables))
    return made


def process(store: OwnerStore) -> None:
    """Do what the pipeline does, up to the cut; the history itself forgets what gold has."""
    everything = store.read("SELECT * FROM query_event")
    with duck.connect() as connection:
        connection.register("everything", everything)
        old = connection.execute(
            "SELECT * FROM everything WHERE submitted_at < $cut", {"cut": CUT}
        ).to_arrow_table()
        connection.register("old", old)
        whole = [{"template_id": t, "column_name": "", "role": "table"} for t in ("t1", "t2")]
        connection.register("used", pa.Table.from_pylist([*USED, *whole]))
        for name, sql in GOLD.items():
            store.upsert(name, connection.execute(sql).to_arrow_table())
    store.transact("query_event", [f"DELETE FROM query_event WHERE submitted_at < '{CUT}'"])  # noqa: S608
    at = CUT + timedelta(minutes=3)
    mark = Watermark(source="pipeline", position="{}", event_at=at, updated_at=at)
    store.upsert("watermark", to_arrow("watermark", [mark]))


@pytest.mark.slow
def test_days_summed_up_say_what_their_hours_say(store: OwnerStore) -> None:
    filters = WorkloadFilters(window="2026-11-14T07:00/2026-11-16T12:00")
    live = list_workloads(store, filters, lambda: NOW)
    process(store)
    days = TemplateDays(store, lambda: NOW)
    assert days.run_once() == 2
    assert days.run_once() == 0
    summed = list_workloads(store, filters, lambda: NOW)
    assert (summed.rows, summed.total) == (live.rows, live.total)
    span = (summed.coverage.days_from, summed.coverage.days_until)
    assert span == (datetime(2026, 11, 15, tzinfo=UTC), CUT)
    # It is the days that are read: an hour inside them may go, one before them may not.
    store.transact("template_hour", ["DELETE FROM template_hour WHERE hour_at >= '2026-11-15'"])
    runs = [row.runs for row in list_workloads(store, filters, lambda: NOW).rows]
    assert runs == [row.runs for row in live.rows]
    store.transact("template_hour", ["DELETE FROM template_hour"])
    fewer = [row.runs for row in list_workloads(store, filters, lambda: NOW).rows]
    assert sum(fewer) < sum(runs)


@pytest.mark.slow
def test_days_are_not_read_while_a_later_load_is_not_summed_up(store: OwnerStore) -> None:
    filters = WorkloadFilters(window=WINDOW)
    process(store)
    days = TemplateDays(store, lambda: NOW)
    days.run_once()
    before = list_workloads(store, filters, lambda: NOW)
    late = store.read("SELECT * FROM template_hour ORDER BY hour_at, template_id LIMIT 1")
    more = pa.array([late.column("runs")[0].as_py() + 5], pa.int64())
    late = late.set_column(late.schema.get_field_index("runs"), "runs", more)
    store.upsert("template_hour", late)
    later = CUT + timedelta(minutes=9)
    mark = Watermark(source="pipeline", position="{}", event_at=later, updated_at=later)
    store.upsert("watermark", to_arrow("watermark", [mark]))
    seen = [list_workloads(store, filters, lambda: NOW)]
    assert days.run_once() == 1
    seen.append(list_workloads(store, filters, lambda: NOW))
    for page in seen:
        assert sum(row.runs for row in page.rows) == sum(row.runs for row in before.rows) + 5
    assert seen[0].coverage.days_from == seen[0].coverage.days_until
    assert seen[1].coverage.days_from < seen[1].coverage.days_until


@pytest.mark.parametrize(
    "filters",
    [
        WorkloadFilters(window=WINDOW),
        WorkloadFilters(window=WINDOW, engine="trino"),
        WorkloadFilters(window=WINDOW, user="ana"),
        WorkloadFilters(window=WINDOW, table=EVENTS, user="bo", engine="spark"),
        WorkloadFilters(window=WINDOW, template="t3"),
    ],
)
def test_workloads_are_the_same_from_gold_and_live(
    store: OwnerStore, filters: WorkloadFilters
) -> None:
    live = list_workloads(store, filters, lambda: NOW)
    process(store)
    gold = list_workloads(store, filters, lambda: NOW)
    assert gold.rows == live.rows
    assert (gold.total, gold.window) == (live.total, live.window)
    assert live.coverage.exported_at is None
    assert gold.coverage.gold_until == CUT
    assert live.rows[0].p50_ms is not None
    assert sum(live.rows[0].trend) == live.rows[0].runs


@pytest.mark.parametrize(
    "filters",
    [
        UsageFilters(window=WINDOW),
        UsageFilters(window=WINDOW, engine="trino"),
        UsageFilters(window=WINDOW, user="ana"),
    ],
)
def test_usage_is_the_same_from_gold_and_live(store: OwnerStore, filters: UsageFilters) -> None:
    live = table_usage(store, EVENTS, filters, lambda: NOW)
    process(store)
    gold = table_usage(store, EVENTS, filters, lambda: NOW)
    assert gold.cells == live.cells
    assert gold.queries == live.queries
    assert gold.matrix() == live.matrix()
    assert live.runs > 0


@pytest.mark.parametrize("is_processed", [False, True])
@pytest.mark.parametrize(
    "filters", [WorkloadFilters(window=WINDOW), WorkloadFilters(window=WINDOW, user="ana")]
)
def test_one_template_per_engine_is_what_the_list_says_of_each_engine(
    store: OwnerStore, filters: WorkloadFilters, is_processed: bool
) -> None:
    if is_processed:
        process(store)
    page, engines = one_workload(store, "t1", filters, lambda: NOW)
    alone = replace(filters, template="t1")
    assert page.rows == list_workloads(store, alone, lambda: NOW).rows
    assert [one.engines for one in engines] == [("spark",), ("trino",)]
    for one in engines:
        of_engine = replace(alone, engine=one.engines[0])
        assert (one,) == list_workloads(store, of_engine, lambda: NOW).rows


def test_p50_is_within_one_per_cent_of_the_exact_one(store: OwnerStore) -> None:
    page = list_workloads(store, WorkloadFilters(window=WINDOW), lambda: NOW)
    for workload in page.rows:
        exact = store.read(
            "SELECT quantile_disc(elapsed_ms, [0.5, 0.95]) AS q FROM query_event "
            "WHERE status = 'finished' AND template_id = $id",
            id=workload.template_id,
        ).to_pylist()[0]["q"]
        assert (workload.p50_ms, workload.p95_ms) == pytest.approx(tuple(exact), rel=0.0101)


def test_usage_adds_up(store: OwnerStore) -> None:
    used = table_usage(store, EVENTS, UsageFilters(window=WINDOW), lambda: NOW)
    runs = store.read("SELECT count(*) AS n FROM query_event WHERE template_id IN ('t1', 't2')")
    assert used.runs == runs.to_pylist()[0]["n"]
    days = [cell.runs for cell in used.cells if cell.column_name == "day"]
    assert sum(days) == used.runs  # both templates filter on it
    assert used.engines == ("spark", "trino")


@pytest.mark.slow
def test_a_row_that_is_no_longer_true_is_left_out(store: OwnerStore) -> None:
    process(store)
    before = list_workloads(store, WorkloadFilters(window=WINDOW), lambda: NOW)
    empty = store.read("SELECT * FROM template_hour LIMIT 1")
    names = empty.schema.names
    gone = empty.set_column(names.index("runs"), "runs", pa.array([0], pa.int64()))
    store.upsert("template_hour", gone)
    after = list_workloads(store, WorkloadFilters(window=WINDOW), lambda: NOW)
    lost = empty.to_pylist()[0]["runs"]
    assert sum(w.runs for w in after.rows) == sum(w.runs for w in before.rows) - lost


def test_a_statement_without_text_has_no_template(store: OwnerStore) -> None:
    event = query_event(submitted_at=NOW - timedelta(minutes=1), template_id=None)
    store.upsert("query_event", to_arrow("query_event", [replace(event, user_name=None)]))
    page = list_workloads(store, WorkloadFilters(window="1h"), lambda: NOW)
    assert [(w.template_id, w.runs, w.users) for w in page.rows if w.template_id is None] == [
        (None, 1, 0)
    ]


def test_an_unknown_order_is_refused(store: OwnerStore) -> None:
    with pytest.raises(FilterError, match="runs, time, bytes, errors"):
        list_workloads(store, WorkloadFilters(), lambda: NOW, order="name")


def test_windows_are_widened_to_whole_hours_and_days(store: OwnerStore) -> None:
    window = parse_window("90m", NOW + timedelta(minutes=20))
    processed = read_processed(store)
    assert by_hours(window, processed).start == NOW - timedelta(hours=2)
    assert by_days(window, processed).start == NOW.replace(hour=0)
    assert by_hours(window, processed).live_from == NOW - timedelta(hours=2)


@pytest.mark.slow
def test_live_use_of_one_text_under_two_schemas_is_use_of_two_tables(tmp_path: Path) -> None:
    texts = [("a", "SELECT count(*) FROM t")] * 3 + [("b", "SELECT count(*) FROM t")]
    texts.append(("b", "SELECT v FROM t"))
    observed = [
        Observed(query_event(sql_text=text, dialect="trino", user_name="ana"), "lake", (schema,))
        for schema, text in texts
    ]
    with new_store(tmp_path) as store:
        for name, rows in Understanding().rows(observed).items():
            store.upsert(name, rows)
        for user in (None, "ana"):
            filters = UsageFilters(window=WINDOW, user=user)
            a = table_usage(store, "lake.a.t", filters, lambda: NOW)
            b = table_usage(store, "lake.b.t", filters, lambda: NOW)
            assert (a.runs, [cell.column_name for cell in a.cells]) == (3, [])
            assert (b.runs, [cell.column_name for cell in b.cells]) == (2, ["v"])
