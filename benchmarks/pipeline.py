"""The telemetry pipeline: a million events against parsing each of them; how it grows; nothing new.

    python benchmarks/pipeline.py --json [--sizes 100000,1000000]

Events repeat templates as histories do: template and parameters are drawn by Zipf's law (BI
statements, TPC-H and TPC-DS, varied), and one event in ten has parameters nobody used before. The
job runs as in production, in a process of its own, from a landed export to gold; its seconds are
those of its stages, without starting the JVM, which is told apart.

Parsing each event is measured in the same run with the same function and as many processes as the
job has cores, on a sample of the same events, without memory between events, and extrapolated
linearly. Beside the wall clock stand CPU seconds of both sides, the JVM's start and compiler
included: what the ratio is when nobody else uses the machine. The exponent is the slope of
log(seconds) over log(events), over all sizes and between each and the next; the largest counts: a
start that costs the same for any size must not hide what the last step costs.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, its folder is on the path only
from benchmarks.fingerprint import corpora, with_new_literals, with_new_template
from lakehouse_core import duck
from lakehouse_core.config import Config, load_config
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.pipeline.job import plan_document, run_spark
from lakehouse_core.pipeline.landing import Export, Landing, Part
from lakehouse_core.pipeline.service import Surroundings, run_pipeline
from lakehouse_core.sql import Inspector
from lakehouse_core.store.owner import OwnerStore

ROOT = Path(__file__).parents[1]
LIMITS = {"times_parsing_each": 20.0, "exponent": 1.0}
START = datetime(2026, 11, 1, tzinfo=UTC)
DAYS = 7
TEMPLATES, VARIANTS, CORES = 400, 40, 2
FRESH = 987_654_321  # stands for a parameter that is new in every event
FRESH_SHARE = 0.1
SAMPLE = 2_000

EVENTS = """
WITH drawn AS (
  SELECT i, random() AS luck, random() AS other,
    TIMESTAMPTZ '2026-11-01 00:00:00+00' + to_microseconds((random() * $span_us)::BIGINT) AS moment
  FROM range($count) AS numbers(i)
), placed AS (
  SELECT *, least(floor(pow($templates, luck)), $templates - 1)::BIGINT AS template,
    CASE WHEN random() < $fresh_share THEN $variants
      ELSE least(floor(pow($variants, other)), $variants - 1)::BIGINT END AS variant
  FROM drawn
)
SELECT ['trino', 'spark', 'duckdb'][template % 3 + 1] AS engine_id, 'q-' || i AS query_id,
  CASE WHEN hash(i) % 25 = 0 THEN 'failed' ELSE 'finished' END AS status,
  moment AS submitted_at, moment + INTERVAL 10 SECONDS AS collected_at, 2::TINYINT AS revision,
  texts.dialect, replace(texts.sql_text, $fresh, (i + 1000000)::VARCHAR) AS sql_text,
  NULL::VARCHAR AS translated_sql, NULL::VARCHAR AS statement_kind, NULL::VARCHAR AS template_id,
  'user' || ((template * 7 + hash(i) % 3) % 60) AS user_name,
  ['bi', 'etl', 'notebook'][template % 3 + 1] AS source,
  ['team:' || i % 7] AS tags, NULL::VARCHAR AS workload_group, moment AS started_at,
  moment + INTERVAL 1 SECOND AS ended_at, 5.0::DOUBLE AS queued_ms, NULL::DOUBLE AS planning_ms,
  (hash(i + 2) % 1000000 / 100)::DOUBLE AS execution_ms,
  (hash(i + 3) % 1000000 / 100)::DOUBLE AS elapsed_ms, (hash(i + 4) % 10000)::DOUBLE AS cpu_ms,
  (hash(i + 5) % 1000000000)::BIGINT AS bytes_scanned, 1000::BIGINT AS rows_scanned,
  10::BIGINT AS rows_returned, NULL::BIGINT AS bytes_written, NULL::BIGINT AS rows_written,
  1048576::BIGINT AS peak_memory_bytes, NULL::BIGINT AS spilled_bytes,
  NULL::VARCHAR AS error_class, NULL::VARCHAR AS error_code, NULL::VARCHAR AS error_message,
  []::BIGINT[] AS snapshot_ids, NULL::VARCHAR AS gateway_id, NULL::VARCHAR AS engine_url,
  'simulated' AS origin, 'history' AS reporter, NULL::VARCHAR AS known_by,
  'lake' AS default_catalog, 'demo' AS default_namespace
