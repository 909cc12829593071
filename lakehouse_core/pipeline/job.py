"""The Spark job of a run: its plan file, its process, its report."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse_core.pipeline.errors import PipelineError, PipelineStoppedError
from lakehouse_core.runtime import logs
from lakehouse_core.runtime.artifacts import SPARK_JARS, ensure
from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.java import find_javas, java_for_spark
from lakehouse_core.runtime.jobs import run_job
from lakehouse_core.runtime.plan import source_root
from lakehouse_core.runtime.report import SilentReporter
from lakehouse_core.runtime.spark import lake_conf, spark_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config
    from lakehouse_core.pipeline.landing import Export, Landing
    from lakehouse_core.runtime.jobs import Progress

MODULE = "spark_jobs.telemetry_pipeline"
SMALL_ROWS = 50_000
# Up to here compiling hot loops a second time costs more than it brings.
SHORT_JVM_ROWS = 2_000_000
ROWS_PER_PARTITION = 250_000
MOST_PARTITIONS = 64
# Few rows: compiling, adapting and spreading a plan costs more than running it.
FOR_FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
}
SHORT_JVM = "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
LONG_JVM = "-Duser.timezone=UTC -XX:+UseParallelGC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Where a run's files are."""

    plan: Path
    report: Path
    log: Path


def job_files(config: Config) -> Job:
    """The files of the pipeline's job."""
    folder = config.home / "run" / "pipeline"
    return Job(
        plan=folder / "plan.json",
        report=folder / "report.json",
        log=config.home / "logs" / "pipeline.log",
    )


def plan_document(
    config: Config,
    machine: Machine,
    landing: Landing,
    exports: Sequence[Export],
    rest: dict[str, Any],
) -> dict[str, Any]:
    """The plan of a run, see `spark_jobs.pipeline.plan`.

    Args:
        config: the configuration.
        machine: where the jars are.
        landing: where the exports are.
        exports: what to carry on.
        rest: `run_id`, `after`, `cursor` and `care`.
    """
    settings = config.spark
    rows = sum(export.rows for export in exports)
    where: dict[str, Any] = (
        {"remote": settings.remote} if settings.remote else {"master": settings.master}
    )
    return {
        "catalog": config.pipeline.catalog,
        "namespace": config.pipeline.namespace,
        "conf": dict(settings.conf) if settings.remote else job_conf(config, machine, rows),
        "exports": [_export(landing, export) for export in exports],
        **where,
        **rest,
    }


def job_conf(config: Config, machine: Machine, rows: int) -> dict[str, str]:
    """Spark settings for a session of our own that works on so many rows."""
    is_small = rows <= SMALL_ROWS
    partitions = min(MOST_PARTITIONS, max(4, rows // ROWS_PER_PARTITION))
    own = {
        "spark.driver.memory": f"{config.spark.driver_memory // 2**20}m",
        "spark.driver.extraJavaOptions": SHORT_JVM if rows <= SHORT_JVM_ROWS else LONG_JVM,
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.autoBroadcastJoinThreshold": str(32 * 2**20),
        "spark.log.level": "ERROR",
    }
    return lake_conf(config, machine) | own | (FOR_FEW_ROWS if is_small else {}) | config.spark.conf


def run_spark(
    config: Config,
    machine: Machine,
    plan: dict[str, Any],
    *,
    on_progress: Callable[[Progress], None],
    is_stopping: Callable[[], bool],
) -> dict[str, Any]:
    """Run a plan and return its report.

    Raises:
        PipelineStoppedError: its time was up, or this process is stopping; nothing is lost.
        PipelineError: it failed; says where and why.
        NotInstalledError: there is no Java that Spark runs on.
    """
    files = job_files(config)
    java = java_for_spark(find_javas(machine))
    ensure(machine, SPARK_JARS, SilentReporter())
    for folder in (files.plan.parent, config.home / "run" / "spark-tmp"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.report.unlink(missing_ok=True)
    files.plan.write_text(json.dumps(plan, indent=1), encoding="utf-8")
    argv = (sys.executable, "-m", MODULE, "--plan", str(files.plan), "--report", str(files.report))
    env = spark_environment(java) | {"PYTHONUNBUFFERED": "1"}
    end = run_job(
        Command(argv=argv, env=env, cwd=source_root()),
        machine.variables,
        files.log,
        on_progress=on_progress,
        timeout=config.pipeline.timeout,
        is_stopping=is_stopping,
    )
    if end.stopped is not None:
        raise PipelineStoppedError(
            f"The pipeline was stopped: {end.stopped}. What was exported stays in the landing "
            "folder and is carried on by the next run"
        )
    return _report(files, end.exit_code)


def _report(files: Job, exit_code: int | None) -> dict[str, Any]:
    try:
        report: dict[str, Any] = json.loads(files.report.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PipelineError(
            f"The pipeline's job ended with exit code {exit_code} and left no report. The end of "
            f"{files.log}:\n{logs.tail(files.log)}"
        ) from None
    if report["outcome"] != "ok":
        stage = report["stages"][-1]["name"] if report["stages"] else "start"
        raise PipelineError(
            f"The pipeline failed at stage {stage}: {report['error']} (log: {files.log})"
        )
    return report


def _export(landing: Landing, export: Export) -> dict[str, Any]:
    folder = landing.folder_of(export.id)
    return {
        "id": export.id,
        "exported_at": export.exported_at,
        "tables": {
            name: {
                "files": [str(folder / file) for file in part.files],
                "rows": part.rows,
                "days": list(part.days),
            }
            for name, part in export.tables.items()
        },
    }
