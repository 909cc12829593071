"""The Spark job of a run: its plan file, its process, its report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lakehouse_core.config.models import SnowflakeEngine
from lakehouse_core.pipeline.errors import PipelineError, PipelineStoppedError
from lakehouse_core.runtime import logs
from lakehouse_core.runtime.spark_job import (
    LONG_JVM,
    SHORT_JVM,
    JobFiles,
    SparkJob,
    run_spark_job,
    session_conf,
    where_it_runs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config
    from lakehouse_core.pipeline.landing import Export, Landing
    from lakehouse_core.runtime.jobs import Progress
from lakehouse_core.sql.spelling import linked_databases

MODULE = "spark_jobs.telemetry_pipeline"
SMALL_ROWS = 50_000
# Up to here compiling hot loops a second time costs more than it brings.
SHORT_JVM_ROWS = 500_000
ROWS_PER_PARTITION = 250_000
MOST_PARTITIONS = 64
# Few rows: compiling, adapting and spreading a plan costs more than running it.
FOR_FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
}


def job_files(config: Config) -> JobFiles:
    """The files of the pipeline's job."""
    folder = config.home / "run" / "pipeline"
    return JobFiles(
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
        rest: `run_id`, `after`, `cursor`, `columns` and `care`.
    """
    rows = sum(export.rows for export in exports)
    return {
        "catalog": config.pipeline.catalog,
        "namespace": config.pipeline.namespace,
        "conf": job_conf(config, machine, rows),
        "databases": _databases(config),
        "exports": [_export(landing, export) for export in exports],
        **where_it_runs(config),
        **rest,
    }


def _databases(config: Config) -> dict[str, str]:
    """Our catalogs by what engines that fold names to upper case call them."""
    found: dict[str, str] = {}
    for engine in config.engines.values():
        if isinstance(engine, SnowflakeEngine):
            found |= linked_databases(engine.catalog, engine.lake_database)
    return found


def job_conf(config: Config, machine: Machine, rows: int) -> dict[str, str]:
    """Spark settings for a session of our own that works on so many rows."""
    is_small = rows <= SMALL_ROWS
    partitions = min(MOST_PARTITIONS, max(4, rows // ROWS_PER_PARTITION))
    own = {
        "spark.driver.extraJavaOptions": SHORT_JVM if rows <= SHORT_JVM_ROWS else LONG_JVM,
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.autoBroadcastJoinThreshold": str(32 * 2**20),
    }
    return session_conf(config, machine, own | (FOR_FEW_ROWS if is_small else {}))


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
    job = SparkJob(
        module=MODULE,
        files=files,
        timeout=config.pipeline.timeout,
        on_progress=on_progress,
        is_stopping=is_stopping,
    )
    end = run_spark_job(config, machine, job, plan)
    if end.stopped is not None:
        raise PipelineStoppedError(
            f"The pipeline was stopped: {end.stopped}. What was exported stays in the landing "
            "folder and is carried on by the next run"
        )
    return _report(files, end.exit_code)


def _report(files: JobFiles, exit_code: int | None) -> dict[str, Any]:
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
