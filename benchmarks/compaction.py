"""Compaction: our `compact_files` against Spark's default `CALL rewrite_data_files`.

    python benchmarks/compaction.py --json [--sizes 500,1500,5000] [--rounds 3]

Per size one generated table of small files (1,000 rows and some 50 KB each, ten days) is registered
under new names, so every run rewrites the very same files. Both ways run in one warm session with
the same settings, in alternating order, end to end: loading the table, planning, writing, commit.
Rows and content hash of both are compared with those of the generated table.

What makes the difference is told by a third way: our planning and commit, but groups written by
Spark. The exponent is the slope of log(seconds) over log(files). CPU seconds are those of the JVM
and of its Python workers: what the ratio is when nobody else uses the machine.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, its folder is on the path only
from lakehouse_core.config import load_config
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.maintenance import Kind, Plan, Stage
from lakehouse_core.domain.table import TableName
from lakehouse_core.pipeline.job import job_conf
from lakehouse_core.runtime.java import find_javas, java_for_spark
from lakehouse_core.runtime.spark import spark_environment
from spark_jobs.maintenance.plan import ActionRequest, RunPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
LIMITS = {"times_spark": 2.0}
ROWS_PER_FILE = 1_000  # Iceberg looks at a file's size after so many rows
DAYS = 10
ROWS = """
SELECT id, timestamp_micros(1790000000000000 + id * 1000000) AS at,
  date_add(DATE '2026-01-01', CAST(id DIV {per_day} AS INT)) AS day,
  substr(md5(CAST(id AS STRING)), 1, 16) AS session,
  concat('user-', pmod(xxhash64(id), 5000)) AS user_name,
  element_at(array('DE', 'FR', 'US', 'IT', 'PL'), CAST(pmod(hash(id), 5) + 1 AS INT)) AS country,
  CAST(pmod(hash(id, 1), 1000000) / 100 AS DECIMAL(12, 2)) AS amount, rand(7) AS score,
  rand(8) AS latency, rand(9) AS weight,
  concat('/shop/item/', pmod(xxhash64(id, 2), 20000)) AS path,
  array(CAST(pmod(hash(id), 7) AS STRING), 'web') AS tags
