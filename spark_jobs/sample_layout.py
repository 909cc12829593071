"""A sample of a table's rows, with the file and place each has, for the layout simulator.

    python -m spark_jobs.sample_layout --plan plan.json --report report.json

The plan: `run_id`, `catalog`, `table` (its id), `snapshot_id` (by default the current one), `rows`
(how many are wanted), `max_bytes` (of data files that may be read), `output` (a Parquet file), and
where it runs, as every job's plan. Rows are chosen evenly; of a table larger than `max_bytes`, from
files chosen evenly. The file and the place of a row are in `_file` and `_pos`; rows are in the
order of the files. Exit code 0 when the sample is there, 1 when it is not (the report says why), 2
when the plan is wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.table import TableName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEED = 7
PLACE = ("_file", "_pos")


class PlanError(Exception):
    """Raised when a plan file cannot be understood; names what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan:
    """What is asked for; see the module."""

    run_id: str
    catalog: str
    table: str
    rows: int
    max_bytes: int
    output: str
    snapshot_id: int | None = None
    conf: dict[str, str] = field(default_factory=dict)
    master: str = "local[2]"
    remote: str | None = None


@dataclass(slots=True, kw_only=True)
class SampleReport:
    """What was done."""

    run_id: str
    outcome: str = "failed"
    error: str | None = None
    snapshot_id: int | None = None
    rows: int = 0
    table_rows: int | None = None
    files: int | None = None
    files_read: int | None = None


def main(argv: list[str] | None = None) -> int:
    """Run one plan and leave its report."""
    parser = argparse.ArgumentParser(description="Sample the rows of an Iceberg table.")
    parser.add_argument("--plan", type=Path, required=True, help="JSON file, see the module")
    parser.add_argument("--report", type=Path, required=True, help="where to leave the report")
    given = parser.parse_args(argv)
    try:
        plan = read_plan(given.plan)
    except PlanError as error:
        sys.stderr.write(f"sample_layout: {error}\n")
        return 2
    report = SampleReport(run_id=plan.run_id)
    try:
        execute(plan, report)
    except Exception as error:  # noqa: BLE001 the edge of the process: told in the report
        from spark_jobs.maintenance.outcome import first_line  # noqa: PLC0415 needs pyspark

        traceback.print_exc()
        report.error = first_line(error)
    given.report.write_text(json.dumps(asdict(report)), encoding="utf-8")
    return 0 if report.outcome == "ok" else 1


def read_plan(path: Path) -> SamplePlan:
    """The plan from its file.

    Raises:
        PlanError: it is not there, or not a plan.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        plan = SamplePlan(**{name: value for name, value in raw.items() if value is not None})
        TableName.parse(plan.table)
    except OSError as error:
        raise PlanError(f"Plan file {path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise PlanError(f"The plan does not fit: {error}") from error
    return plan


def execute(plan: SamplePlan, report: SampleReport) -> None:
    """Sample in a session of its own."""
    from spark_jobs.pipeline.session import open_session  # noqa: PLC0415 a wrong plan needs no Spark

    print("progress 0/2 start Spark", flush=True)
    spark = open_session(plan, "lakehelm-layout-sample")
    try:
        print("progress 1/2 read", flush=True)
        run(spark, plan, report)
    finally:
        spark.stop()


def run(spark: SparkSession, plan: SamplePlan, report: SampleReport) -> None:
    """Write the sample of one table."""
    if plan.remote is None:
        _from_tasks(spark, plan, report)
    else:
        _from_table(spark, plan, report)
    report.outcome = "ok"


def _from_tasks(spark: SparkSession, plan: SamplePlan, report: SampleReport) -> None:
    """Through Iceberg's own tasks, so that files that are not wanted are not opened."""
    from spark_jobs.maintenance.table import LakeTable  # noqa: PLC0415 needs pyspark

    table = LakeTable.load(spark, TableName.parse(plan.table))
    snapshot_id = plan.snapshot_id or table.metadata().current_snapshot_id
    report.snapshot_id = snapshot_id
    if snapshot_id is None:
        _write(spark.table(table.full_name).limit(0), plan, report, with_places=False)
        report.table_rows = report.files = report.files_read = 0
        return
    tasks = table.tasks(snapshot_id)
    described = table.files_of(tasks)
    chosen = chosen_files([one["file-size-in-bytes"] for one in described], plan.max_bytes)
    report.files, report.files_read = len(described), len(chosen)
    report.table_rows = sum(one["record-count"] for one in described)
    rows_there = sum(described[place]["record-count"] for place in chosen)
    own = table.jvm.java.util.ArrayList()
    for place in chosen:
        own.add(tasks.get(place))
    with table.rows_of(own, {}) as (_, rows):
        _write(_sampled(rows, plan.rows, rows_there), plan, report)


def _from_table(spark: SparkSession, plan: SamplePlan, report: SampleReport) -> None:
    """On a Spark Connect server: by name alone, and only as many rows as may be read."""
    from spark_jobs.maintenance.table import full_name  # noqa: PLC0415 needs pyspark

    name = full_name(TableName.parse(plan.table))
    ((total, size, files),) = spark.sql(
        "SELECT sum(record_count), sum(file_size_in_bytes), count(*) "  # noqa: S608 quoted
        f"FROM {name}.files WHERE content = 0"
    ).collect()
    report.table_rows, report.files, report.files_read = int(total or 0), int(files), int(files)
    if size and size > plan.max_bytes:
        raise ValueError(
            f"{plan.table} has {size:,} bytes and only {plan.max_bytes:,} may be read: on a Spark "
            "Connect server files cannot be chosen; raise layout.sample_bytes"
        )
    report.snapshot_id = plan.snapshot_id
    at = {} if plan.snapshot_id is None else {"snapshot-id": str(plan.snapshot_id)}
    rows = spark.read.options(**at).table(name)
    _write(_sampled(rows, plan.rows, report.table_rows), plan, report)


def chosen_files(sizes: list[int], max_bytes: int) -> list[int]:
    """Places of the files to read: all, or some by lot that fit the bound; at least one."""
    if sum(sizes) <= max_bytes:
        return list(range(len(sizes)))
    places = list(range(len(sizes)))
    random.Random(SEED).shuffle(places)  # noqa: S311 a lot that is always the same
    chosen: list[int] = []
    total = 0
    for place in places:
        if chosen and total + sizes[place] > max_bytes:
            continue
        chosen.append(place)
        total += sizes[place]
    return sorted(chosen)


def _sampled(rows: DataFrame, wanted: int, there: int) -> DataFrame:
    share = wanted / max(1, there)
    placed = rows.select(*_readable(rows), *PLACE)
    return placed if share >= 1 else placed.sample(share, seed=SEED)


def _readable(rows: DataFrame) -> list[Any]:
    """Columns that can leave Spark; variants and geometries cannot."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 the name everybody knows it by

    foreign = ("variant", "geometry", "geography", "interval")
    return [
        F.col("`" + one.name.replace("`", "``") + "`")
        for one in rows.schema
        if not one.dataType.simpleString().startswith(foreign)
    ]


def _write(
    rows: DataFrame, plan: SamplePlan, report: SampleReport, *, with_places: bool = True
) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 a wrong plan needs no Arrow

    found = rows.toArrow()
    if with_places:
        found = found.sort_by([(name, "ascending") for name in PLACE])
    report.rows = found.num_rows
    target = Path(plan.output)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_suffix(".part")
    pq.write_table(found, aside, compression="zstd")
    aside.rename(target)


if __name__ == "__main__":
    sys.exit(main())
