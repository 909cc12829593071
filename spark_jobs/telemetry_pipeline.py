"""Query history as Iceberg tables: bronze → silver → gold in the `ops` namespace.

    python -m spark_jobs.telemetry_pipeline --plan plan.json --report report.json

The plan is described in `spark_jobs.pipeline.plan`, the report in `spark_jobs.pipeline.progress`.
While it works it prints `progress <n>/<total> <stage>`; exit code 0 when all stages are done, 1
when one failed (the report says why), 2 when the plan is wrong.

| table | what | key | partition |
|---|---|---|---|
| query_event_bronze, snapshot_commit_bronze | exports as they came | - | day of arrival |
| query_event | one row per query | engine_id, query_id | day submitted |
| snapshot_commit | one row per commit of a table | table_id, snapshot_id | month |
| sql_text | one row per distinct text, with its literals | text_id | - |
| query_template, column_usage | tables, columns and roles of a template | shape_id, … | - |
| template_hour | profile of a template on an engine | hour_at, template_id, engine_id | day |
| workload_hour | the same per user, source and group | … | day |
| usage_day | columns by table, role and engine | day, table_name, column_name, … | day |
| literal_day | literals in conditions on a column | day, table_name, column_name, … | day |
| commit_hour | commits, files and bytes per table | hour_at, table_id | day |
| charge | what an hour of an engine cost | hour_at, engine_id, … | month |
| cost_allocation, cost_hour, cost_query | its split, see `spark_jobs.attribution` | … | day |
| cost_label | whose cost it is | label_id | - |
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path

from spark_jobs.pipeline.plan import Plan, read_plan
from spark_jobs.pipeline.progress import Progress, Report
from spark_jobs.plan_file import PlanError


def main(argv: list[str] | None = None) -> int:
    """Run one plan and leave its report."""
    parser = argparse.ArgumentParser(description="Carry exported telemetry through the pipeline.")
    parser.add_argument("--plan", type=Path, required=True, help="JSON file, see the module")
    parser.add_argument("--report", type=Path, required=True, help="where to leave the report")
    given = parser.parse_args(argv)
    try:
        plan = read_plan(given.plan)
    except PlanError as error:
        sys.stderr.write(f"telemetry_pipeline: {error}\n")
        return 2
    report = execute(plan)
    report.write(given.report)
    return 0 if report.outcome == "ok" else 1


def execute(plan: Plan) -> Report:
    """Run a plan in a session of its own; an error is in the report, its traceback in the log."""
    from spark_jobs.pipeline.run import STAGES, run  # noqa: PLC0415 a wrong plan needs no Spark
    from spark_jobs.pipeline.session import open_session  # noqa: PLC0415 as above

    started = time.monotonic()
    report = Report(run_id=plan.run_id)
    progress = Progress(report, STAGES + 1)
    try:
        with progress.stage("start"):
            spark = open_session(plan)
        try:
            run(spark, plan, progress)
            report.outcome = "ok"
        finally:
            spark.stop()
    except Exception as error:  # noqa: BLE001 the edge of the process: told in the report
        traceback.print_exc()
        report.error = first_line(error)
    report.seconds = round(time.monotonic() - started, 3)
    return report


def first_line(error: BaseException) -> str:
    """What an error says before its stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:1_000] if lines else type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
