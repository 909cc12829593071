"""Approved actions are carried out: checked, batched into one Spark job, followed, proven.

An action is RUNNING from before its job starts until its outcome is known, and has a lease of its
table meanwhile. Whatever dies in between, `recover` finds out what became of it.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.domain.maintenance import State
from lakehouse_core.domain.table import TableName
from lakehouse_core.maintenance.coordinate import Guards
from lakehouse_core.maintenance.job import (
    Ready,
    RunFolder,
    forget_old_runs,
    operation_of,
    plan_document,
    run_in_spark,
)
from lakehouse_core.maintenance.lease import LeaseHeldError, LeaseLostError, TableLeases
from lakehouse_core.maintenance.look import Lookout
from lakehouse_core.maintenance.prepare import Preparation
from lakehouse_core.maintenance.queue import Queue
from lakehouse_core.maintenance.recover import Recovery
from lakehouse_core.maintenance.settle import ACTOR, Settlement
from lakehouse_core.maintenance.states import Ledger, StaleActionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.maintenance import Action, TableLease
    from lakehouse_core.maintenance.prepare import Cleared
    from lakehouse_core.maintenance.standing import Owed
    from lakehouse_core.runtime.jobs import JobEnd, Progress
    from lakehouse_core.store.owner import OwnerStore

# Start-up of Spark is shared; yet the checks of the last one must not be old when its turn comes.
MOST_ACTIONS = 8
BATCH_BYTES = 4 * 2**30
CANCEL_PATIENCE_SECONDS = 60.0
ASK_EVERY_SECONDS = 1.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a run needs besides configuration and store.

    Attributes:
        machine: where Java and the jars are.
        clock: what the time is.
        on_progress: told how far the present job is.
        on_action: told how far one action is: id, done, total, what.
        is_stopping: whether this process ends.
        spark: runs a plan in a folder; by default a job in a process of its own.
    """

    machine: Machine
    clock: Clock
    on_progress: Callable[[int, int | None], None] = lambda _done, _total: None
    on_action: Callable[[str, Progress], None] = lambda _action, _progress: None
    is_stopping: Callable[[], bool] = lambda: False
    spark: Callable[[RunFolder, dict[str, Any], Callable[[], bool]], JobEnd] | None = None


