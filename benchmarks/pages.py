"""The pages on ten million query events: how long until everything they show has been read.

    python benchmarks/pages.py --json [--events 10000000] [--store FOLDER]

Two processes as in the product: the owner serves the store over Quack, this one reads as the pages
do. DuckDB makes the events straight in the store file, the rollup agent the hourly sums, and SQL by
the same definitions the pipeline's tables. With `--store` the folder is kept and used again.

A page's figure is the sum of all its reads, one after the other, nothing from memory. The worst of
its windows (24 hours, 7 and 30 days) counts, the median of several visits each. Searching texts has
to read all of them; it is told beside the figures, without a limit. `owner_cpu_ms` is the processor
time the owner spent on one visit: it hardly changes when the machine is busy with something else.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, its folder is on the path only

from agents.costs import DayCosts
from agents.rollup import Rollup
from agents.template_days import TemplateDays
from benchmarks import _store
from lakehouse_core.store.client import StoreClient
from lakehouse_core.store.literals import bind
from lakehouse_core.views.costs import MOST_ROWS, CostFilters, cost_report
from lakehouse_core.views.estimates import scan_estimates
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.freshness import freshness, jobs
from lakehouse_core.views.groups import rules_of
from lakehouse_core.views.names import table_ids
from lakehouse_core.views.queries import list_queries, show_query
from lakehouse_core.views.red import red, trend
from lakehouse_core.views.regret import compared_with_regret
from lakehouse_core.views.template_detail import show_template
from lakehouse_core.views.unparsed import list_unparsed
from lakehouse_core.views.usage import UsageFilters, table_usage
from lakehouse_core.views.workloads import WorkloadFilters, list_workloads

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from lakehouse_core.config.models import Config
    from lakehouse_core.store.owner import OwnerStore

LIMITS = {"history_ms": 1_000, "detail_ms": 1_000, "workloads_ms": 1_000, "usage_ms": 1_000,
          "comparison_ms": 1_000}  # fmt: skip
WINDOWS = ("24h", "7d", "30d")
DAYS = 30
END = _store.START + timedelta(days=DAYS)
TABLE = "lake.tpch.lineitem"

# Every second one came through the gateway, which estimated what it would read.
EVENTS = f"""
INSERT INTO query_event BY NAME
SELECT *, CASE WHEN hash(query_id) % 2 = 0 THEN md5(query_id) END AS gateway_id
FROM ({_store.EVENTS})
"""  # noqa: S608 constants of ours
ROUTED = """
INSERT INTO routing_decision BY NAME
SELECT gateway_id, submitted_at, ended_at, 'trinoHttp' AS protocol, status, engine_id, template_id,
  'interactive' AS cluster_group, user_name, dialect AS source_dialect, 1 AS attempts,
  1.5 AS queue_ms, elapsed_ms AS engine_ms, 2.0 AS fetch_ms,
  4 ** (10 + hash(template_id) % 3 + hash(query_id) % 2)::BIGINT AS estimated_bytes, '[]' AS trace
FROM query_event WHERE gateway_id IS NOT NULL
  AND submitted_at >= $first::TIMESTAMPTZ AND submitted_at < $last::TIMESTAMPTZ
"""
TEMPLATES = (
    """
INSERT INTO query_template BY NAME SELECT md5(range::VARCHAR) AS template_id, 'trino' AS dialect,
  'SELECT l_returnflag, sum(l_quantity) FROM lake.tpch.lineitem WHERE l_orderkey = ? /* '
    || range || ' */ GROUP BY 1' AS template, 'select' AS statement_kind,
  $end::TIMESTAMPTZ AS seen_at FROM range(500)""",
    """
INSERT INTO column_usage BY NAME SELECT md5(t.range::VARCHAR) AS template_id,
  '' AS default_catalog, '' AS default_namespace,
  'lake.tpch.lineitem' AS table_name, 'l_' || (t.range + c.range) % 16 AS column_name,
  ['filter_eq', 'group', 'project'][c.range + 1] AS role FROM range(500) t, range(3) c""",
    """
