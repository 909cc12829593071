"""A thousand tables: how long scoring them and recommending cures takes.

    python benchmarks/recommend.py --json [--tables 1000] [--events 200000]

A real store that nobody serves, as the agents process has it. Every third table is sick, in one of
four ways; each has a history of commits, and templates that read it on three engines. Scoring reads
the metrics the collector has left, judges all tables and writes the verdicts; recommending reads
the same and the history of the queries, makes plans and writes proposals with their audit chain.
The second run of each finds nothing new and shows what a schedule costs when nothing happens.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import health, recommend
from lakehouse_core.config import load_config
from lakehouse_core.health import assess_table, thresholds_for
from lakehouse_core.maintenance.audit import AUDIT_SQL, read_head, verify_chain
from lakehouse_core.maintenance.records import audit_of
from lakehouse_core.recommend.reading import read_fleet
from lakehouse_core.store.literals import bind
from lakehouse_core.store.owner import OwnerStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.config.models import Config

LIMITS = {"scoring_ms": 2_000, "recommending_ms": 2_000}
ROUNDS = 3
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
ROOT = Path(__file__).parents[1]

TABLES = """
INSERT INTO lake_table BY NAME SELECT 'lake.bench.t' || n AS table_id, 'lake' AS catalog,
  'bench' AS namespace, 't' || n AS table_name, $now::TIMESTAMPTZ AS seen_at,
  'uuid-' || n AS table_uuid, 'file:/lake/t' || n || '/metadata/1.json' AS metadata_location,
  1 AS current_snapshot_id
FROM range($tables::BIGINT) AS t(n)
"""
METRICS = """
INSERT INTO table_metrics BY NAME SELECT 'lake.bench.t' || n AS table_id, 1 AS snapshot_id,
  'file:/lake/t' || n AS metadata_location, $now::TIMESTAMPTZ AS collected_at, 2 AS format_version,
  files AS data_files, files * size AS total_bytes, files * 1000 AS total_rows,
  if(kind = 0, files, 0) AS small_files, size AS avg_file_bytes, size AS median_file_bytes,
  if(kind = 0, [files, 0, 0, 0, 0, 0], [0, 0, 0, files, 0, 0]) AS file_size_histogram,
  deletes AS delete_files, deletes AS position_delete_files, 0 AS equality_delete_files,
  0 AS deletion_vectors, deletes * 500 AS deleted_rows, deletes / files AS delete_ratio,
  if(kind = 2, 300, 4) AS manifests, 300000 AS manifest_bytes, if(kind = 3, 320, 5) AS snapshots,
  $now::TIMESTAMPTZ - to_days(if(kind = 3, 40, 1)) AS oldest_snapshot_at,
  $now::TIMESTAMPTZ - INTERVAL 1 HOUR AS latest_snapshot_at, 5000 AS metadata_bytes,
  4 AS partitions, 1.0 AS skew
FROM (
  SELECT n, if(n % 3 = 0, n // 3 % 4, -1) AS kind, if(kind = 0, 500, 40)::BIGINT AS files,
    if(kind = 0, 300000, 64000000) AS size, if(kind = 1, 20, 0) AS deletes
  FROM range($tables::BIGINT) AS t(n)
)
"""
COMMITS = """
INSERT INTO snapshot_commit SELECT 'lake.bench.t' || n, c, c - 1,
  $now::TIMESTAMPTZ - to_hours(2 * c), 'append', 1, 0, 1000, 0, 300000, 'spark', 'app', NULL, NULL,
  NULL
FROM range($tables::BIGINT) AS t(n), range(300) AS s(c)
"""
TEMPLATES = """
INSERT INTO query_template SELECT 'q' || n, 'trino', 'SELECT ' || n, 'select', NULL,
  $now::TIMESTAMPTZ, NULL
FROM range(5 * $tables::BIGINT) AS t(n)
"""
USED = """
INSERT INTO template_table BY NAME SELECT 'q' || n AS template_id, '' AS default_catalog,
  '' AS default_namespace, 'lake.bench.t' || n % $tables::BIGINT AS table_name
FROM range(5 * $tables::BIGINT) AS t(n)
"""
EVENTS = """
INSERT INTO query_event BY NAME SELECT ['duckdb', 'spark', 'trino'][n % 3 + 1] AS engine_id,
  'query-' || n AS query_id, 'finished' AS status,
  $now::TIMESTAMPTZ - to_seconds((n * 7) % 2592000) AS submitted_at,
  $now::TIMESTAMPTZ AS collected_at, 2 AS revision, 'q' || n % (5 * $tables::BIGINT) AS template_id,
  100.0 + n % 900 AS execution_ms, 20.0 AS planning_ms, 1000000 AS bytes_scanned, 'real' AS origin,
  'history' AS reporter
FROM range($events::BIGINT) AS t(n)
"""


def fill(store: OwnerStore, tables: int, events: int) -> None:
    given = {"tables": tables, "events": events, "now": NOW}
    for table, sql in (
        ("lake_table", TABLES),
        ("table_metrics", METRICS),
        ("snapshot_commit", COMMITS),
        ("query_template", TEMPLATES),
        ("template_table", USED),
        ("query_event", EVENTS),
    ):
        store.transact(table, [bind(sql, given)])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    return (time.perf_counter() - start) * 1000, found


def measure(config: Config, tables: int, events: int) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory(prefix="lakehelm-recommend-") as folder,
        OwnerStore.at(Path(folder)) as store,
    ):
        fill(store, tables, events)
        scoring, verdicts = timed(lambda: health.run_once(store, config.health, lambda: NOW))
        fleet = read_fleet(store, config, NOW)
        alone, _ = timed(
            lambda: [
                assess_table(
                    one.table, one.metrics, thresholds_for(config.health, one.table.table_id), NOW
                )
                for one in fleet.subjects
            ]
        )
        first, proposed = timed(lambda: recommend.run_once(store, config, lambda: NOW))
        later = NOW + timedelta(minutes=2)
        again, changed = timed(lambda: recommend.run_once(store, config, lambda: later))
        entries = audit_of(store.read(AUDIT_SQL))
        assert verify_chain(entries, read_head(store.path)).is_intact
        assert verdicts.rows == tables
        # A third of the tables is sick; of each four of those, all have a cure.
        assert proposed.rows == (tables + 2) // 3
        assert changed.rows == 0
    return {
        "scoring_ms": scoring,
        "rules_alone_ms": alone,
        "recommending_ms": first,
        "recommending_again_ms": again,
        "proposals": proposed.rows,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    config = load_config(ROOT / "config" / "lakehelm.yaml").config
    rounds = [measure(config, given.tables, given.events) for _ in range(ROUNDS)]
    figures = {name: round(statistics.median(one[name] for one in rounds), 1) for name in rounds[0]}
    figures |= {"tables": given.tables, "events": given.events}
    missed = [name for name, limit in LIMITS.items() if figures[name] > limit]
    if given.json:
        print(json.dumps({**figures, "limits": LIMITS, "missed": missed}))
    else:
        for name, value in figures.items():
            print(
                f"{name:24} {value:>10,}  {'limit ' + str(LIMITS[name]) if name in LIMITS else ''}"
            )
    return 1 if missed and given.tables <= 1_000 else 0


if __name__ == "__main__":
    sys.exit(main())
