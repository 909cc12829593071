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
import json
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.costs import DayCosts
from agents.rollup import Rollup
from agents.template_days import TemplateDays
from lakehouse_core.config import load_config
from lakehouse_core.store.client import StoreClient
from lakehouse_core.store.literals import bind
from lakehouse_core.store.owner import OwnerStore, Tokens
from lakehouse_core.views.costs import MOST_ROWS, CostFilters, cost_report
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.freshness import freshness, jobs
from lakehouse_core.views.groups import rules_of
from lakehouse_core.views.names import table_ids
from lakehouse_core.views.queries import list_queries, show_query
from lakehouse_core.views.red import red, trend
from lakehouse_core.views.template_detail import show_template
from lakehouse_core.views.unparsed import list_unparsed
from lakehouse_core.views.usage import UsageFilters, table_usage
from lakehouse_core.views.workloads import WorkloadFilters, list_workloads

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Event

    from lakehouse_core.config.models import Config, StoreConfig

LIMITS = {"history_ms": 1_000, "detail_ms": 1_000, "workloads_ms": 1_000, "usage_ms": 1_000}
WINDOWS = ("24h", "7d", "30d")
VISITS = 5
CHUNK = 1_000_000
ROOT = Path(__file__).parents[1]
DAYS = 30
START = datetime(2026, 11, 1, tzinfo=UTC)
END = START + timedelta(days=DAYS)
TABLE = "lake.tpch.lineitem"

# Few templates run often, many seldom; texts differ in their literal only.
EVENTS = """
INSERT INTO query_event BY NAME
SELECT ['duckdb', 'spark', 'trino'][i % 3 + 1] AS engine_id,
  strftime(moment, '%Y%m%d_%H%M%S_') || lpad(i::VARCHAR, 9, '0') AS query_id,
  CASE WHEN i % 20 = 0 THEN 'failed' ELSE 'finished' END AS status,
  moment AS submitted_at, moment + INTERVAL 10 SECONDS AS collected_at, 2::TINYINT AS revision,
  'trino' AS dialect,
  'SELECT l_returnflag, sum(l_quantity) FROM lake.tpch.lineitem WHERE l_orderkey = ' || i
    || ' GROUP BY 1 ORDER BY 1' AS sql_text, 'select' AS statement_kind,
  md5(floor(500 * pow(hash(i + 4) % 100000 / 100000, 3))::INTEGER::VARCHAR) AS template_id,
  'user' || hash(i + 5) % 50 AS user_name, 'bi' AS source,
  ['team:' || i % 7, 'demo'] AS tags, moment AS started_at,
  moment + to_milliseconds(hash(i) % 5000) AS ended_at, hash(i) % 100 / 10 AS queued_ms,
  hash(i + 1) % 5000 / 10 AS execution_ms, exp(hash(i + 2) % 9000 / 1000) AS elapsed_ms,
  hash(i + 3) % 5000 / 10 AS cpu_ms, (hash(i) % 1000000000)::BIGINT AS bytes_scanned,
  i % 1000 AS rows_returned, [i]::BIGINT[] AS snapshot_ids, 'simulated' AS origin,
  'history' AS reporter
FROM (SELECT range AS i, $start::TIMESTAMPTZ + to_microseconds(range * $step::BIGINT) AS moment
  FROM range($first::BIGINT, $last::BIGINT))
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
    for first in range(0, events, CHUNK):
        last = min(first + CHUNK, events)
        values = {"start": START, "step": between, "first": first, "last": last}
        store.transact("query_event", [bind(EVENTS, values)])
    for statement in TEMPLATES:
        table = statement.split()[2]
        store.transact(table, [bind(statement, {"end": END} if "$end" in statement else {})])
    Rollup(store, clock).run_once()
    for day in range(DAYS):
        span = {"first": START + timedelta(days=day), "last": START + timedelta(days=day + 1)}
        store.transact("template_hour", [bind(TEMPLATE_HOUR, span)])
        store.transact("usage_day", [bind(USAGE_DAY, span)])
        store.transact("cost_hour", [bind(COST_HOUR, span)])
    store.transact("cost_label", [COST_LABEL])
    store.transact("charge", [CHARGES])
    DayCosts(store, clock).run_once()
    store.transact("watermark", [bind(MARK, {"end": END})])
    TemplateDays(store, clock).run_once()


def own(store: StoreConfig, tokens: Tokens, ready: Event, ended: Event) -> None:
    with OwnerStore.open(store, tokens=tokens):
        ready.set()
        ended.wait()


def cpu_ms(pid: int) -> float:
    """Processor time of a process so far, its own and the system's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1000


