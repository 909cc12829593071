"""A PySpark job of ours with a plan file and a report file: where it runs, how it is started."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse_core.runtime.artifacts import SPARK_JARS, ensure
from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.java import find_javas, java_for_spark
from lakehouse_core.runtime.jobs import run_job
from lakehouse_core.runtime.plan import source_root
from lakehouse_core.runtime.report import SilentReporter
from lakehouse_core.runtime.spark import lake_conf, spark_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta
    from pathlib import Path

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config
    from lakehouse_core.runtime.jobs import JobEnd, Progress

SHORT_JVM = "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
LONG_JVM = "-Duser.timezone=UTC -XX:+UseParallelGC"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFiles:
    """Where a run's files are."""

    plan: Path
    report: Path
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkJob:
    """A job and how it is followed.

    Attributes:
        module: what is run.
        files: its plan, report and log.
        timeout: how long it may take.
        on_progress: told of its progress lines.
        is_stopping: asked ten times a second whether to end it.
        variables: of its environment, beside Spark's own.
    """

    module: str
    files: JobFiles
    timeout: timedelta
    on_progress: Callable[[Progress], None] = lambda _: None
    is_stopping: Callable[[], bool] = lambda: False
    variables: Mapping[str, str] | None = None


def where_it_runs(config: Config) -> dict[str, str]:
    """The part of a plan that says where: a Spark Connect server, or a session of our own."""
    settings = config.spark
    return {"remote": settings.remote} if settings.remote else {"master": settings.master}


def session_conf(config: Config, machine: Machine, own: Mapping[str, str]) -> dict[str, str]:
    """Spark settings of a job's session; on a server its own settings count.

    Args:
        config: the configuration; its `spark.conf` has the last word.
        machine: where the jars are.
        own: what the job wants.
    """
    if config.spark.remote:
        return dict(config.spark.conf)
    shared = {
        "spark.driver.memory": f"{config.spark.driver_memory // 2**20}m",
        "spark.log.level": "ERROR",
    }
    return lake_conf(config, machine) | shared | dict(own) | config.spark.conf


def run_spark_job(config: Config, machine: Machine, job: SparkJob, plan: dict[str, Any]) -> JobEnd:
    """Write the plan, run the job to its end or to ours; an earlier report is gone before.

    Raises:
        NotInstalledError: there is no Java that Spark runs on.
    """
    files = job.files
    java = java_for_spark(find_javas(machine))
    ensure(machine, SPARK_JARS, SilentReporter())
    for folder in (files.plan.parent, config.home / "run" / "spark-tmp"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.report.unlink(missing_ok=True)
    files.plan.write_text(json.dumps(plan, indent=1), encoding="utf-8")
    files.plan.chmod(0o600)  # a catalog's settings may hold its secrets
    argv = (
        sys.executable, "-m", job.module, "--plan", str(files.plan), "--report", str(files.report),
    )  # fmt: skip
    env = spark_environment(java) | {"PYTHONUNBUFFERED": "1"} | dict(job.variables or {})
    return run_job(
        Command(argv=argv, env=env, cwd=source_root()),
        machine.variables,
        files.log,
        on_progress=job.on_progress,
        timeout=job.timeout,
        is_stopping=job.is_stopping,
    )
