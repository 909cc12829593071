"""The cost pages on the rollup of ten million queries: how long until everything was read.

    python benchmarks/costs.py --json [--queries 10000000] [--days 90] [--store FOLDER]

Two processes as in the product: the owner serves the store over Quack, this one reads as the pages
do. DuckDB makes the labels and the split hours of the queries straight in the store file, and the
agent adds up the days. A page's figure is the sum of all its reads, one after the other, nothing
from memory; the worst of its windows counts, the median of several visits each.
"""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, its folder is on the path only

from agents.costs import DayCosts
from benchmarks import _store
from benchmarks.pages import CHARGES
from lakehouse_core.store.client import StoreClient
from lakehouse_core.store.literals import bind
from lakehouse_core.views.costs import SHOWN_SERIES, CostFilters, cost_report, cost_series
from lakehouse_core.views.forecasts import spend_forecast
from lakehouse_core.views.freshness import freshness, jobs
from lakehouse_core.views.groups import group_change, rule_hits, rules_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore

LIMITS = {"costs_ms": 1_000, "groups_ms": 1_000}
WINDOWS = ("24h", "7d")  # and half of all days: with the window before, that reads all there is
OTHER_RULES = "[{name: some, when: {user: ['user1*']}}, {name: tables, when: {table: 'lake.*'}}]"

# Few templates run often, many seldom; 500 templates of 50 users on 3 engines are 75,000 labels.
_QUERY = """
SELECT ['duckdb', 'spark', 'trino'][i % 3 + 1] AS engine_id,
  md5(floor(500 * pow(hash(i + 4) % 100000 / 100000, 3))::INTEGER::VARCHAR) AS template_id,
  'user' || hash(i + 5) % 50 AS user_name, 1 + hash(i + 1) % 5000000 AS execution_us,
  $start::TIMESTAMPTZ + to_microseconds(i * $step::BIGINT // 3600000000 * 3600000000) AS hour_at
FROM (SELECT range AS i FROM range($first::BIGINT, $last::BIGINT))
"""
HOURS = f"""
INSERT INTO cost_hour BY NAME
SELECT hour_at, engine_id, '' AS resource, 'compute' AS meter, engine_id AS price_id,
  'query' AS kind, md5(concat_ws('|', engine_id, template_id, user_name)) AS label_id,
  '' AS reason, 'USD' AS currency, 'modelled' AS basis, false AS is_provisional,
  count(*) AS runs, count(*) AS queries, 0 AS failed, sum(execution_us)::BIGINT AS execution_us,
  (sum(execution_us)::BIGINT / 1000000000)::DECIMAL(38,9) AS cost, cost AS list_cost,
  cost AS contracted_cost, 0 AS failed_cost, $start::TIMESTAMPTZ AS split_at
FROM ({_QUERY}) GROUP BY ALL
"""  # noqa: S608 constants of ours
LABELS = """
INSERT INTO cost_label BY NAME
SELECT md5(concat_ws('|', engine_id, template_id, user_name)) AS label_id, engine_id, template_id,
  user_name, 'bi' AS source, '' AS workload_group, 'select' AS statement_kind,
  ['demo', 'team:' || hash(user_name) % 7] AS tags
FROM (SELECT unnest(['duckdb', 'spark', 'trino']) AS engine_id),
  (SELECT md5(range::VARCHAR) AS template_id FROM range(500)),
  (SELECT 'user' || range AS user_name FROM range(50))
"""
IDLE = """
INSERT INTO cost_hour BY NAME
SELECT hour_at, engine_id, '' AS resource, 'compute' AS meter, engine_id AS price_id,
  'idle' AS kind, '' AS label_id, '' AS reason, 'USD' AS currency, 'modelled' AS basis,
  false AS is_provisional, 1 AS runs, 0 AS queries, 0 AS failed, 0 AS execution_us,
  0.123456789::DECIMAL(38,9) AS cost, cost AS list_cost, cost AS contracted_cost,
  0 AS failed_cost, hour_at AS split_at
FROM (SELECT DISTINCT hour_at, engine_id FROM cost_hour)
"""
TABLES = """
INSERT INTO template_table BY NAME SELECT md5(t.range::VARCHAR) AS template_id,
  '' AS default_catalog, '' AS default_namespace,
  'lake.tpch.t' || (t.range + n.range) % 40 AS table_name
FROM range(500) t, range(2) n
"""


