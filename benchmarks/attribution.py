"""Attribution in the pipeline: ten million queries over ninety days; then one hour that is new.

    python benchmarks/attribution.py --json [--events 10000000] [--days 90]

The job runs as in production, in a process of its own, from a landed export to gold. Figures are
the seconds of the stages of costs (`silver.charges`, `cost.labels`, `gold.cost_*`), without the
JVM's start and without the stages that were there before. Every hour is checked: the split adds up
to the charges, to the last digit. The page's question (what each user cost, by engine, in thirty
days) is asked of the store's own table with the rows the job made.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, its folder is on the path only
from lakehouse_core import duck
from lakehouse_core.catalog.location import local_path
from lakehouse_core.config import Config, load_config
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.pipeline.job import plan_document, run_spark
from lakehouse_core.pipeline.landing import Export, Landing, Part
from lakehouse_core.pipeline.state import read_state

if TYPE_CHECKING:
    import duckdb

ROOT = Path(__file__).parents[1]
START = datetime(2026, 8, 1, tzinfo=UTC)
LIMITS = {"seconds": 180.0, "incremental_seconds": 10.0, "page_seconds": 1.0}
ENGINES = "['trino', 'spark', 'duckdb', 'athena', 'snowflake']"
USERS, TEMPLATES, CORES = 60, 400, 2
OWN_STAGES = ("silver.charges", "cost.labels", "gold.cost_")

EVENTS = f"""
WITH drawn AS (
  SELECT i, (hash(i) % {TEMPLATES})::BIGINT AS template,
    $start::TIMESTAMPTZ + to_microseconds((hash(i + 1) % $span_us::UBIGINT)::BIGINT) AS moment,
    (exp((hash(i + 2) % 1000000) / 1000000.0 * 9))::BIGINT * 1000 AS execution_us
  FROM range($first::BIGINT, $first::BIGINT + $count::BIGINT) AS numbers(i)
)
SELECT {ENGINES}[template % 5 + 1] AS engine_id, 'q-' || i AS query_id,
  CASE WHEN hash(i + 3) % 25 = 0 THEN 'failed' ELSE 'finished' END AS status,
  moment AS submitted_at, $collected::TIMESTAMPTZ AS collected_at, 2 AS revision,
  NULL::VARCHAR AS dialect, NULL::VARCHAR AS sql_text, NULL::VARCHAR AS translated_sql,
  'select' AS statement_kind, 't' || template AS template_id,
  'user' || (template * 7 + hash(i + 4) % 3) % {USERS} AS user_name,
  ['bi', 'etl', 'notebook'][template % 3 + 1] AS source,
  CASE WHEN template % 5 = 4 THEN ['warehouse=W' || template % 7, 'team=' || template % 5]
    ELSE ['team=' || template % 5] END AS tags,
  NULL::VARCHAR AS workload_group, moment + INTERVAL 1 SECOND AS started_at,
  moment + INTERVAL 1 SECOND + to_microseconds(execution_us) AS ended_at,
  1000.0::DOUBLE AS queued_ms, NULL::DOUBLE AS planning_ms,
  (execution_us / 1000.0)::DOUBLE AS execution_ms, NULL::DOUBLE AS elapsed_ms,
  (execution_us / 900.0)::DOUBLE AS cpu_ms, (hash(i + 5) % 1000000000)::BIGINT AS bytes_scanned,
  NULL::BIGINT AS rows_scanned, NULL::BIGINT AS rows_returned, NULL::BIGINT AS bytes_written,
  NULL::BIGINT AS rows_written, NULL::BIGINT AS peak_memory_bytes, NULL::BIGINT AS spilled_bytes,
  NULL::VARCHAR AS error_class, NULL::VARCHAR AS error_code, NULL::VARCHAR AS error_message,
  []::BIGINT[] AS snapshot_ids, NULL::VARCHAR AS gateway_id, NULL::VARCHAR AS engine_url,
  'real' AS origin, 'history' AS reporter, NULL::VARCHAR AS known_by,
  NULL::VARCHAR AS default_catalog, NULL::VARCHAR AS default_namespace, NULL::VARCHAR AS text_id
