"""The recommend agent: look at every table, propose cures, let policies approve, on a schedule."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from agents.runs import Result
from lakehouse_core.domain.maintenance import Action, State
from lakehouse_core.maintenance.policies import actor_of, approving_policy
from lakehouse_core.maintenance.records import actions_of
from lakehouse_core.maintenance.states import Ledger, Step
from lakehouse_core.recommend.layout_proposals import layout_proposals
from lakehouse_core.recommend.propose import proposals
from lakehouse_core.recommend.reading import read_fleet
from lakehouse_core.recommend.reconcile import Situation, reconcile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.recommend.reading import Fleet
    from lakehouse_core.store.owner import OwnerStore

# Of each key the newest action; an open one is always the newest.
NEWEST_SQL = """
SELECT * FROM action QUALIFY row_number() OVER (
  PARTITION BY dedupe_key
  ORDER BY state IN ('proposed', 'snoozed', 'approved', 'scheduled', 'running', 'verifying') DESC,
    proposed_at DESC, action_id
) = 1
"""
PROPOSED_SQL = "SELECT * FROM action WHERE state = 'proposed' ORDER BY priority DESC, action_id"
# Tables whose last action failed: nothing is done to them without a human.
FAILED_SQL = """
SELECT table_id FROM action WHERE state IN ('failed', 'verified')
QUALIFY row_number() OVER (
  PARTITION BY table_id ORDER BY coalesce(ended_at, updated_at) DESC, action_id
) = 1 AND state = 'failed'
"""


def run_once(store: OwnerStore, config: Config, clock: Clock) -> Result:
    """Bring the proposals up to date, then let policies approve."""
    ledger = Ledger(store, clock)
    now = clock()
    fleet = read_fleet(store, config, now)
    subjects = {
        one.table.table_id: one
        for one in fleet.subjects
        if not _is_cared_for(one.table.table_id, config)
    }
    wanted = [action for one in subjects.values() for action in proposals(one)]
    wanted += layout_proposals(store, subjects, now)
    newest = actions_of(store.read(NEWEST_SQL))
    around = Situation(
        known={one.dedupe_key: one for one in newest},
        subjects=subjects,
        gone=_gone(newest, fleet),
        settings=config.maintenance,
        now=now,
    )
    steps = reconcile(wanted, around)
    if steps:
        ledger.take(steps)
    return Result(rows=len(steps) + _approve(store, ledger, config, clock))


def _approve(store: OwnerStore, ledger: Ledger, config: Config, clock: Clock) -> int:
    policies = config.maintenance.policies
    if not policies:
        return 0
    now = clock()
    failed = frozenset(store.read(FAILED_SQL).column("table_id").to_pylist())
    steps = []
    for action in actions_of(store.read(PROPOSED_SQL)):
        number = approving_policy(action, policies, now, failed_tables=failed)
        if number is None:
            continue
        actor = actor_of(number)
        reason = f"Policy {number} approves {action.kind} on this table"
        after = replace(
            action,
            state=State.APPROVED,
            decided_by=actor,
            decided_at=now,
            decision_reason=reason,
        )
        steps.append(Step(before=action, after=after, by=actor, why={"reason": reason}))
    if steps:
        ledger.take(steps)
    return len(steps)


def _is_cared_for(table_id: str, config: Config) -> bool:
    """The pipeline compacts and expires its own tables with every run (pipeline/care.py)."""
    own = config.pipeline
    return own.enabled and fnmatchcase(table_id, f"{own.catalog}.{own.namespace}.*")


def _gone(actions: Iterable[Action], fleet: Fleet) -> dict[str, str]:
    """Why the table of a proposal could not be looked at."""
    looked_at = {one.table.table_id for one in fleet.subjects}
    found = {}
    for action in actions:
        table = fleet.tables.get(action.table_id)
        if table is None:
            found[action.table_id] = "The table does not exist any more"
        elif action.table_id not in looked_at:
            found[action.table_id] = f"The table cannot be read: {table.error or 'not collected'}"
    return found
