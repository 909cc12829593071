"""Wishes are answered once each, with an audit row, whatever they ask."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agents.decide import Decisions
from lakehouse_core.config.models import MaintenanceConfig
from lakehouse_core.domain.maintenance import Action, Kind, State
from lakehouse_core.maintenance.audit import AUDIT_SQL, head_file, read_head, verify_chain
from lakehouse_core.maintenance.records import audit_of, requests_of
from lakehouse_core.maintenance.states import Ledger
from lakehouse_core.store.rows import to_arrow
from tests.factories import (
    NOW,
    action,
    decision_request,
    lake_table,
    snapshot_commit,
    table_metrics,
)

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import AuditEntry, DecisionRequest
    from lakehouse_core.store.owner import OwnerStore


@pytest.fixture
def desk(store: OwnerStore) -> Decisions:
    head_file(store.path).unlink(missing_ok=True)
    add(store, "lake_table", lake_table())
    add(store, "table_metrics", table_metrics(table_id="lake.demo.events", data_files=336))
    return at(store, NOW)


def at(store: OwnerStore, now: datetime, **settings: Any) -> Decisions:
    return Decisions(store, MaintenanceConfig(**settings), lambda: now)


def add(store: OwnerStore, table: str, *records: object) -> None:
    store.upsert(table, to_arrow(table, records))


def proposed(store: OwnerStore, **given: Any) -> Action:
    return Ledger(store, lambda: NOW - timedelta(minutes=1)).propose(action(**given))


def ask(store: OwnerStore, about: Action, **given: Any) -> str:
    wish = decision_request(action_id=about.action_id, **given)
    add(store, "decision_request", wish)
    return wish.request_id


def answer(store: OwnerStore, request: str) -> DecisionRequest:
    rows = requests_of(store.read("SELECT * FROM decision_request"))
    return next(one for one in rows if one.request_id == request)


def chain(store: OwnerStore) -> tuple[AuditEntry, ...]:
    entries = audit_of(store.read(AUDIT_SQL))
    assert verify_chain(entries, read_head(store.path)).is_intact
    return entries


def state(store: OwnerStore, about: Action) -> State:
    return Ledger(store, lambda: NOW).get(about.action_id).state


def test_an_approval_is_carried_out_once(store: OwnerStore, desk: Decisions) -> None:
    proposal = proposed(store)
    request = ask(store, proposal, reason="slow")
    assert desk.take_up() == 1
    assert desk.take_up() == 0
    approved = Ledger(store, lambda: NOW).get(proposal.action_id)
    assert (approved.state, approved.decided_by) == (State.APPROVED, "ana")
    assert (approved.decision_reason, approved.decided_at) == ("slow", NOW)
    assert answer(store, request).state == "done"
    assert [one.verb for one in chain(store)] == ["proposed", "approved"]


def test_of_two_approvals_the_second_is_refused(store: OwnerStore, desk: Decisions) -> None:
    proposal = proposed(store)
    requests = [ask(store, proposal), ask(store, proposal, actor="bo")]
    assert desk.take_up() == 2
    assert [answer(store, one).state for one in requests] == ["done", "refused"]
    assert [one.verb for one in chain(store)] == ["proposed", "approved", "approve refused"]


@pytest.mark.parametrize(
    "wish",
    [
        {"plan_hash": "00" * 32},
        {"actor": "lakehelm"},
        {"asked_at": NOW - timedelta(hours=2)},
        {"asked_at": NOW + timedelta(hours=2)},
        {"verb": "reject"},
        {"verb": "cancel"},
    ],
)
def test_a_refusal_has_an_audit_row_and_changes_nothing(
    store: OwnerStore, desk: Decisions, wish: dict[str, Any]
) -> None:
    proposal = proposed(store)
    request = ask(store, proposal, **wish)
    desk.take_up()
    assert answer(store, request).state == "refused"
    assert state(store, proposal) is State.PROPOSED
    refusal = chain(store)[-1]
    assert refusal.verb == f"{wish.get('verb', 'approve')} refused"
    assert request in refusal.detail


def test_a_proposer_does_not_approve_himself(store: OwnerStore, desk: Decisions) -> None:
    proposal = proposed(store, proposed_by="ana")
    request = ask(store, proposal)
    at(store, NOW, four_eyes=True).take_up()
    assert "somebody else" in str(answer(store, request).answer)


def test_an_approval_after_a_rewrite_expires_the_proposal(
    store: OwnerStore, desk: Decisions
) -> None:
    proposal = proposed(store)
    add(store, "snapshot_commit", snapshot_commit(operation="replace", committed_at=NOW))
    request = ask(store, proposal)
    desk.take_up()
    assert answer(store, request).state == "refused"
    assert state(store, proposal) is State.EXPIRED
    assert [one.verb for one in chain(store)] == ["proposed", "expired", "approve refused"]


def test_an_expiry_wants_the_name_typed(store: OwnerStore, desk: Decisions) -> None:
    proposal = proposed(store, kind=Kind.EXPIRE_SNAPSHOTS)
    first = ask(store, proposal)
    second = ask(store, proposal, confirmation="lake.demo.events")
    desk.take_up()
    assert [answer(store, one).state for one in (first, second)] == ["refused", "done"]


def test_a_wish_about_nothing_is_refused(store: OwnerStore, desk: Decisions) -> None:
    request = ask(store, action(action_id="nobody"))
    desk.take_up()
    assert "not known" in str(answer(store, request).answer)
    assert [one.verb for one in chain(store)] == ["approve refused"]


def test_a_stop_of_a_running_action_is_noted_for_who_runs_it(
    store: OwnerStore, desk: Decisions
) -> None:
    ledger = Ledger(store, lambda: NOW)
    running = ledger.move(
        ledger.move(proposed(store), State.APPROVED, by="ana"), State.RUNNING, by="lakehelm"
    )
    request = ask(store, running, verb="cancel")
    desk.take_up()
    assert answer(store, request).state == "done"
    assert state(store, running) is State.RUNNING
    assert chain(store)[-1].verb == "cancel asked"


def test_without_the_head_of_the_chain_nothing_is_decided(
    store: OwnerStore, desk: Decisions
) -> None:
    proposal = proposed(store)
    request = ask(store, proposal)
    head_file(store.path).write_text("{")
    assert desk.take_up() == 0
    assert state(store, proposal) is State.PROPOSED
    assert answer(store, request).state == "waiting"
    head_file(store.path).unlink()
