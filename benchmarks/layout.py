"""The layout advisor: what it predicts, what a rewrite by Spark then really reads, what it missed.

    python benchmarks/layout.py --json [--rows 1500000] [--shapes …] [--large 10000]

One generated table is registered under a new name for every rewrite, so that each starts from the
same files. Per workload shape: sample by the Spark job, advise, rewrite through the maintenance
stages, plan the same conditions against the new manifests.

- error: predicted bytes over those planned after the rewrite, less 1
- template_error: the same, of the template that is farthest off
- read: bytes planned after over bytes planned before
- regret: cost of what is advised, which may be to leave the table, over the best of the present
  layout, all single sorts, all z-orders and Hilbert orders of two or three columns; on the
  simulator for every shape, on really rewritten tables for those in REALLY
- not_advised: shapes that a layout would serve and that got none; there must be no such shape
- large: seconds for advice with 1,000 templates on a table of so many files, sampling included
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, its folder is on the path only
from benchmarks.compaction import ROOT, tell
from benchmarks.layout_shapes import Shape, many, shapes
from lakehouse_core.catalog.measure import measure
from lakehouse_core.config import load_config
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.layout import PRESENT
from lakehouse_core.domain.table import LakeTable as TableRow
from lakehouse_core.domain.table import TableName
from lakehouse_core.layout.advise import Setting, advise
from lakehouse_core.layout.candidates import exhaustive
from lakehouse_core.layout.decision import Pricing
from lakehouse_core.layout.evidence import texts_per_template, understand
from lakehouse_core.layout.planned import LakeFiles
from lakehouse_core.layout.simulate import replay, simulate
from lakehouse_core.layout.usable import Columns
from lakehouse_core.layout.workload import Pattern, Reader, Workload
from lakehouse_core.maintenance.plan import build_plan
from lakehouse_core.pipeline.job import job_conf
from lakehouse_core.recommend.layout_advisor import scan_prices
from lakehouse_core.recommend.layout_sample import Sampler
from lakehouse_core.runtime.java import find_javas, java_for_spark
from lakehouse_core.runtime.spark import spark_environment
from spark_jobs.maintenance.plan import ActionRequest, RunPlan
from spark_jobs.sample_layout import SamplePlan, SampleReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.layout import Layout
    from lakehouse_core.layout.sample import Sample

LIMITS = {"error": 0.10, "read_selective": 0.20, "regret": 1.05, "large_seconds": 60.0}
TEXTS = 16
REALLY = ("two engines", "range and key")
ROWS = """
SELECT pmod(xxhash64(id), {rows} * 10) AS order_id,
  CAST(pmod(xxhash64(id, 1), 50000) AS INT) AS customer,
  element_at(array('DE','AT','BE','CZ','DK','ES','FI','FR','IE','IT','NL','PL','PT','SE','UK','US'),
    CAST(least(16, 1 + floor(16 * pow(rand(3), 3))) AS INT)) AS country,
  timestamp_micros(1790000000000000 + CAST(rand(4) * 7776000000000 AS BIGINT)) AS at,
  CAST(pmod(xxhash64(id, 5), 1000000) / 100 AS DECIMAL(12, 2)) AS amount,
  concat('sku-', lpad(CAST(pmod(xxhash64(id, 6), 20000) AS STRING), 6, '0')) AS sku,
  concat('https://shop.example.com/item/', pmod(xxhash64(id, 7), 20000)) AS url,
  CASE WHEN rand(8) < 0.03 THEN CAST(pmod(xxhash64(id, 8), 900) AS INT) END AS coupon,
  CAST(least(20000, floor(pow(1 - rand(9), -0.9))) AS INT) AS seller,
  CAST(pmod(xxhash64(id, 1), 50000) DIV 10 + pmod(xxhash64(id, 11), 20) AS INT) AS household,
  rand(12) AS score, substr(md5(CAST(id AS STRING)), 1, 24) AS session
