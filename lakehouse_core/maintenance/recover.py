"""After a crash: what became of actions whose job or whose starter is gone.

An action that is RUNNING or VERIFYING when a round begins was left behind by an earlier one. First
all of its processes are ended. Then the report says how far it came, or the table itself: our
operation's id is in the summary of every snapshot it made. What nobody can tell stays as it is, and
nothing is deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.errors import StoreError
from lakehouse_core.domain.maintenance import State
from lakehouse_core.maintenance.job import run_of
from lakehouse_core.runtime.leftover import end_run

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.maintenance import Action, TableLease
    from lakehouse_core.maintenance.lease import TableLeases
    from lakehouse_core.maintenance.settle import Settlement

SILENCE = "the run was interrupted"
_log = structlog.get_logger(__name__)


class Recovery:
    """Finds out what became of interrupted actions."""

    def __init__(self, config: Config, leases: TableLeases, settlement: Settlement) -> None:
        self._config = config
        self._leases = leases
        self._settlement = settlement

    def run(self, left: Sequence[Action], asked: Collection[str] = ()) -> int:
        """Settle what can be; returns how many actions changed.

        Args:
            left: what was left behind.
            asked: those of them that somebody wanted to end.

        Raises:
            StoreError: the store cannot be read or written.
        """
        held = {one.table_id: one for one in self._leases.held()}
        return sum(
            self._try(one, held.get(one.table_id), is_asked=one.action_id in asked) for one in left
        )

    def _try(self, action: Action, lease: TableLease | None, *, is_asked: bool) -> bool:
        try:
            return self._settle(action, lease, is_asked=is_asked)
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 logged, and the next goes on
            # It stays as it is and is asked about again; the others must not wait for it.
            _log.exception("maintenance.unsettled", action=action.action_id, table=action.table_id)
            return False

    def _settle(self, action: Action, lease: TableLease | None, *, is_asked: bool) -> bool:
        folder = run_of(self._config.home, action.operation_id or "")
        is_ended = end_run(folder.run_id) and end_run(folder.proof.run_id)
        is_over = is_ended and not self._config.spark.remote
        if not is_over and lease is not None and lease.action_id == action.action_id:
            return False  # it may be at work; when its lease runs out it is not
        if lease is not None and lease.action_id == action.action_id:
            # Whoever comes next has a greater token, which tells its commits from late ones.
            self._leases.release(lease)
        _log.warning("maintenance.recovering", action=action.action_id, state=action.state)
        told = folder.told(action.action_id)
        if action.state is State.VERIFYING:
            after = self._settlement.prove(action, told, folder)
        else:
            after = self._settlement.conclude(
                action, told, folder, silence=SILENCE, is_asked=is_asked
            )
        return after is not action