def fill(store: OwnerStore, queries: int, days: int) -> None:
    """What attribution and the costs agent would have written."""
    # Whole hours to a chunk, so that an hour's rows are added up once.
    per_hour = queries // (days * 24)
    step = timedelta(hours=1) // timedelta(microseconds=1) // per_hour
    size = _store.CHUNK // per_hour * per_hour
    for some in _store.chunks(per_hour * days * 24, size):
        values = {"start": _store.START, "step": step, **some}
        store.transact("cost_hour", [bind(HOURS, values)])
    store.transact("cost_label", [LABELS])
    store.transact("cost_hour", [IDLE])
    store.transact("charge", [CHARGES])
    store.transact("template_table", [TABLES])
    DayCosts(store, clock_of(days)).run_once()


def clock_of(days: int) -> Clock:
    return lambda: _store.START + timedelta(days=days)


def pages(
    client: StoreClient, config: Config, window: str, owner: int, clock: Clock
) -> dict[str, tuple[float, float]]:
    """The reads of the cost pages in one window."""
    rules = rules_of(config)
    filters = CostFilters(window=window)
    expected = jobs(config)

    def costs(*by: str) -> None:
        freshness(client, expected, clock)
        report = cost_report(client, filters, rules, clock, by=by, limit=200)
        assert report.total.cost
        assert not report.reconciliation.difference
        shown = tuple(row.first for row in report.firsts[:SHOWN_SERIES] if row.first)
        cost_series(client, filters, rules, clock, by=by[0], shown=shown)
        spend_forecast(client, filters, rules, clock)

    def groups() -> None:
        rule_hits(client, filters, rules, clock)
        group_change(client, filters, rules, rules_of(config, OTHER_RULES), clock)

    visits: dict[str, Callable[[], object]] = {
        "engine_workload": lambda: costs("engine", "workload"),
        "user_template": lambda: costs("user", "template"),
        "table_team": lambda: costs("table", "team"),
        "groups": groups,
    }
    return {name: _store.milliseconds(visit, owner) for name, visit in visits.items()}


def measure(folder: Path, queries: int, days: int) -> dict[str, Any]:
    config = _store.demo_config(folder)
    clock = clock_of(days)
    figures: dict[str, Any] = {"queries": queries, "days": days, "until": clock().isoformat()}
    figures |= _store.filled(config.store, lambda store: fill(store, queries, days))
    with (
        _store.served(config.store) as owner,
        StoreClient(config.store, token=_store.TOKENS.reader) as client,
    ):
        counted = client.read("SELECT count(DISTINCT day_at) AS n FROM cost_day")
        kept = counted.column("n")[0].as_py()
        assert kept == days, f"the store that was kept has {kept} days: --days {kept}"
        for table in ("cost_hour", "cost_day", "cost_label"):
            count = client.read(f"SELECT count(*) AS n FROM {table}")  # noqa: S608 names above
            figures[f"{table}_rows"] = count.column("n")[0].as_py()
        windows = (*WINDOWS, f"{days // 2}d")
        seen = {one: pages(client, config, one, owner, clock) for one in windows}
    return figures | _store.by_window(seen) | {
        "costs_ms": _store.worst(seen, "engine_workload", "user_template", "table_team"),
        "groups_ms": _store.worst(seen, "groups"),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=90, help="that the queries are spread over")
    _store.add_options(parser)
    given = parser.parse_args()
    if given.days < 2 or given.queries < given.days * 24:
        parser.error("at least two days, and a query for each of their hours")
    with _store.folder_of(given.store) as folder:
        found = measure(folder, given.queries, given.days)
    is_ok = all(found[name] <= limit for name, limit in LIMITS.items())
    return _store.tell("costs", found, LIMITS, is_ok, given.json)


if __name__ == "__main__":
    sys.exit(main())