FROM placed JOIN texts USING (template, variant)
"""


# As an export has it (lakehouse_core.pipeline.export).
TEXT_ID = """left(sha256(concat_ws(chr(31), sql_text, dialect, default_catalog, default_namespace)),
  32) AS text_id"""


def texts() -> pa.Table:
    """Every template with its variants; the last variant has parameters to be replaced."""
    statements = [text for found in corpora().values() for text in found]
    luck = random.Random(7)  # noqa: S311 the same in every run
    luck.shuffle(statements)
    endless = itertools.chain(
        statements,
        (with_new_template(text, n) for n, text in enumerate(itertools.cycle(statements))),
    )
    rows = []
    for template, statement in enumerate(itertools.islice(endless, TEMPLATES)):
        for variant in range(VARIANTS + 1):
            number = FRESH if variant == VARIANTS else 100 + variant
            dialect, sql = with_new_literals(statement, number)
            rows.append(
                {"template": template, "variant": variant, "dialect": dialect, "sql_text": sql}
            )
    return pa.Table.from_pylist(rows)


def land(landing: Landing, known: pa.Table, count: int) -> tuple[Export, dict[str, Any]]:
    """Write an export of so many events, and say what is in it."""
    export_id = f"{count:012}"
    folder = landing.begin(export_id)
    name = "query_event-00000.parquet"
    params = {
        "count": count,
        "span_us": DAYS * 86_400_000_000,
        "templates": TEMPLATES,
        "variants": VARIANTS,
        "fresh": str(FRESH),
        "fresh_share": FRESH_SHARE,
    }
    with duck.connect(config={"memory_limit": "3GB", "threads": CORES}) as connection:
        connection.execute("SELECT setseed(0.42)")
        connection.register("texts", known)
        connection.execute("SET preserve_insertion_order = false")
        events = connection.sql(f"SELECT *, {TEXT_ID} FROM ({EVENTS})", params=params)  # noqa: S608
        events.write_parquet(str(folder / name), compression="zstd", row_group_size=100_000)
        source = f"read_parquet('{folder / name}')"
        facts = connection.sql(
            f"SELECT approx_count_distinct(sql_text) AS distinct_texts, "  # noqa: S608 our own file
            f"avg(length(sql_text)) AS mean_characters FROM {source}"
        ).to_arrow_table()
        sample = connection.sql(
            f"SELECT dialect, sql_text FROM {source} USING SAMPLE {SAMPLE} ROWS"  # noqa: S608
        ).fetchall()
    days = tuple((START + timedelta(days=n)).date().isoformat() for n in range(DAYS))
    export = Export(
        id=export_id,
        exported_at=utc_now().isoformat(),
        follows=None,
        tables={"query_event": Part(files=(name,), rows=count, days=days)},
        cursor={},
    )
    return landing.publish(folder, export), {**facts.to_pylist()[0], "sample": sample}


class Meter:
    """CPU seconds of the processes this one starts, theirs included, looked at twice a second."""

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def seconds(self) -> float:
        """What was seen so far."""
        return sum(self._seen.values())

    def __enter__(self) -> Meter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._over.wait(0.5):
            for process in me.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    times = process.cpu_times()
                    self._seen[process.pid] = times.user + times.system


def parse_each(some: list[tuple[str, str]]) -> float:
    """Read each statement as if it were the only one; CPU seconds it took."""
    started = time.process_time()
    for dialect, sql in some:
        Inspector().inspect(
            sql, dialect, default_catalog="lake", default_namespace=("demo",), literals=True
        )
    return time.process_time() - started


def cost_per_event(sample: list[tuple[str, str]]) -> tuple[float, float]:
    """Wall-clock seconds that parsing each event takes with all cores at it, and CPU seconds."""
    parts = [sample[core::CORES] for core in range(CORES)]
    with multiprocessing.get_context("spawn").Pool(CORES) as pool:
        pool.map(parse_each, [part[:20] for part in parts])  # imports and caches of the process
        started = time.perf_counter()
        cpu = pool.map(parse_each, parts)
        return (time.perf_counter() - started) / len(sample), sum(cpu) / len(sample)


def carry(config: Config, known: pa.Table, count: int, folder: Path) -> dict[str, Any]:
    """One size from landing to gold, in a namespace of its own."""
    landing = Landing(folder / f"landing-{count}")
    export, facts = land(landing, known, count)
    settings = config.pipeline.model_copy(update={"namespace": f"ops_{count}"})
    own = config.model_copy(update={"pipeline": settings})
    rest: dict[str, Any] = {"run_id": f"bench-{count}", "after": None, "cursor": {}, "care": {}}
    machine = read_machine()
    plan = plan_document(own, machine, landing, [export], rest)
    started = time.perf_counter()
    with Meter() as meter:
        report = run_spark(
            own,
            machine,
            plan,
            on_progress=lambda at: print(f"{count}: {at.what}", file=sys.stderr),
            is_stopping=lambda: False,
        )
    wall = time.perf_counter() - started
    stages = {stage["name"]: stage["seconds"] for stage in report["stages"]}
    parsed = next(stage for stage in report["stages"] if stage["name"] == "texts")
    working = sum(stages.values()) - stages["start"]
    per_event, cpu_per_event = cost_per_event(facts.pop("sample"))
    return {
        "events": count,
        **facts,
        "texts_parsed": parsed["rows_in"],
        "seconds": working,
        "seconds_with_start": wall,
        "events_per_second": count / working,
        "stages": stages,
        "parsing_each_ms_per_event": per_event * 1_000,
        "parsing_each_seconds_extrapolated": per_event * count,
        "times_parsing_each": per_event * count / working,
        "cpu_seconds_with_start": meter.seconds,
        "parsing_each_cpu_ms_per_event": cpu_per_event * 1_000,
        "times_parsing_each_in_cpu": cpu_per_event * count / meter.seconds,
    }


def nothing_new(config: Config) -> dict[str, float]:
    """A second run over nothing new: no JVM, and how long it takes to find out."""
    with OwnerStore.open(config.store) as store:
        with duck.connect() as connection:
            connection.register("texts", texts().slice(0, 10 * (VARIANTS + 1)))
            params = {"count": 2_000, "span_us": 10**11, "templates": 10, "variants": VARIANTS}
            rows = connection.sql(
                EVENTS, params=params | {"fresh": str(FRESH), "fresh_share": 0.0}
            ).to_arrow_table()
        store.upsert("query_event", rows)
        around = Surroundings(machine=read_machine(), clock=utc_now)
        first = run_pipeline(config, store, around)
        second = run_pipeline(config, store, around)
    assert second.outcome == "nothing_new", second
    return {"first_run_seconds": first.seconds, "nothing_new_ms": second.seconds * 1_000}


def exponent(results: list[dict[str, Any]]) -> float | None:
    """The slope of log(seconds) over log(events), by least squares."""
    points = [(math.log(one["events"]), math.log(one["seconds"])) for one in results]
    if len(points) < 2:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum(
        (x - mean_x) ** 2 for x, _ in points
    )


def pairwise(results: list[dict[str, Any]]) -> dict[str, float]:
    """The exponent between each size and the next."""
    return {
        f"{before['events']}-{after['events']}": round(exponent([before, after]) or 0.0, 3)
        for before, after in itertools.pairwise(results)
    }


def run(sizes: list[int], folder: Path) -> dict[str, Any]:
    environ = {**os.environ, "LAKEHELM_HOME": str(folder / "home")}
    config = load_config(ROOT / "config" / "lakehelm.yaml", environ).config
    for catalog in config.catalogs.values():
        catalog.warehouse.mkdir(parents=True, exist_ok=True)
    known = texts()
    results = [carry(config, known, count, folder) for count in sizes]
    compared = next((one for one in results if one["events"] == 1_000_000), results[-1])
    slope = exponent(results)
    steps = pairwise(results)
    largest = max([*steps.values(), *([slope] if slope is not None else [])], default=None)
    figures = {
        "events": compared["events"],
        "times_parsing_each": compared["times_parsing_each"],
        "times_parsing_each_in_cpu": compared["times_parsing_each_in_cpu"],
        "exponent": slope,
        "exponents": steps,
        "largest_exponent": largest,
        **nothing_new(config),
    }
    return {
        "benchmark": "pipeline",
        "master": config.spark.master,
        "templates": TEMPLATES,
        "sizes": results,
        "load_average": os.getloadavg()[0],
        "figures": figures,
        "limits": LIMITS,
        "ok": figures["times_parsing_each"] >= LIMITS["times_parsing_each"]
        and (largest is None or largest <= LIMITS["exponent"]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100000,1000000,5000000", help="events, with commas")
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    with tempfile.TemporaryDirectory(prefix="lakehelm-bench-") as folder:
        result = run(sizes, Path(folder))
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