class Maintainer:
    """Carries out approved actions, one batch after another."""

    def __init__(self, config: Config, store: OwnerStore, around: Surroundings) -> None:
        self._config = config
        self._around = around
        self._clock = around.clock
        self._ledger = Ledger(store, around.clock)
        self._leases = TableLeases(store, around.clock, config.maintenance.lease, config.home)
        self._queue = Queue(store)
        self._lookout = Lookout(config, around.clock)
        self._settlement = Settlement(config, store, self._ledger, self._lookout, around.clock)
        self._recovery = Recovery(config, self._leases, self._settlement)
        self._preparation = Preparation(
            config, store, self._ledger, self._leases, self._lookout, self._queue
        )

    def run_once(self) -> int:
        """Find out what became of interrupted work, then carry out one batch.

        Returns:
            How many actions changed.

        Raises:
            StoreError: the store cannot be read or written.
            NotInstalledError: there is no Java that Spark runs on.
        """
        self._preparation.begin(f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}")
        left = self._queue.under_way()
        asked = {one for action in left for one in self._wished(action)}
        moved = self._recovery.run(left, asked) + self._compare()
        batch = self._select()
        if batch:
            moved += self._run(batch) + self._compare()
        return moved + self._preparation.moved

    def close(self) -> None:
        """Let DuckDB go."""
        self._lookout.close()

    def _select(self) -> list[Cleared]:
        """The actions of the next job: best first, one per table, of one catalog."""
        chosen: list[Cleared] = []
        size = 0
        for action in self._queue.waiting(self._clock()):
            if len(chosen) >= MOST_ACTIONS or self._around.is_stopping():
                break
            if any(_cannot_join(one.action, action) for one in chosen):
                continue
            if chosen and size + action.plan.input_bytes > BATCH_BYTES:
                continue
            cleared = self._preparation.clear(action, spent=size)
            if cleared is not None:
                chosen.append(cleared)
                size += action.plan.input_bytes
        return chosen

    def _run(self, chosen: Sequence[Cleared]) -> int:
        run_id = f"{self._clock():%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
        folder = RunFolder(self._config.home, run_id)
        batch = [ready for one in chosen if (ready := self._start(one, run_id, len(chosen)))]
        return self._carry_out(batch, folder, folder)

    def _compare(self) -> int:
        """Have commits compared that stand and that no job has lived to compare; one job a run."""
        runs: dict[RunFolder, list[Owed]] = {}
        for one in self._settlement.take_owed():
            runs.setdefault(one.folder, []).append(one)
        if self._around.is_stopping():
            return 0
        moved = 0
        for folder, owed in runs.items():
            batch = [ready for one in owed if (ready := self._start_proof(one))]
            folder.proof.stop_file.unlink(missing_ok=True)  # of an earlier attempt
            moved += self._carry_out(batch, folder.proof, folder)
        return moved

    def _carry_out(self, batch: Sequence[Ready], job: RunFolder, folder: RunFolder) -> int:
        """Run a job in its folder, and settle its actions by the folder of their run."""
        if not batch:
            return 0
        try:
            job.remember(batch)
            end = self._follow(job, batch)
            _log.info(
                "maintenance.job", run_id=job.run_id, exit_code=end.exit_code, stopped=end.stopped
            )
            asked = {one for ready in batch for one in self._wished(ready.action)}
            self._settlement.settle(folder, batch, end, asked)
        except LakehouseError as error:
            # The actions stay as they are; the next run finds out what became of them.
            _log.error("maintenance.interrupted", run_id=job.run_id, detail=str(error))
            raise
        finally:
            for one in batch:
                self._leases.release(one.lease)
            forget_old_runs(self._config.home)
        return len(batch)

    def _start(self, cleared: Cleared, run_id: str, count: int) -> Ready | None:
        """Take the table and say so; None: somebody was faster."""
        action = cleared.action
        lease = self._take(action)
        if lease is None:
            return None
        try:
            running = self._ledger.move(
                action,
                State.RUNNING,
                by=ACTOR,
                why={"run_id": run_id, "lease_token": lease.token},
                attempts=action.attempts + 1,
                operation_id=operation_of(run_id, action.action_id),
                started_at=self._clock(),
                not_before=None,
                explanation="It runs"
                + (f" in one job with {count - 1} others" if count > 1 else ""),
            )
        except StaleActionError as error:  # cancelled in this very moment
            _log.info("maintenance.changed", action=action.action_id, detail=str(error))
            self._leases.release(lease)
            return None
        return Ready(
            action=running,
            lease=lease,
            guards=cleared.guards,
            before=cleared.before,
        )

    def _start_proof(self, owed: Owed) -> Ready | None:
        """Take the table of an action whose commits are to be compared; None: somebody has it."""
        lease = self._take(owed.action)
        if lease is None:
            return None
        return Ready(
            action=self._settlement.begin_proof(owed.action),
            lease=lease,
            guards=Guards(),
            before=owed.folder.before(owed.action.action_id),
            proves=owed.commits,
        )

    def _take(self, action: Action) -> TableLease | None:
        try:
            return self._leases.acquire(
                action.table_id, holder=self._preparation.holder, action_id=action.action_id
            )
        except LeaseHeldError as error:
            _log.info("maintenance.held", action=action.action_id, detail=str(error))
            return None

    def _follow(self, folder: RunFolder, batch: Sequence[Ready]) -> JobEnd:
        watch = _Watch(self, folder, batch)
        plan = plan_document(self._config, self._around.machine, folder, batch)
        if self._around.spark is not None:
            return self._around.spark(folder, plan, watch.is_stopping)
        return run_in_spark(
            self._config,
            self._around.machine,
            folder,
            plan,
            on_progress=watch.on_progress,
            is_stopping=watch.is_stopping,
        )

    def _asked(self, batch: Sequence[Ready], since: datetime) -> set[str]:
        return self._queue.cancelled([one.action.action_id for one in batch], since)

    def _wished(self, action: Action) -> set[str]:
        """The action, if somebody has wanted it to end since it began."""
        return self._queue.cancelled([action.action_id], action.started_at or action.updated_at)


class _Watch:
    """What happens while a job runs: leases are renewed, wishes heard, progress told."""

    def __init__(self, owner: Maintainer, folder: RunFolder, batch: Sequence[Ready]) -> None:
        self._owner = owner
        self._folder = folder
        self._batch = batch
        self._since = owner._clock()
        self._renew_every = owner._config.maintenance.lease.total_seconds() / 3
        self._renew_at = time.monotonic() + self._renew_every
        self._ask_at = 0.0
        self._kill_at: float | None = None

    def on_progress(self, progress: Progress) -> None:
        """Tell the job's progress, and that of the action it is about."""
        around = self._owner._around
        around.on_progress(progress.done, progress.total)
        for one in self._batch:
            if progress.what.startswith(one.action.action_id):
                around.on_action(one.action.action_id, progress)

    def is_stopping(self) -> bool:
        """Whether the job is to be ended now; asked ten times a second."""
        now = time.monotonic()
        if self._owner._around.is_stopping() or self._is_lease_lost(now):
            return True
        if now >= self._ask_at:
            self._ask_at = now + ASK_EVERY_SECONDS
            if self._kill_at is None and self._owner._asked(self._batch, self._since):
                self._folder.stop_file.touch()
                self._kill_at = now + CANCEL_PATIENCE_SECONDS
        return self._kill_at is not None and now >= self._kill_at

    def _is_lease_lost(self, now: float) -> bool:
        if now < self._renew_at:
            return False
        self._renew_at = now + self._renew_every
        try:
            for one in self._batch:
                self._owner._leases.renew(one.lease)
        except LeaseLostError as error:
            _log.error("maintenance.lease_lost", run_id=self._folder.run_id, detail=str(error))
            return True
        return False


def _cannot_join(one: Action, other: Action) -> bool:
    """Whether two actions cannot be in one job."""
    first, second = TableName.parse(one.table_id), TableName.parse(other.table_id)
    return first == second or first.catalog != second.catalog