FROM range(0, {rows}, 1, 4)
"""


class Bench:
    """One session, one table, many layouts of it."""

    def __init__(self, spark: SparkSession, config: Config, target: int) -> None:
        self.spark = spark
        self.config = config
        self.target = target
        self.files = LakeFiles(config)
        self.sampler = _InProcess(config, read_machine(), self.files, spark)

    def generate(self, rows: int) -> str:
        """The table of all shapes; where its metadata is."""
        self.spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.bench")
        made = self.spark.sql(ROWS.format(rows=rows))
        writer = (
            made.writeTo("lake.bench.base").using("iceberg").tableProperty("format-version", "2")
        )
        writer.option("target-file-size-bytes", str(self.target)).option(
            "distribution-mode", "none"
        ).create()
        return self._metadata("lake.bench.base")

    def generate_bucketed(self) -> str:
        """The same rows in partitions by hash; where its metadata is."""
        self.spark.sql(
            "CREATE TABLE lake.bench.bucketed USING iceberg PARTITIONED BY (bucket(16, customer)) "  # noqa: S608 ours
            f"TBLPROPERTIES ('write.target-file-size-bytes' = '{self.target}', "
            "'write.distribution-mode' = 'none', 'write.spark.fanout.enabled' = 'true') "
            "AS SELECT * FROM lake.bench.base"
        )
        return self._metadata("lake.bench.bucketed")

    def _metadata(self, name: str) -> str:
        log = self.spark.sql(f"SELECT file FROM {name}.metadata_log_entries ORDER BY timestamp")  # noqa: S608 ours
        return str(log.collect()[-1][0])

    def copy(self, metadata: str) -> str:
        """The same table under another name."""
        name = f"copy_{uuid.uuid4().hex}"
        self.spark.sql(
            "CALL lake.system.register_table(table => :name, metadata_file => :file)",
            args={"name": f"bench.{name}", "file": metadata},
        ).collect()
        return f"lake.bench.{name}"

    def look(self, table: str) -> tuple[Any, Columns, Sample]:
        """Its files, columns and a sample."""
        metadata = self.files.metadata(table)
        reading = self.files.read(table, metadata)
        columns = Columns.of(metadata)
        return reading, columns, self.sampler.sample(reading, columns)

    def rewrite(self, table: str, layout: Layout, target: int) -> float:
        """Through the stages of the maintenance job; seconds."""
        from spark_jobs.maintenance.runner import STAGES  # noqa: PLC0415 needs pyspark
        from spark_jobs.maintenance.stop import Stop  # noqa: PLC0415 as above
        from spark_jobs.maintenance.table import LakeTable  # noqa: PLC0415 as above
        from spark_jobs.maintenance.work import Work  # noqa: PLC0415 as above

        now = datetime.now(UTC)
        reading = self.files.read(table, self.files.metadata(table))
        metrics = measure(reading, small_file_bytes=2**20, collected_at=now)
        name = TableName.parse(table)
        row = TableRow(
            table_id=table, catalog="lake", namespace="bench", table_name=name.name, seen_at=now,
            table_uuid=reading.metadata.table_uuid,
        )  # fmt: skip
        given: dict[str, Any] = {"columns": list(layout.columns), "target_file_bytes": target}
        if layout.primary:
            given["primary"] = list(layout.primary)
        plan = build_plan(layout.action, row, metrics, self.config, parameters=given)
        request = ActionRequest(
            action_id="bench", operation_id=uuid.uuid4().hex, lease_token=1, plan=plan
        )
        started = time.perf_counter()
        work = Work(self.spark, LakeTable.load(self.spark, name), request, Stop(self.spark, None))
        for number, stage in enumerate(plan.stages):
            work.stage = number
            STAGES[stage.procedure](work, stage)
        return time.perf_counter() - started

    def planned(self, table: str, workload: Workload) -> Any:
        """What the workload reads of the table as it is."""
        reading = self.files.read(table, self.files.metadata(table))
        return replay(
            workload.conditions,
            self.files.bounds(reading, list(Columns.of(reading.metadata).types)),
        )

    def workload(self, table: str, columns: Columns, shape: Shape, seed: int) -> Workload:
        """The shape as evidence: texts with literals by lot, understood."""
        rng = np.random.default_rng(seed)
        texts: list[dict[str, Any]] = []
        readers: dict[str, Reader] = {}
        each = min(TEXTS, sum(texts_per_template(len(shape.parts))))
        for number, (engine, runs, clause) in enumerate(shape.parts):
            template = f"{shape.name} {number}"
            readers[template] = Reader(engine_id=engine, template_id=template, runs=runs)
            texts += [
                {
                    "template_id": template,
                    "sql_text": f"SELECT count(*) FROM {table} WHERE {clause(rng)}",  # noqa: S608 ours
                    "dialect": engine,
                    "default_catalog": None,
                    "default_namespace": None,
                    "runs": 1,
                    "is_frequent": True,
                    "other_runs": None,
                }
                for _ in range(each)
            ]
        found = understand(table, columns, texts, {name: one.runs for name, one in readers.items()})
        patterns = tuple(
            Pattern(template_id=name, template=name, readers=(one,), scans=found.scans[name])
            for name, one in readers.items()
        )
        return Workload(
            table_id=table, patterns=patterns, unusable=tuple(found.unusable), observed_days=30.0
        )

    def setting(self, **more: Any) -> Setting:
        """Prices of the configuration; files of one size."""
        given: dict[str, Any] = {
            "prices": scan_prices(self.config),
            "target_bytes": self.target,
            "least_bytes": self.target,
        }
        return Setting(**given | more)

    def shape(self, metadata: str, shape: Shape, seed: int, *, is_real: bool) -> dict[str, Any]:
        """Advise, rewrite and measure one shape."""
        table = self.copy(metadata)
        reading, columns, sample = self.look(table)
        workload = self.workload(table, columns, shape, seed)
        bounds = self.files.bounds(reading, list(sample.spaces))
        started = time.perf_counter()
        advice = advise(sample, bounds, workload, self.setting())
        seconds = time.perf_counter() - started
        before = replay(workload.conditions, bounds)
        pricing = Pricing(workload, self.setting().prices, before)
        found: dict[str, Any] = {
            "shape": shape.name,
            "advised": None if advice.layout is None else str(advice.layout),
            "advise_seconds": round(seconds, 2),
            "unusable": [one.reason for one in advice.unusable],
        }
        found |= self._regret(sample, workload, pricing, advice, before)
        if advice.layout is None or advice.prediction is None:
            return found | {"reason": advice.reason}
        found["rewrite_seconds"] = round(self.rewrite(table, advice.layout, advice.target_bytes), 1)
        after = self.planned(table, workload)
        runs = {one.template_id: one.runs for one in workload.patterns}

        def total(replayed: Any) -> float:
            return sum(
                runs[one.template_id] * pricing.per_run(one, replayed)[0]
                for one in workload.patterns
            )

        predicted, realised = advice.prediction.bytes_then, total(after)
        found |= {
            "predicted_bytes": round(predicted),
            "realised_bytes": round(realised),
            "error": round(predicted / realised - 1, 4),
            "template_error": round(_template_error(advice, workload, pricing, after), 4),
            "error_bar": round(advice.prediction.bytes_high / predicted - 1, 4),
            "read": round(realised / total(before), 4),
            "files_after": after.total_files,
        }
        if is_real:
            found |= self._real_regret(metadata, workload, pricing, advice, (before, after))
        return found

    def _others(self, sample: Sample, advice: Any) -> list[Layout]:
        names = [one.column for one in advice.columns if one.cost_share > 0]
        return list(exhaustive(names, sample.spaces))

    def _regret(
        self, sample: Sample, workload: Workload, pricing: Pricing, advice: Any, before: Any
    ) -> dict[str, Any]:
        advised = advice.layout or PRESENT
        costs = {
            layout: pricing.cost(
                simulate(layout, sample, workload.conditions, target_bytes=advice.target_bytes)
            )
            for layout in {*self._others(sample, advice), advised} - {PRESENT}
        }
        costs[PRESENT] = pricing.cost(before)
        best = min(costs, key=lambda one: costs[one])
        return {
            "regret": round(costs[advised] / costs[best], 4),
            "best_simulated": str(best),
            "searched": len(costs),
        }

    def _real_regret(
        self,
        metadata: str,
        workload: Workload,
        pricing: Pricing,
        advice: Any,
        replays: tuple[Any, Any],
    ) -> dict[str, Any]:
        before, after = replays
        _, _, sample = self.look(self.copy(metadata))
        costs = {str(PRESENT): pricing.cost(before), str(advice.layout): pricing.cost(after)}
        for layout in self._others(sample, advice):
            if str(layout) not in costs:
                copy = self.copy(metadata)
                self.rewrite(copy, layout, advice.target_bytes)
                costs[str(layout)] = pricing.cost(self.planned(copy, workload))
                tell(f"  {layout}: {costs[str(layout)]:.6g}")
        best = min(costs, key=lambda one: costs[one])
        return {
            "real_regret": round(costs[str(advice.layout)] / costs[best], 4),
            "real_best": best,
            "really_rewritten": len(costs),
        }

    def large(self, files: int, templates: int) -> dict[str, Any]:
        """Advice for a table of many files and a workload of many templates."""
        rows = files * 1_000
        made = self.spark.sql(ROWS.format(rows=rows)).select(
            "order_id", "customer", "country", "at", "sku", "coupon", "seller"
        )
        made = made.repartition(4)
        writer = (
            made.writeTo("lake.bench.large").using("iceberg").tableProperty("format-version", "2")
        )
        # One byte: a new file whenever the size is looked at, every 1,000 rows.
        writer.option("target-file-size-bytes", "1").option("distribution-mode", "none").create()
        table = "lake.bench.large"
        shape = Shape(
            "large",
            tuple(
                (("trino", "duckdb", "spark")[n % 3], 20 + n % 7, one)
                for n, one in enumerate(many(templates))
            ),
        )
        started = time.perf_counter()
        reading, columns, sample = self.look(table)
        sampled = time.perf_counter() - started
        workload = self.workload(table, columns, shape, 1)
        understood = time.perf_counter() - started
        bounds = self.files.bounds(reading, list(sample.spaces))
        size = int(sample.table_bytes / files)
        setting = replace(self.setting(), target_bytes=size, least_bytes=size)
        advice = advise(sample, bounds, workload, setting)
        return {
            "files": len(bounds.sizes),
            "templates": len(workload.patterns),
            "conditions": len(workload.conditions),
            "sample_seconds": round(sampled, 1),
            "understand_seconds": round(understood - sampled, 1),
            "seconds": round(time.perf_counter() - started, 1),
            "advised": None if advice.layout is None else str(advice.layout),
        }


def _template_error(advice: Any, workload: Workload, pricing: Pricing, after: Any) -> float:
    """How far the template that is farthest off is off."""
    predicted = {row.template_id: row.bytes_then for row in advice.rows}
    errors = [
        predicted[one.template_id] / read - 1
        for one in workload.patterns
        if (read := pricing.per_run(one, after)[0]) > 0
    ]
    return max(errors, key=abs, default=0.0)


class _InProcess(Sampler):
    """The sample job's own code in the session at hand, so that no second JVM is started."""

    def __init__(self, config: Config, machine: Any, files: LakeFiles, spark: SparkSession) -> None:
        super().__init__(config, machine, files)
        self._spark = spark

    def _take(self, reading: Any, target: Path) -> None:
        from spark_jobs.sample_layout import run  # noqa: PLC0415 needs pyspark

        plan = SamplePlan(
            run_id="bench", catalog="lake", table=reading.table_id, output=str(target),
            rows=self._config.layout.sample_rows, max_bytes=self._config.layout.sample_bytes,
            snapshot_id=reading.metadata.current.snapshot_id,
        )  # fmt: skip
        run(self._spark, plan, SampleReport(run_id="bench"))


