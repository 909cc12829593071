"""Maintenance of Iceberg tables: approved plans carried out, verified and reported.

    python -m spark_jobs.maintain --plan plan.json --report report.json

The plan is described in `spark_jobs.maintenance.plan`, the report in `….report`. It is
written anew after every action, so a run that is killed leaves what it has finished.
While it works it prints `progress <n>/<total> <action> <step>`; exit code 0 when the run came to
its end (each action has its outcome), 1 when it did not, 2 when the plan is wrong.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.maintenance.plan import RunPlan, read_plan
from spark_jobs.maintenance.report import Report
from spark_jobs.plan_file import PlanError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(argv: list[str] | None = None) -> int:
    """Run one plan and leave its report."""
    parser = argparse.ArgumentParser(description="Carry out maintenance of Iceberg tables.")
    parser.add_argument("--plan", type=Path, required=True, help="JSON file, see the module")
    parser.add_argument("--report", type=Path, required=True, help="where to leave the report")
    given = parser.parse_args(argv)
    try:
        plan = read_plan(given.plan)
    except PlanError as error:
        sys.stderr.write(f"maintain: {error}\n")
        return 2
    return 0 if execute(plan, given.report).outcome == "ok" else 1


def execute(plan: RunPlan, path: Path) -> Report:
    """Run a plan in a session of its own; an error is in the report, its traceback in the log."""
    from spark_jobs.maintenance.runner import steps  # noqa: PLC0415 a wrong plan needs no Spark
    from spark_jobs.pipeline.session import open_session  # noqa: PLC0415 as above

    report = Report(plan.run_id, path, total=1 + sum(steps(one) for one in plan.actions))
    report.write()
    try:
        report.say("start Spark")
        spark = open_session(plan, "lakehelm-maintenance")
        report.done = 1
        try:
            run(spark, plan, report)
        finally:
            spark.stop()
    except Exception as error:  # noqa: BLE001 the edge of the process: told in the report
        from spark_jobs.maintenance.outcome import first_line  # noqa: PLC0415 as above

        traceback.print_exc()
        report.error = first_line(error)
        report.write()
    return report


def run(spark: SparkSession, plan: RunPlan, report: Report) -> None:
    """Carry out the actions of a plan, one after another."""
    from spark_jobs.maintenance.runner import run_action  # noqa: PLC0415 as above
    from spark_jobs.maintenance.stop import Stop  # noqa: PLC0415 as above

    with Stop(spark, plan.stop_file, is_remote=plan.remote is not None) as stop:
        for request in plan.actions:
            run_action(spark, request, report, stop)
            report.write()
    report.outcome = "ok"
    report.write()


if __name__ == "__main__":
    sys.exit(main())