def milliseconds(work: Callable[[], object], owner: int) -> tuple[float, float]:
    """Median time of a visit, and the owner's processor time for one."""
    spent = []
    before = cpu_ms(owner)
    for _ in range(VISITS):
        start = time.perf_counter()
        work()
        spent.append((time.perf_counter() - start) * 1000)
    return statistics.median(spent), (cpu_ms(owner) - before) / VISITS


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

    last = list_queries(client, Filters(window=window), clock, limit=1).rows[0]
    template = list_workloads(client, own_filters, clock, limit=1).rows[0].template_id or ""
    visits: dict[str, Callable[[], object]] = {
        "history": history,
        "history_of_a_status": lambda: history(status="failed"),
        "history_of_a_user": lambda: history(user="user7"),
        "detail": lambda: show_query(client, last.engine_id, last.query_id),
        "workloads": workloads,
        "template": chosen,
        "usage": lambda: table_usage(client, TABLE, UsageFilters(window=window), clock),
    }
    return {name: milliseconds(visit, owner) for name, visit in visits.items()}


def free_ports() -> int:
    with socket.socket() as first:
        first.bind(("127.0.0.1", 0))
        return min(int(first.getsockname()[1]), 65_000)


def measure(folder: Path, events: int) -> dict[str, Any]:
    environ = {"LAKEHELM_HOME": str(folder), "LAKEHELM__STORE__PORT": str(free_ports())}
    config = load_config(ROOT / "config" / "lakehelm.yaml", environ).config
    tokens = Tokens("writer-of-a-benchmark", "reader-of-a-benchmark")
    figures: dict[str, Any] = {"events": events, "days": DAYS}
    start = time.perf_counter()
    if not config.store.path.exists():
        with OwnerStore.open(config.store) as store:
            fill(store, events)
        figures["filled_in_seconds"] = round(time.perf_counter() - start)
    figures["store_mib"] = config.store.path.stat().st_size // 2**20
    spawn = multiprocessing.get_context("spawn")
    ready, ended = spawn.Event(), spawn.Event()
    owner = spawn.Process(target=own, args=(config.store, tokens, ready, ended))
    owner.start()
    try:
        assert ready.wait(120), "the owner did not start"
        with StoreClient(config.store, token=tokens.reader) as client:
            pid = owner.pid or 0
            seen = {window: pages(client, config, window, pid) for window in WINDOWS}
            text = Filters(window="30d", text="l_orderkey = 1234567 ")
            begin = time.perf_counter()
            list_queries(client, text, clock, limit=200)
            figures["text_search_30d_ms"] = round((time.perf_counter() - begin) * 1000)
    finally:
        ended.set()
        owner.join(60)
    for number, name in enumerate(("windows_ms", "owner_cpu_ms")):
        figures[name] = {
            window: {page: round(spent[number]) for page, spent in one.items()}
            for window, one in seen.items()
        }
    for name, parts in {
        "history_ms": ("history", "history_of_a_status", "history_of_a_user"),
        "detail_ms": ("detail",),
        "workloads_ms": ("workloads", "template"),
        "usage_ms": ("usage",),
    }.items():
        figures[name] = round(max(one[part][0] for one in seen.values() for part in parts))
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--store", type=Path, help="a folder to keep the store in, and use again")
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    if given.store is not None:
        found = measure(given.store.resolve(), given.events)
    else:
        with tempfile.TemporaryDirectory(prefix="lakehelm-bench-") as folder:
            found = measure(Path(folder), given.events)
    is_ok = all(found[name] <= limit for name, limit in LIMITS.items())
    result = {
        "benchmark": "pages",
        **found,
        "load_average": os.getloadavg()[0],
        "figures": {name: found[name] for name in LIMITS},
        "limits": LIMITS,
        "ok": is_ok,
    }
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if is_ok else 1


if __name__ == "__main__":
    sys.exit(main())