FROM range(0, {rows}, 1, 2)
"""


@dataclass(frozen=True)
class Run:
    """One compaction: how long, how much CPU, what came of it."""

    way: str
    seconds: float
    cpu_seconds: float
    files: int
    facts: dict[str, Any]


class Bench:
    """One session, tables of several sizes, several ways to compact them."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def generate(self, files: int) -> str:
        """A table of so many files; where its metadata is."""
        name, rows = f"lake.bench.base_{files}", files * ROWS_PER_FILE
        made = self.spark.sql(ROWS.format(rows=rows, per_day=-(-rows // DAYS)))
        writer = made.writeTo(name).using("iceberg").partitionedBy(made["day"])
        writer = writer.tableProperty("format-version", "2")
        # One byte: a new file whenever the size is looked at.
        writer = writer.option("target-file-size-bytes", "1").option("distribution-mode", "none")
        writer.create()
        log = self.spark.sql(
            f"SELECT file FROM {name}.metadata_log_entries ORDER BY timestamp"  # noqa: S608 ours
        )
        return str(log.collect()[-1][0])

    def copy(self, metadata: str) -> TableName:
        """The same table under another name."""
        name = TableName("lake", ("bench",), f"copy_{uuid.uuid4().hex}")
        self.spark.sql(
            "CALL lake.system.register_table(table => :name, metadata_file => :file)",
            args={"name": f"bench.{name.name}", "file": metadata},
        ).collect()
        return name

    def measure(self, way: str, table: TableName) -> Run:
        """Compact a table once."""
        ways: dict[str, Callable[[TableName], dict[str, Any]]] = {
            "spark": self._by_spark,
            "ours": self._by_us,
            "ours_written_by_spark": self._by_us,
        }
        if way == "ours_written_by_spark":
            self.spark.sql(
                f"ALTER TABLE {table} SET TBLPROPERTIES "
                "('write.parquet.bloom-filter-enabled.column.nothing' = 'true')"
            )
        cpu, started = cpu_seconds(), time.perf_counter()
        facts = ways[way](table)
        seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
        files = self.spark.sql(f"SELECT 1 FROM {table}.files").count()  # noqa: S608 our own name
        return Run(way, seconds, cpu, files, facts)

    def _by_spark(self, table: TableName) -> dict[str, Any]:
        rows = self.spark.sql(
            "CALL lake.system.rewrite_data_files(table => :name)",
            args={"name": f"bench.{table.name}"},
        ).collect()
        return {"input_files": rows[0]["rewritten_data_files_count"]}

    def _by_us(self, table: TableName) -> dict[str, Any]:
        from spark_jobs.maintenance.compact import compact_files  # noqa: PLC0415 needs pyspark
        from spark_jobs.maintenance.stop import Stop  # noqa: PLC0415 as above
        from spark_jobs.maintenance.table import LakeTable  # noqa: PLC0415 as above
        from spark_jobs.maintenance.work import Work  # noqa: PLC0415 as above

        opened = LakeTable.load(self.spark, table)
        stage = Stage(name="compact", procedure="compact_files", arguments={}, call="", estimate={})
        plan = Plan(
            kind=Kind.COMPACT,
            table_id=str(table),
            table_uuid=opened.metadata().uuid,
            base_snapshot_id=None,
            stages=(stage,),
            preconditions=(),
            input_bytes=0,
        )
        request = ActionRequest(
            action_id="bench", operation_id=uuid.uuid4().hex, lease_token=1, plan=plan
        )
        work = Work(self.spark, opened, request, Stop(self.spark, None))
        return compact_files(work, stage).facts

    def content(self, table: object) -> str:
        """What the rows of a table add up to."""
        from spark_jobs.maintenance.content import content_of  # noqa: PLC0415 needs pyspark

        found = content_of(self.spark.table(str(table)))
        return f"{found.rows} rows {found.hash}"

    def size(self, files: int, rounds: int) -> dict[str, Any]:
        """Both ways on tables of one size."""
        metadata = self.generate(files)
        base = f"lake.bench.base_{files}"
        count, size = self.spark.sql(
            f"SELECT count(*), sum(file_size_in_bytes) FROM {base}.files"  # noqa: S608 our own name
        ).collect()[0]
        expected = self.content(base)
        runs: list[Run] = []
        for number in range(rounds):
            ways = ("spark", "ours") if number % 2 == 0 else ("ours", "spark")
            for way in ways:
                table = self.copy(metadata)
                runs.append(self.measure(way, table))
                tell(f"{files}: {way} {runs[-1].seconds:.1f} s, {runs[-1].cpu_seconds:.1f} s CPU")
                if number == 0:
                    assert self.content(table) == expected, (way, table)
        third = self.measure("ours_written_by_spark", self.copy(metadata))
        tell(f"{files}: {third.way} {third.seconds:.1f} s, {third.cpu_seconds:.1f} s CPU")
        return {
            "files": int(count),
            "bytes": int(size),
            "content": expected,
            "runs": [asdict(one) for one in (*runs, third)],
            **summary(runs, third),
        }


def summary(runs: list[Run], third: Run) -> dict[str, float]:
    def middle(way: str, what: str) -> float:
        return statistics.median(getattr(one, what) for one in runs if one.way == way)

    spark, ours = middle("spark", "seconds"), middle("ours", "seconds")
    return {
        "spark_seconds": spark,
        "ours_seconds": ours,
        "times_spark": spark / ours,
        "times_spark_in_cpu": middle("spark", "cpu_seconds") / middle("ours", "cpu_seconds"),
        "ours_written_by_spark_seconds": third.seconds,
        "ours_plan_seconds": statistics.median(
            one.facts["plan_seconds"] for one in runs if one.way == "ours"
        ),
        "ours_write_seconds": statistics.median(
            one.facts["write_seconds"] for one in runs if one.way == "ours"
        ),
        "ours_commit_seconds": statistics.median(
            one.facts["commit_seconds"] for one in runs if one.way == "ours"
        ),
    }


def cpu_seconds() -> float:
    """CPU seconds of this process and of all that it has started and that still run."""
    total = 0.0
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def exponent(results: list[dict[str, Any]], what: str) -> float | None:
    """The slope of log(seconds) over log(files), by least squares."""
    points = [(math.log(one["files"]), math.log(one[what])) for one in results]
    if len(points) < 2:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum(
        (x - mean_x) ** 2 for x, _ in points
    )


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def open_spark(folder: Path) -> SparkSession:
    environ = {**os.environ, "LAKEHELM_HOME": str(folder / "home")}
    config = load_config(ROOT / "config" / "lakehelm.yaml", environ).config
    for catalog in config.catalogs.values():
        catalog.warehouse.mkdir(parents=True, exist_ok=True)
    (config.home / "run" / "spark-tmp").mkdir(parents=True, exist_ok=True)
    machine = read_machine()
    os.environ.update(spark_environment(java_for_spark(find_javas(machine))))
    from spark_jobs.pipeline.session import open_session  # noqa: PLC0415 after the environment

    # A long-lived JVM with all its compilers: what suits Spark's own way best.
    conf = job_conf(config, machine, rows=10_000_000)
    plan = RunPlan(run_id="bench", catalog="lake", actions=(), conf=conf)
    return open_session(plan, "lakehelm-bench")


def run(sizes: list[int], rounds: int, folder: Path) -> dict[str, Any]:
    spark = open_spark(folder)
    try:
        spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.bench")
        bench = Bench(spark)
        warm = bench.generate(100)
        for way in ("spark", "ours", "spark", "ours"):
            bench.measure(way, bench.copy(warm))
        results = [bench.size(files, rounds) for files in sizes]
        master = spark.sparkContext.master
    finally:
        spark.stop()
    largest = results[-1]
    figures = {
        "files": largest["files"],
        "times_spark": largest["times_spark"],
        "times_spark_in_cpu": largest["times_spark_in_cpu"],
        "exponent_spark": exponent(results, "spark_seconds"),
        "exponent_ours": exponent(results, "ours_seconds"),
    }
    return {
        "benchmark": "compaction",
        "master": master,
        "sizes": results,
        "load_average": os.getloadavg()[0],
        "figures": figures,
        "limits": LIMITS,
        "ok": figures["times_spark"] >= LIMITS["times_spark"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="500,1500,5000", help="files, with commas")
    parser.add_argument("--rounds", type=int, default=3, help="of both ways, per size")
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    with tempfile.TemporaryDirectory(prefix="lakehelm-bench-") as folder:
        result = run(sizes, given.rounds, Path(folder))
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