FROM drawn
"""  # noqa: S608 constants of ours

# A cluster of nodes each for Trino and Spark, cores for DuckDB, bytes for Athena, credits of seven
# warehouses for Snowflake.
CHARGES = """
WITH hours AS (
  SELECT $start::TIMESTAMPTZ + to_hours(h) AS hour_at, h
  FROM range($from_hour::BIGINT, $to_hour::BIGINT) AS numbers(h)
), lines AS (
  SELECT * FROM (VALUES ('trino', '', 'compute', 'seconds', 3600000000),
    ('spark', '', 'compute', 'seconds', 3600000000), ('duckdb', '', 'compute', 'cpu', NULL),
    ('athena', '', 'scan', 'bytes', NULL)) AS fixed(engine_id, resource, meter, method, capacity)
  UNION ALL SELECT 'snowflake', 'W' || w, 'compute', 'seconds', NULL FROM range(7) AS names(w)
)
SELECT hour_at, engine_id, resource, meter, 'p' AS price_id, 'unit' AS unit,
  1::DECIMAL(38, 9) AS quantity, NULL::DECIMAL(38, 9) AS attributed, capacity, method,
  cost AS list_cost, cost AS contracted_cost, cost, 'USD' AS currency, 'modelled' AS basis,
  'measured' AS source, 10000000::BIGINT AS minimum_bytes, FALSE AS failed_is_free,
  FALSE AS is_provisional, NULL::VARCHAR AS reason, $collected::TIMESTAMPTZ AS computed_at
FROM (SELECT *, ((hash(h, engine_id, resource, $seed::BIGINT) % 100000000000)::DECIMAL(18, 0)
  * 0.000000001)::DECIMAL(38, 9) AS cost FROM hours, lines)
"""

WRONG = """
SELECT count(*) FROM (
  SELECT hour_at, engine_id, sum(cost) AS cost FROM iceberg_scan($charge) GROUP BY ALL
) AS charged FULL JOIN (
  SELECT hour_at, engine_id, sum(cost) AS cost FROM iceberg_scan($split) GROUP BY ALL
) AS split USING (hour_at, engine_id)
WHERE charged.cost IS DISTINCT FROM split.cost
"""
PAGE = """
SELECT engine_id, user_name, kind, sum(cost) AS cost, sum(queries) AS queries
FROM cost_hour LEFT JOIN cost_label USING (label_id, engine_id)
WHERE runs > 0 AND hour_at >= $since::TIMESTAMPTZ GROUP BY ALL ORDER BY cost DESC
"""


def land(
    landing: Landing, export_id: str, follows: str | None, given: dict[str, Any]
) -> tuple[Export, int]:
    """Write an export of events and charges."""
    folder = landing.begin(export_id)
    parts: dict[str, Part] = {}
    with duck.connect(config={"memory_limit": "3GB", "threads": CORES}) as connection:
        connection.execute("SET preserve_insertion_order = false; SET TimeZone = 'UTC'")
        for table, statement, time_column in (
            ("query_event", EVENTS, "submitted_at"),
            ("charge", CHARGES, "hour_at"),
        ):
            name = f"{table}-00000.parquet"
            wanted = {key: value for key, value in given.items() if f"${key}" in statement}
            rows = connection.sql(statement, params=wanted)
            rows.write_parquet(str(folder / name), compression="zstd", row_group_size=100_000)
            source = f"read_parquet('{folder / name}')"
            days = connection.sql(
                f"SELECT DISTINCT {time_column}::DATE FROM {source} ORDER BY 1"  # noqa: S608 ours
            ).fetchall()
            ((count,),) = connection.sql(f"SELECT count(*) FROM {source}").fetchall()  # noqa: S608
            parts[table] = Part(
                files=(name,), rows=count, days=tuple(day.isoformat() for (day,) in days)
            )
    export = Export(
        id=export_id, exported_at=utc_now().isoformat(), follows=follows, tables=parts, cursor={}
    )
    return landing.publish(folder, export), parts["query_event"].rows


def carry(config: Config, landing: Landing, export: Export, after: str | None) -> dict[str, Any]:
    """One run of the job; the seconds of the stages of costs, and of the others."""
    machine = read_machine()
    rest: dict[str, Any] = {
        "run_id": f"bench-{export.id}",
        "after": after,
        "cursor": {},
        "care": {},
    }
    plan = plan_document(config, machine, landing, [export], rest)
    report = run_spark(
        config,
        machine,
        plan,
        on_progress=lambda at: print(f"{export.id}: {at.what}", file=sys.stderr, flush=True),
        is_stopping=lambda: False,
    )
    stages = {stage["name"]: stage["seconds"] for stage in report["stages"]}
    own = {name: value for name, value in stages.items() if name.startswith(OWN_STAGES)}
    return {
        "seconds": sum(own.values()),
        "stages": own,
        "other_seconds": sum(stages.values()) - sum(own.values()) - stages["start"],
        "start_seconds": stages["start"],
        "hours": len(report["recomputed"]["cost_hour"]),
    }


def check(config: Config) -> dict[str, Any]:
    """Whether every hour adds up, and how long the page's question takes."""
    tables = read_state(config).tables
    with duck.connect(extensions=("iceberg",), config={"threads": CORES}) as connection:
        place = {name: str(local_path(tables[name].location)) for name in tables}
        ((wrong,),) = connection.execute(
            WRONG, {"charge": place["charge"], "split": place["cost_hour"]}
        ).fetchall()
        for name in ("cost_hour", "cost_label"):
            connection.execute(
                f"CREATE TABLE {name} AS FROM iceberg_scan($place) "
                + ("ORDER BY hour_at" if name == "cost_hour" else ""),
                {"place": place[name]},
            )
        return {"unbalanced": wrong, **page(connection)}


