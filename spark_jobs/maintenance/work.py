"""What every stage of an action works with, and how a stage is tried again.

A commit that meets another writer is planned again on the table as it is then. A commit of which
nobody knows whether it happened is never tried again and nothing of it is deleted: the table is
read again, and our operation id in a snapshot's summary decides.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spark_jobs.maintenance.arrow_files import write_bin
from spark_jobs.maintenance.commit import commit_groups
from spark_jobs.maintenance.outcome import (
    ConflictError,
    EndedError,
    RefusedError,
    UnknownCommitError,
    conflict_of,
    first_line,
    is_unknown_commit,
)
from spark_jobs.maintenance.table import ACTION, OPERATION, STAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from spark_jobs.maintenance.plan import ActionRequest
    from spark_jobs.maintenance.stop import Stop
    from spark_jobs.maintenance.table import LakeTable, Metadata

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 20.0


@dataclass(frozen=True, slots=True)
class Tools:
    """The parts that touch the world; whoever wants to see them fail gives others.

    Attributes:
        write: puts the files of a bin together, in a Spark task.
        commit: replaces files of the table by new ones, in one commit.
        pause: waits between two attempts.
    """

    write: Callable[..., Any] = write_bin
    commit: Callable[..., None] = commit_groups
    pause: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a stage did: whether the table changed, and what is worth telling."""

    is_changed: bool
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Work:
    """One action on one table.

    Attributes:
        stage: the number of the running stage, in the summary of its commits.
        schema: field id → type when the action began.
        listed: orphans that a dry run has found.
    """

    spark: SparkSession
    table: LakeTable
    request: ActionRequest
    stop: Stop
    tools: Tools = field(default_factory=Tools)
    stage: int = 0
    schema: dict[int, Any] = field(default_factory=dict)
    listed: list[str] | None = None
    luck: random.Random = field(default_factory=random.Random)

    @property
    def properties(self) -> dict[str, str]:
        """What the summary of each of our snapshots says."""
        return {
            OPERATION: self.request.operation_id,
            ACTION: self.request.action_id,
            "lakehelm.lease-token": str(self.request.lease_token),
            STAGE: str(self.stage),
        }

    def pin(self) -> Metadata:
        """The table as it is now, if it still is the one the plan is about.

        Raises:
            RefusedError: it is another table, or its columns changed in a way that matters.
        """
        metadata = self.table.refresh()
        wanted = self.request.plan.table_uuid
        if metadata.uuid != wanted:
            raise RefusedError(
                f"Table {self.table.name} is another one than planned for: it has uuid "
                f"{metadata.uuid}, not {wanted}; it was dropped and made anew"
            )
        types = column_types(metadata)
        changed = sorted(
            found for found, kind in self.schema.items() if types.get(found, kind) != kind
        )
        if changed:
            raise RefusedError(
                f"Columns of {self.table.name} changed their type while the action ran (field ids "
                f"{', '.join(map(str, changed))}); plan it again"
            )
        self.schema = self.schema or types
        return metadata

    def is_stage_done(self, metadata: Metadata) -> bool:
        """Whether this run has committed the running stage.

        Or, where an action is done part by part, an earlier run of it: that is how it goes on.
        """
        name, own = OPERATION, self.request.operation_id
        if self.request.plan.stages[self.stage].arguments.get("partitions") is not None:
            name, own = ACTION, self.request.action_id
        line = metadata.ancestors(metadata.current_snapshot_id)
        return any(
            one.summary.get(name) == own and one.summary.get(STAGE) == str(self.stage)
            for one in line
        )

    def retried(self, attempt: Callable[[], StageResult]) -> StageResult:
        """The result of a stage, tried again from its planning when another writer was faster.

        Raises:
            ConflictError: every attempt met a conflict; names it.
            UnknownCommitError: nobody can say whether the commit happened.
        """
        most = max(1, self.request.guards.max_attempts)
        for number in range(1, most + 1):
            self.stop.check()
            try:
                result = attempt()
            except EndedError:
                raise
            except Exception as error:
                conflict = self._conflict(error)
                if conflict is None:
                    return StageResult(is_changed=True, facts={"answer_lost": first_line(error)})
                if number == most:
                    raise ConflictError(
                        f"Table {self.table.name} could not be committed to: {most} attempts met "
                        f"{conflict}"
                    ) from error
                print(f"conflict on {self.table.name}, attempt {number}: {conflict}", flush=True)
                longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**number)
                self.tools.pause(self.luck.uniform(longest / 2, longest))
            else:
                return StageResult(result.is_changed, result.facts | {"attempts": number})
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _conflict(self, error: Exception) -> str | None:
        """The conflict an error stands for; None when the commit happened all the same."""
        if is_unknown_commit(error):
            if self.is_stage_done(self.pin()):
                return None
            raise UnknownCommitError(
                f"Nobody knows whether the commit to {self.table.name} happened "
                f"({first_line(error)}); nothing was deleted, and no snapshot of operation "
                f"{self.request.operation_id} is there now"
            ) from error
        conflict = conflict_of(error)
        if conflict is not None:
            return conflict
        if self.is_stage_done(self.pin()):  # raises when the table was dropped or changed
            return None
        self.stop.check()  # or the run was to end, and its jobs were cancelled
        raise error


def column_types(metadata: Metadata) -> dict[int, Any]:
    """Top-level field id → type."""
    return {one["id"]: one["type"] for one in metadata.schema["fields"]}
