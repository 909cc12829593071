"""Building the demo lakehouse once, with a PySpark job, before anything serves it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import LakehouseError, Terminal
from lakehouse_core.runtime import logs
from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.jobs import run_job
from lakehouse_core.runtime.plan import job_file
from lakehouse_core.runtime.secrets import write_private
from lakehouse_core.runtime.spark import required_engine, spark_conf, spark_environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config
    from lakehouse_core.runtime.java import Java
    from lakehouse_core.runtime.report import Reporter

TASK = "Demo lake"


class DemoLakeError(Terminal, LakehouseError):
    """Raised when the demo lakehouse could not be built; carries the end of its log."""


def marker_path(config: Config) -> Path:
    """The file that says which demo lake was built."""
    return config.home / "lake" / "BUILT.json"


@dataclass(frozen=True, slots=True)
class Size:
    """What decides which rows the demo lake has."""

    scale: float
    seed: int

    def __str__(self) -> str:
        return f"scale {self.scale:g} and seed {self.seed}"


def built_size(config: Config) -> Size | None:
    """Of the demo lake that is there; None when there is none, or only half of one."""
    try:
        marker = json.loads(marker_path(config).read_text(encoding="utf-8"))
        return Size(float(marker["scale"]), int(marker["seed"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def other_lake(config: Config) -> Size | None:
    """Of the demo lake that is there, when it is another than the one configured."""
    built = built_size(config)
    wanted = Size(config.demo.scale, config.demo.seed)
    return None if built == wanted else built


def demo_lake_command(config: Config, machine: Machine, java: Java) -> Command:
    """The job with its plan file written."""
    engine = required_engine(config)
    plan = {
        "conf": spark_conf(config, machine),
        "master": engine.master,
        "catalog": engine.catalog,
        "scale": config.demo.scale,
        "seed": config.demo.seed,
        "work_dir": str(config.home / "run"),
        "marker": str(marker_path(config)),
    }
    for folder in (config.home / "run" / "spark-tmp", config.home / "lake"):
        folder.mkdir(parents=True, exist_ok=True)
    path = config.home / "run" / "demo-lake-plan.json"
    write_private(path, json.dumps(plan, indent=2) + "\n")
    argv = (sys.executable, str(job_file("demo_lake")), "--plan", str(path))
    return Command(argv=argv, env=spark_environment(java) | {"PYTHONUNBUFFERED": "1"})


def build_demo_lake(
    command: Command, env: Mapping[str, str], log: Path, reporter: Reporter
) -> None:
    """Run the job, which does nothing when it finds its work done.

    Raises:
        DemoLakeError: the job failed.
    """
    try:
        end = run_job(
            command,
            env,
            log,
            on_progress=lambda at: reporter.progress(TASK, at.done, at.total),
        )
    finally:
        reporter.forget(TASK)
    code = end.exit_code
    if code != 0:
        raise DemoLakeError(
            f"The demo lake could not be built (exit code {code}). The end of {log}:\n"
            f"{logs.tail(log)}"
        )