def page(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    seconds = []
    since = START + timedelta(days=60)
    for _ in range(5):
        started = time.perf_counter()
        connection.execute(PAGE, {"since": since}).fetchall()
        seconds.append(time.perf_counter() - started)
    ((rows,),) = connection.execute("SELECT count(*) FROM cost_hour").fetchall()
    return {"store_rows": rows, "page_seconds": sorted(seconds)[2]}


def run(events: int, days: int, folder: Path) -> dict[str, Any]:
    environ = {**os.environ, "LAKEHELM_HOME": str(folder / "home")}
    config = load_config(ROOT / "config" / "lakehelm.yaml", environ).config
    for catalog in config.catalogs.values():
        catalog.warehouse.mkdir(parents=True, exist_ok=True)
    landing = Landing(folder / "landing")
    common = {"start": START, "collected": START + timedelta(days=days), "seed": 1}
    whole = common | {
        "first": 0,
        "count": events,
        "span_us": days * 86_400_000_000,
        "from_hour": 0,
        "to_hour": days * 24 + 4,  # queries that began in the last hour go on
    }
    first, count = land(landing, "000000000001", None, whole)
    full = carry(config, landing, first, None)
    last = days * 24 - 1
    hour = common | {
        "start": START + timedelta(hours=last),
        "first": events,
        "count": max(1, events // (days * 24)),
        "span_us": 3_600_000_000,
        "from_hour": 0,
        "to_hour": 1,
        "seed": 2,
    }
    second, _ = land(landing, "000000000002", first.id, hour)
    more = carry(config, landing, second, first.id)
    checked = check(config)
    figures = {
        "events": count,
        "seconds": full["seconds"],
        "events_per_second": count / full["seconds"],
        "incremental_seconds": more["seconds"],
        "page_seconds": checked["page_seconds"],
        "unbalanced": checked["unbalanced"],
        "store_rows": checked["store_rows"],
    }
    return {
        "benchmark": "attribution",
        "master": config.spark.master,
        "load_average": os.getloadavg()[0],
        "full": full,
        "incremental": more,
        "figures": figures,
        "limits": LIMITS,
        "ok": checked["unbalanced"] == 0
        and all(figures[name] <= limit for name, limit in LIMITS.items()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakehelm-bench-") as folder:
        result = run(given.events, given.days, Path(folder))
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
