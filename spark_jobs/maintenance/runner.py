"""One action from start to end: checks, stages, verification, figures, how it ended."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from spark_jobs.maintenance.commit import roll_back
from spark_jobs.maintenance.compact import compact_files
from spark_jobs.maintenance.expire import expire_snapshots, missing_files
from spark_jobs.maintenance.fence import Fence
from spark_jobs.maintenance.figures import measure
from spark_jobs.maintenance.orphans import remove_orphan_files
from spark_jobs.maintenance.outcome import (
    EndedError,
    VerificationError,
    first_line,
    is_catalog_silent,
)
from spark_jobs.maintenance.remote import RemoteRun
from spark_jobs.maintenance.report import ActionReport
from spark_jobs.maintenance.rewrite import (
    rewrite_data_files,
    rewrite_manifests,
    rewrite_position_deletes,
    set_sort_order,
)
from spark_jobs.maintenance.table import LakeTable
from spark_jobs.maintenance.verify import compare
from spark_jobs.maintenance.work import Tools, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from lakehouse_core.domain.maintenance import Stage
    from spark_jobs.maintenance.outcome import Outcome
    from spark_jobs.maintenance.plan import ActionRequest
    from spark_jobs.maintenance.report import Report
    from spark_jobs.maintenance.stop import Stop
    from spark_jobs.maintenance.table import Metadata, Snapshot
    from spark_jobs.maintenance.work import StageResult

STAGES: Mapping[str, Callable[[Work, Stage], StageResult]] = {
    "compact_files": compact_files,
    "rewrite_data_files": rewrite_data_files,
    "rewrite_manifests": rewrite_manifests,
    "rewrite_position_delete_files": rewrite_position_deletes,
    "expire_snapshots": expire_snapshots,
    "remove_orphan_files": remove_orphan_files,
    "set_sort_order": set_sort_order,
}
DELETING = frozenset({"expire_snapshots", "remove_orphan_files"})


def steps(request: ActionRequest) -> int:
    """How many steps an action tells of: look, its stages, verify."""
    return 2 + (0 if request.proves else len(request.plan.stages))


def run_action(
    spark: SparkSession,
    request: ActionRequest,
    report: Report,
    stop: Stop,
    tools: Tools | None = None,
) -> ActionReport:
    """Carry an action out; every end it can come to is in what is returned."""
    told = ActionReport(action_id=request.action_id)
    report.actions.append(told)
    last_step = report.done + steps(request)
    with stop.fenced(Fence(request)):
        try:
            stop.check()
            if stop.is_remote:
                RemoteRun(spark, request, report, stop, told).all()
            else:
                _Run(spark, request, report, stop, told).all(tools or Tools())
        except EndedError as ended:
            told.outcome, told.error = ended.outcome, str(ended)
        except Exception as error:  # noqa: BLE001 the edge of an action: told in the report
            traceback.print_exc()
            told.outcome, told.error = _what_it_means(error, stop)
    report.done = last_step
    return told


def _what_it_means(error: Exception, stop: Stop) -> tuple[Outcome, str]:
    """How an action ended that raised something else than one of the ends we know."""
    try:
        stop.check()
    except EndedError as ended:  # Spark's jobs were cancelled for it
        return ended.outcome, str(ended)
    if is_catalog_silent(error):
        return "unknown", f"The catalog did not answer: {first_line(error)}"
    return "failed", first_line(error)


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        request: ActionRequest,
        report: Report,
        stop: Stop,
        told: ActionReport,
    ) -> None:
        self._spark = spark
        self._request = request
        self._report = report
        self._stop = stop
        self._told = told

    def all(self, tools: Tools) -> None:
        """Look, run the stages unless earlier commits are to be proven, verify."""
        with self._report.step(self._told, "look"):
            table = LakeTable.load(self._spark, self._request.table)
            work = Work(self._spark, table, self._request, self._stop, tools)
            base = work.pin().current_snapshot_id
            self._told.base_snapshot_id = base
            self._told.figures["before"] = measure(self._spark, table.full_name, base)
        is_changed = bool(self._request.proves) or self._carried_out(work)
        self._note_commits(work)
        with self._report.step(self._told, "verify"):
            if is_changed:
                self._verify(work)
            head = work.pin().current_snapshot_id
            self._told.figures["after"] = measure(self._spark, table.full_name, head)
        self._told.outcome = "done" if is_changed else "nothing"
        if not is_changed:
            self._told.error = next(
                (str(one.facts["reason"]) for one in self._told.stages if "reason" in one.facts),
                None,
            )

    def _carried_out(self, work: Work) -> bool:
        try:
            return self._stages(work)
        except Exception as error:
            # What was committed counts also when a later stage fails; why it failed counts more
            # than that the table cannot be asked either.
            try:
                self._note_commits(work)
            except Exception as another:  # noqa: BLE001 told beside the first
                error.add_note(f"Nor could its commits be looked for: {another}")
            raise

    def _stages(self, work: Work) -> bool:
        is_changed = False
        for number, stage in enumerate(self._request.plan.stages):
            self._stop.check()
            work.stage = number
            with self._report.step(self._told, stage.name) as told:
                result = STAGES[stage.procedure](work, stage)
                told.facts = result.facts
            is_changed = is_changed or result.is_changed
        return is_changed

    def _note_commits(self, work: Work) -> None:
        found = self._commits(work)
        self._told.commits = [one.snapshot_id for one in found]
        if found:
            self._told.result_snapshot_id = found[-1].snapshot_id

    def _commits(self, work: Work) -> list[Snapshot]:
        metadata = work.table.refresh()
        if not self._request.proves:
            return metadata.commits_of(self._request.operation_id)
        line = metadata.ancestors(metadata.current_snapshot_id)
        return [one for one in reversed(line) if one.snapshot_id in self._request.proves]

    def _verify(self, work: Work) -> None:
        checks = self._told.checks
        for snapshot in self._commits(work):
            if snapshot.parent_id not in work.table.metadata().snapshots:
                continue  # of an earlier run; what it replaced is expired
            checks += compare(
                work.table, snapshot, self._request.verify, self._request.operation_id
            )
            self._told.compared.append(snapshot.snapshot_id)
            if not all(check.ok for check in checks):
                self._take_back(work, snapshot)
        if any(stage.procedure in DELETING for stage in self._request.plan.stages):
            checks.append(missing_files(work.table))
        bad = [check for check in checks if not check.ok]
        if bad:
            raise VerificationError(
                f"Table {work.table.name}: {bad[0].name} is {bad[0].found}, not {bad[0].expected}"
            )

    def _take_back(self, work: Work, snapshot: Snapshot) -> None:
        """Undo a commit whose rows differ, and all of ours after it.

        Raises:
            VerificationError: always; says whether the table is as it was.
        """
        bad = next(check for check in self._told.checks if not check.ok)
        ours, parent = self._commits(work), snapshot.parent_id
        what = (
            f"Rows of {work.table.name} changed: {bad.name} is {bad.found} in snapshot "
            f"{snapshot.snapshot_id}, not {bad.expected} as in its parent {parent}"
        )
        since = _since(work.table.metadata(), snapshot)
        is_alone = since <= {one.snapshot_id for one in ours}
        if parent is not None and is_alone and roll_back(work.table, ours[-1].snapshot_id, parent):
            self._told.rolled_back = True
            raise VerificationError(f"{what}; the table was rolled back to {parent}")
        raise VerificationError(
            f"{what}; it was NOT rolled back, because another writer has committed on top of it"
        )


def _since(metadata: Metadata, snapshot: Snapshot) -> set[int]:
    """A snapshot of main and all that came after it."""
    line = [one.snapshot_id for one in metadata.ancestors(metadata.current_snapshot_id)]
    end = line.index(snapshot.snapshot_id) + 1 if snapshot.snapshot_id in line else len(line)
    return set(line[:end])
