"""One Spark job for several actions: its folder, its plan, its report.

The folder stays: after a crash it tells what was planned, what the tables were like before, and
what the job had finished.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.maintenance import plan_to_json
from lakehouse_core.domain.table import TableName
from lakehouse_core.maintenance.before import Before
from lakehouse_core.maintenance.lease import lease_file
from lakehouse_core.runtime.leftover import RUN_VARIABLE
from lakehouse_core.runtime.spark_job import (
    LONG_JVM,
    JobFiles,
    SparkJob,
    run_spark_job,
    session_conf,
    where_it_runs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.maintenance import Action, TableLease
    from lakehouse_core.maintenance.coordinate import Guards
    from lakehouse_core.runtime.jobs import JobEnd, Progress

MODULE = "spark_jobs.maintain"
KEPT_RUNS = 100
VERIFIED_PARTITIONS = 8
VERIFIED_BYTES = 2 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """An action that may run now, or whose commits (`proves`) are to be compared now."""

    action: Action
    lease: TableLease
    guards: Guards
    before: Before
    proves: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where a run's files are."""

    home: Path
    run_id: str

    @property
    def folder(self) -> Path:
        """Plan, report, stop file and what was before."""
        return self.home / "run" / "maintenance" / self.run_id

    @property
    def stop_file(self) -> Path:
        """The job ends soon after this appears."""
        return self.folder / "stop"

    @property
    def files(self) -> JobFiles:
        """As the job takes them."""
        return JobFiles(
            plan=self.folder / "plan.json",
            report=self.folder / "report.json",
            log=self.home / "logs" / "maintenance" / f"{self.run_id}.log",
        )

    def remember(self, batch: Sequence[Ready]) -> None:
        """Keep what the tables were like before."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        before = {one.action.action_id: one.before.to_json() for one in batch}
        (self.folder / "before.json").write_text(json.dumps(before), encoding="utf-8")

    def before(self, action_id: str) -> Before:
        """An action's table before; empty when it was not kept."""
        return Before.from_json(_read(self.folder / "before.json").get(action_id, {}))

    def report(self) -> dict[str, dict[str, Any]]:
        """What the job has said of each action so far, by action id."""
        return {one["action_id"]: one for one in _read(self.files.report).get("actions", ())}

    @property
    def proof(self) -> RunFolder:
        """Of the job that compares what this run has committed and did not live to compare."""
        return RunFolder(self.home, f"{self.run_id}-proof")

    def told(self, action_id: str) -> dict[str, Any] | None:
        """What the job has said of an action, and a job that compared its commits later."""
        own, later = self.report().get(action_id), self.proof.report().get(action_id)
        if later is None:
            return own
        told = own or {"outcome": "unknown", "commits": later.get("commits")}
        for name in ("compared", "checks"):
            told[name] = [*(told.get(name) or ()), *(later.get(name) or ())]
        if any(not one.get("ok", True) for one in later.get("checks") or ()):
            told |= {name: later.get(name) for name in ("outcome", "error", "rolled_back")}
        return told

    def error(self) -> str | None:
        """What the job says of the whole run."""
        found = _read(self.files.report).get("error")
        return None if found is None else str(found)


def run_of(home: Path, operation_id: str) -> RunFolder:
    """The run that an operation belongs to."""
    return RunFolder(home, operation_id.partition(".")[0])


def operation_of(run_id: str, action_id: str) -> str:
    """The id in the summary of every snapshot that the action makes in this run."""
    return f"{run_id}.{action_id}"


def plan_document(
    config: Config, machine: Machine, folder: RunFolder, batch: Sequence[Ready]
) -> dict[str, Any]:
    """The plan file of a run, see `spark_jobs.maintenance.plan`."""
    return {
        "run_id": folder.run_id,
        "catalog": TableName.parse(batch[0].action.table_id).catalog,
        "conf": session_conf(config, machine, {"spark.driver.extraJavaOptions": LONG_JVM}),
        "stop_file": str(folder.stop_file),
        "actions": [_request(config.home, one) for one in batch],
        **where_it_runs(config),
    }


def run_in_spark(
    config: Config,
    machine: Machine,
    folder: RunFolder,
    plan: dict[str, Any],
    *,
    on_progress: Callable[[Progress], None],
    is_stopping: Callable[[], bool],
) -> JobEnd:
    """Run a plan in a process of its own.

    Raises:
        NotInstalledError: there is no Java that Spark runs on.
    """
    job = SparkJob(
        module=MODULE,
        files=folder.files,
        timeout=config.maintenance.timeout,
        on_progress=on_progress,
        is_stopping=is_stopping,
        variables={RUN_VARIABLE: folder.run_id},
    )
    return run_spark_job(config, machine, job, plan)


def forget_old_runs(home: Path) -> None:
    """Keep the newest runs' folders and logs; ids begin with the time."""
    for place in (home / "run" / "maintenance", home / "logs" / "maintenance"):
        if not place.is_dir():
            continue
        for old in sorted(place.iterdir(), reverse=True)[KEPT_RUNS:]:
            if old.is_dir():
                shutil.rmtree(old, ignore_errors=True)
            else:
                old.unlink(missing_ok=True)


def _request(home: Path, ready: Ready) -> dict[str, Any]:
    return {
        "action_id": ready.action.action_id,
        "operation_id": ready.action.operation_id,
        "lease_token": ready.lease.token,
        "lease_file": str(lease_file(home, ready.action.table_id)),
        "plan": plan_to_json(ready.action.plan),
        "guards": ready.guards.to_json(),
        "verify": {"partitions": VERIFIED_PARTITIONS, "max_bytes": VERIFIED_BYTES},
        "proves": list(ready.proves),
    }


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