def open_bench(folder: Path, target: int, sample_rows: int) -> Bench:
    environ = {
        **os.environ,
        "LAKEHELM_HOME": str(folder / "home"),
        "LAKEHELM__LAYOUT__SAMPLE_ROWS": str(sample_rows),
    }
    config = load_config(ROOT / "config" / "lakehelm.yaml", environ).config
    for catalog in config.catalogs.values():
        catalog.warehouse.mkdir(parents=True, exist_ok=True)
    (config.home / "run" / "spark-tmp").mkdir(parents=True, exist_ok=True)
    machine = read_machine()
    os.environ.update(spark_environment(java_for_spark(find_javas(machine))))
    from spark_jobs.pipeline.session import open_session  # noqa: PLC0415 after the environment

    conf = job_conf(config, machine, rows=10_000_000)
    session = open_session(
        RunPlan(run_id="bench", catalog="lake", actions=(), conf=conf), "lakehelm-bench"
    )
    return Bench(session, config, target)


def run(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    bench = open_bench(folder, given.target, given.sample)
    results, large = [], None
    try:
        metadata = bench.generate(given.rows)
        (size, count) = bench.spark.sql(
            "SELECT sum(file_size_in_bytes), count(*) FROM lake.bench.base.files"
        ).collect()[0]
        tell(f"{given.rows:,} rows, {size:,} bytes, {count} files")
        wanted = given.shapes.split(",") if given.shapes else None
        bucketed = bench.generate_bucketed()
        for seed, shape in enumerate(shapes(given.rows)):
            if wanted is None or shape.name in wanted:
                is_real = shape.name in REALLY and not given.quick
                of_table = bucketed if shape.is_bucketed else metadata
                results.append(bench.shape(of_table, shape, seed, is_real=is_real))
                tell(json.dumps(results[-1]))
        if given.large:
            large = bench.large(given.large, 1_000)
            tell(json.dumps(large))
    finally:
        bench.spark.stop()
    return {
        "benchmark": "layout",
        "rows": given.rows,
        "bytes": int(size),
        "sample_rows": given.sample,
        "shapes": results,
        "large": large,
        "load_average": os.getloadavg()[0],
        **verdict(results, large, given.rows),
    }


def verdict(
    results: list[dict[str, Any]], large: dict[str, Any] | None, rows: int
) -> dict[str, Any]:
    """The figures, and whether they are within the limits."""
    known = {one.name: one for one in shapes(rows)}
    done = [one for one in results if one["advised"] is not None]
    errors = [abs(one["error"]) for one in done]
    selective = [one["read"] for one in done if known[one["shape"]].is_selective]
    regrets = [one[name] for one in results for name in ("regret", "real_regret") if name in one]
    useless = [one["advised"] for one in results if known[one["shape"]].is_useless]
    missed = [
        o["shape"] for o in results if o["advised"] is None and not known[o["shape"]].is_useless
    ]
    figures = {
        "worst_error": max(errors, default=None),
        "worst_template_error": max((abs(one["template_error"]) for one in done), default=None),
        "worst_read_selective": max(selective, default=None),
        "worst_regret": max(regrets, default=None),
        "proposed_without_use": sum(one is not None for one in useless),
        "not_advised": missed,
        "large_seconds": large["seconds"] if large else None,
    }
    ok = (
        max(errors, default=0) <= LIMITS["error"]
        and max(selective, default=0) <= LIMITS["read_selective"]
        and max(regrets, default=1) <= LIMITS["regret"]
        and not figures["proposed_without_use"]
        and not missed
        and (large is None or large["seconds"] <= LIMITS["large_seconds"])
    )
    return {"figures": figures, "limits": LIMITS, "ok": bool(ok)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_500_000)
    parser.add_argument("--target", type=int, default=3 * 2**19, help="bytes of a file")
    parser.add_argument("--sample", type=int, default=150_000, help="rows of the sample")
    parser.add_argument("--shapes", help="only these, with commas")
    parser.add_argument(
        "--quick", action="store_true", help="no layout but the advised is rewritten"
    )
    parser.add_argument(
        "--large", type=int, default=0, help="files of the table of 1,000 templates"
    )
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakehelm-bench-") as folder:
        result = run(given, Path(folder))
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