INSERT INTO lake_table BY NAME SELECT 'lake.tpch.lineitem' AS table_id, 'lake' AS catalog,
  'tpch' AS namespace, 'lineitem' AS table_name, $end::TIMESTAMPTZ AS seen_at""",
)
# The pipeline's tables by its own definitions (spark_jobs/pipeline/gold_sql.py), a day at a time.
TEMPLATE_HOUR = """
INSERT INTO template_hour BY NAME
WITH classes AS (
  SELECT make_timestamptz(epoch_us(submitted_at) // 3600000000 * 3600000000) AS hour_at,
    template_id, engine_id, ceil(ln(greatest(elapsed_ms, 0.001)) / ln(1.02))::INTEGER AS bucket,
    count(*) AS runs, count(*) FILTER (status = 'finished') AS finished,
    count(*) FILTER (status = 'failed') AS failed,
    sum(elapsed_ms) AS elapsed_ms, sum(cpu_ms) AS cpu_ms, sum(bytes_scanned) AS bytes_scanned,
    sum(rows_returned) AS rows_returned, list(DISTINCT user_name) AS names
  FROM query_event
  WHERE submitted_at >= $first::TIMESTAMPTZ AND submitted_at < $last::TIMESTAMPTZ GROUP BY ALL
)
SELECT hour_at, template_id, engine_id, sum(runs)::BIGINT AS runs,
  sum(finished)::BIGINT AS finished, sum(failed)::BIGINT AS failed, 0 AS cancelled, 0 AS unfinished,
  sum(elapsed_ms) AS elapsed_ms, sum(cpu_ms) AS cpu_ms, sum(bytes_scanned)::BIGINT AS bytes_scanned,
  sum(rows_returned)::BIGINT AS rows_returned,
  list({'bucket': bucket, 'runs': finished} ORDER BY bucket) FILTER (finished > 0)
    AS elapsed_sketch,
  len(list_distinct(flatten(list(names)))) AS users,
  list_distinct(flatten(list(names))) AS user_names
FROM classes GROUP BY hour_at, template_id, engine_id
"""
USAGE_DAY = """
INSERT INTO usage_day BY NAME
SELECT submitted_at::DATE AS "day", table_name, column_name, role, engine_id, count(*) AS runs,
  sum(bytes_scanned)::BIGINT AS bytes_scanned, count(DISTINCT user_name) AS users,
  list(DISTINCT user_name) AS user_names
FROM query_event JOIN (
  SELECT template_id, table_name, column_name, role FROM column_usage UNION ALL
  SELECT DISTINCT template_id, table_name, '' AS column_name, 'table' AS role FROM column_usage
) USING (template_id)
WHERE submitted_at >= $first::TIMESTAMPTZ AND submitted_at < $last::TIMESTAMPTZ GROUP BY ALL
"""
MARK = """
INSERT INTO watermark VALUES ('pipeline', '{}', $end::TIMESTAMPTZ - INTERVAL 20 MINUTES,
  $end::TIMESTAMPTZ)
"""


# What attribution would have written: each engine's hours, split by template and user.
COST_HOUR = """
INSERT INTO cost_hour BY NAME
SELECT make_timestamptz(epoch_us(submitted_at) // 3600000000 * 3600000000) AS hour_at, engine_id,
  '' AS resource, 'compute' AS meter, engine_id AS price_id, 'query' AS kind,
  md5(concat_ws('|', engine_id, template_id, user_name)) AS label_id, '' AS reason,
  'USD' AS currency, 'modelled' AS basis, false AS is_provisional, count(*) AS runs,
  count(*) AS queries, 0 AS failed, (sum(execution_ms) * 1000)::BIGINT AS execution_us,
  (sum(execution_ms) / 1000000)::DECIMAL(38,9) AS cost, cost AS list_cost,
  cost AS contracted_cost, 0 AS failed_cost, hour_at AS split_at
FROM query_event
WHERE submitted_at >= $first::TIMESTAMPTZ AND submitted_at < $last::TIMESTAMPTZ GROUP BY ALL
"""
CHARGES = """
INSERT INTO charge BY NAME
SELECT hour_at, engine_id, resource, meter, price_id, 'hour' AS unit, 1 AS quantity,
  'seconds' AS method, sum(list_cost) AS list_cost, sum(contracted_cost) AS contracted_cost,
  sum(cost) AS cost, currency, basis, 'measured' AS source, 0 AS minimum_bytes,
  false AS failed_is_free, false AS is_provisional, hour_at AS computed_at
FROM cost_hour GROUP BY ALL
"""
COST_LABEL = """
INSERT INTO cost_label BY NAME
SELECT DISTINCT md5(concat_ws('|', engine_id, template_id, user_name)) AS label_id, engine_id,
  template_id, user_name, 'bi' AS source, '' AS workload_group, 'select' AS statement_kind,
  []::VARCHAR[] AS tags FROM query_event
"""


def clock() -> datetime:
    return END


def fill(store: OwnerStore, events: int) -> None:
    """Write what the collectors, the rollup and the pipeline would have written."""
    between = timedelta(days=DAYS) // events // timedelta(microseconds=1)
    for some in _store.chunks(events):
        values = {"start": _store.START, "step": between, **some}
        store.transact("query_event", [bind(EVENTS, values)])
    for statement in TEMPLATES:
        table = statement.split()[2]
        store.transact(table, [bind(statement, {"end": END} if "$end" in statement else {})])
    Rollup(store, clock).run_once()
    for day in range(DAYS):
        first = _store.START + timedelta(days=day)
        span = {"first": first, "last": first + timedelta(days=1)}
        store.transact("routing_decision", [bind(ROUTED, span)])
        store.transact("template_hour", [bind(TEMPLATE_HOUR, span)])
        store.transact("usage_day", [bind(USAGE_DAY, span)])
        store.transact("cost_hour", [bind(COST_HOUR, span)])
    store.transact("cost_label", [COST_LABEL])
    store.transact("charge", [CHARGES])
    DayCosts(store, clock).run_once()
    store.transact("watermark", [bind(MARK, {"end": END})])
    TemplateDays(store, clock).run_once()


def pages(
    client: StoreClient, config: Config, window: str, owner: int
) -> dict[str, tuple[float, float]]:
    """The reads of every page in one window."""
    expected = jobs(config)
    own_filters = WorkloadFilters(window=window)

    def history(**more: str) -> None:
        filters = Filters(window=window, **more)
        freshness(client, expected, clock)
        red(client, filters, clock)
        trend(client, filters, clock)
        assert list_queries(client, filters, clock, limit=200).total

    rules = rules_of(config)

    def workloads() -> None:
        freshness(client, expected, clock)
        table_ids(client)
        assert list_workloads(client, own_filters, clock, limit=100).rows
        costs = CostFilters(window=window)
        assert cost_report(client, costs, rules, clock, by=("template",), limit=MOST_ROWS).rows
        list_unparsed(client, Filters(window=window), clock, limit=50)

    def chosen() -> None:
        show_template(client, template, own_filters, clock)
        costs = CostFilters(window=window, template=template)
        cost_report(client, costs, rules, clock, by=("engine",), limit=MOST_ROWS)

    def comparison() -> None:
        compared, _ = compared_with_regret(client, clock, window=window)
        assert compared.contests
        assert scan_estimates(client, clock, window=window).engines

    last = list_queries(client, Filters(window=window), clock, limit=1).rows[0]
    template = list_workloads(client, own_filters, clock, limit=1).rows[0].template_id or ""
    visits: dict[str, Callable[[], object]] = {
        "history": history,
        "history_of_a_status": lambda: history(status="failed"),
        "history_of_a_user": lambda: history(user="user7"),
        "detail": lambda: show_query(client, last.engine_id, last.query_id),
        "workloads": workloads,
        "template": chosen,
        "comparison": comparison,
        "usage": lambda: table_usage(client, TABLE, UsageFilters(window=window), clock),
    }
    return {name: _store.milliseconds(visit, owner) for name, visit in visits.items()}


def measure(folder: Path, events: int) -> dict[str, Any]:
    config = _store.demo_config(folder)
    figures: dict[str, Any] = {"events": events, "days": DAYS}
    figures |= _store.filled(config.store, lambda store: fill(store, events))
    figures["store_mib"] = config.store.path.stat().st_size // 2**20
    with (
        _store.served(config.store) as owner,
        StoreClient(config.store, token=_store.TOKENS.reader) as client,
    ):
        seen = {window: pages(client, config, window, owner) for window in WINDOWS}
        text = Filters(window="30d", text="l_orderkey = 1234567 ")
        begin = time.perf_counter()
        list_queries(client, text, clock, limit=200)
        figures["text_search_30d_ms"] = round((time.perf_counter() - begin) * 1000)
    history = ("history", "history_of_a_status", "history_of_a_user")
    return figures | _store.by_window(seen) | {
        "history_ms": _store.worst(seen, *history),
        "detail_ms": _store.worst(seen, "detail"),
        "workloads_ms": _store.worst(seen, "workloads", "template"),
        "usage_ms": _store.worst(seen, "usage"),
        "comparison_ms": _store.worst(seen, "comparison"),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    _store.add_options(parser)
    given = parser.parse_args()
    with _store.folder_of(given.store) as folder:
        found = measure(folder, given.events)
    is_ok = all(found[name] <= limit for name, limit in LIMITS.items())
    return _store.tell("pages", found, LIMITS, is_ok, given.json)


if __name__ == "__main__":
    sys.exit(main())
