"""Decisions: who may decide what, and when an approval is void."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.config.models import MaintenanceConfig
from lakehouse_core.domain.maintenance import DESTRUCTIVE, NEXT, Action, Kind, State
from lakehouse_core.maintenance.decisions import (
    LONGEST_SNOOZE,
    LONGEST_WAIT,
    Circumstances,
    StartCircumstances,
    Verdict,
    decide,
    why_void_now,
)
from tests.factories import NOW, action, decision_request, lake_table, table_metrics

TABLE = "lake.demo.events"


def around(**given: Any) -> Circumstances:
    values: dict[str, Any] = {
        "now": NOW,
        "settings": MaintenanceConfig(),
        "table": lake_table(),
        "metrics": table_metrics(table_id=TABLE, data_files=336),
    }
    return Circumstances(**{**values, **given})


def verdict(
    proposal: Action | None = None, circumstances: Circumstances | None = None, **wish: Any
) -> Verdict:
    return decide(proposal or action(), decision_request(**wish), circumstances or around())


def test_an_approval_keeps_who_when_and_why() -> None:
    found = verdict(reason="dashboards are slow")
    assert found.is_granted
    assert found.to is State.APPROVED
    assert found.changes["decided_by"] == "ana"
    assert found.changes["decided_at"] == NOW
    assert found.changes["decision_reason"] == "dashboards are slow"


def test_a_plan_that_was_not_seen_is_not_approved() -> None:
    found = verdict(plan_hash="cd" * 32)
    assert not found.is_granted
    assert "not the one you have seen" in found.answer
    assert found.to is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"now": NOW + timedelta(days=6)}, "expired"),
        ({"table": None}, "does not exist"),
        ({"table": lake_table(dropped_at=NOW)}, "does not exist"),
        ({"table": lake_table(table_uuid="another")}, "made anew"),
        ({"table": lake_table(error="manifest gone")}, "manifest gone"),
        ({"metrics": None}, "nothing is known"),
        ({"metrics": table_metrics(data_files=500)}, "336 then, 500 now"),
        ({"metrics": table_metrics(data_files=12)}, "336 then, 12 now"),
        ({"rewritten_at": NOW}, "were rewritten"),
    ],
)
def test_an_approval_is_void_when_the_table_is_not_what_it_was(
    given: dict[str, Any], said: str
) -> None:
    wish = {"asked_at": given.get("now", NOW)}
    found = verdict(None, around(**given), **wish)
    assert not found.is_granted
    assert found.to is State.EXPIRED
    assert said in found.answer


def test_old_evidence_voids_an_approval_however_long_the_proposal_stands() -> None:
    old = action(evidence_at=NOW - timedelta(days=8), expires_at=NOW + timedelta(days=9))
    assert "too old" in verdict(old).answer


def test_a_few_more_files_do_not_void_an_approval() -> None:
    assert verdict(None, around(metrics=table_metrics(data_files=350))).is_granted


@pytest.mark.parametrize("kind", sorted(DESTRUCTIVE))
@pytest.mark.parametrize("typed", [None, "", "events", "lake.demo.Events", f" {TABLE}"])
def test_what_deletes_files_wants_the_table_typed(kind: Kind, typed: str | None) -> None:
    deleting = action(kind=kind)
    refused = verdict(deleting, confirmation=typed)
    assert not refused.is_granted
    assert TABLE in refused.answer
    assert verdict(deleting, confirmation=TABLE).is_granted


def test_four_eyes_refuse_the_proposer_and_nobody_else() -> None:
    own = action(proposed_by="Ana ")
    strict = around(settings=MaintenanceConfig(four_eyes=True))
    assert "somebody else" in verdict(own, strict).answer
    assert verdict(own, strict, actor="bo").is_granted
    assert verdict(own).is_granted
    assert verdict(action(), strict).is_granted


@pytest.mark.parametrize("name", ["", "  ", "lakehelm", "Lakehelm", "policy:1", " POLICY:2 "])
def test_nobody_signs_with_a_name_of_ours(name: str) -> None:
    assert not verdict(actor=name).is_granted


def test_a_clock_set_back_decides_nothing() -> None:
    later = NOW + timedelta(hours=1)
    assert "set back" in verdict(action(updated_at=later)).answer
    assert "set back" in verdict(asked_at=later).answer


def test_a_wish_that_lay_too_long_is_refused() -> None:
    old = NOW - LONGEST_WAIT - timedelta(seconds=1)
    assert "too long ago" in verdict(asked_at=old).answer


def test_a_rejection_needs_its_reason() -> None:
    assert "reason" in verdict(verb="reject", reason="  ").answer
    rejected = verdict(verb="reject", reason="it is archived")
    assert rejected.to is State.REJECTED
    assert rejected.changes["ended_at"] == NOW


def test_a_void_proposal_can_still_be_rejected() -> None:
    assert verdict(None, around(table=None), verb="reject", reason="gone").is_granted


@pytest.mark.parametrize("days", [-1, 0, LONGEST_SNOOZE.days + 1])
def test_a_snooze_ends_within_bounds(days: int) -> None:
    assert not verdict(verb="snooze", until=NOW + timedelta(days=days)).is_granted


def test_a_snooze_without_an_end_is_a_week() -> None:
    assert verdict(verb="snooze").changes["snoozed_until"] == NOW + timedelta(days=7)


def test_a_running_action_is_told_to_stop() -> None:
    found = verdict(action(state=State.RUNNING), verb="cancel")
    assert found.is_granted
    assert found.is_stop
    assert found.to is None


@given(
    state=st.sampled_from(State),
    verb=st.sampled_from(["approve", "reject", "snooze", "cancel"]),
    four_eyes=st.booleans(),
    is_own=st.booleans(),
    has_seen=st.booleans(),
    kind=st.sampled_from(Kind),
    typed=st.sampled_from([None, TABLE, "x"]),
)
def test_no_approval_escapes_the_rules(  # noqa: PLR0917 one parameter per rule
    state: State,
    verb: Any,
    four_eyes: bool,
    is_own: bool,
    has_seen: bool,
    kind: Kind,
    typed: str | None,
) -> None:
    proposal = action(state=state, kind=kind, proposed_by="ana" if is_own else "lakehelm")
    found = verdict(
        proposal,
        around(settings=MaintenanceConfig(four_eyes=four_eyes)),
        verb=verb,
        reason="because",
        plan_hash=proposal.plan_hash if has_seen else "00" * 32,
        confirmation=typed,
    )
    if found.to is not None:
        assert found.to in NEXT[state]
    if found.is_granted:
        assert has_seen
    if found.is_granted and verb == "approve":
        assert state in {State.PROPOSED, State.SNOOZED}
        assert not (four_eyes and is_own)
        assert kind not in DESTRUCTIVE or typed == TABLE


def test_an_approval_is_used_once() -> None:
    approved = replace(action(), state=State.APPROVED)
    assert "cannot be approved" in verdict(approved).answer


@pytest.mark.parametrize(
    ("metrics", "given", "said"),
    [
        ({"data_files": 336}, {}, None),
        ({"data_files": 2_000, "total_bytes": 336}, {}, None),  # more to cure, no dearer
        ({"data_files": 20}, {}, "data files 336 then, 20 now"),
        ({"data_files": 336}, {"rewritten_at": NOW}, "by somebody else"),
        ({"data_files": 336}, {"rewritten_at": NOW - timedelta(days=2)}, None),
        ({"data_files": 336}, {"now": NOW + timedelta(days=8)}, "too old"),
    ],
)
def test_an_approval_is_void_at_the_start_when_the_table_changed_in_a_way_that_matters(
    metrics: dict[str, Any], given: dict[str, Any], said: str | None
) -> None:
    approved = action(state=State.APPROVED, evidence_at=NOW - timedelta(hours=1))
    values: dict[str, Any] = {
        "now": NOW,
        "settings": MaintenanceConfig(),
        "metrics": table_metrics(table_id=TABLE, **metrics),
    }
    found = why_void_now(approved, StartCircumstances(**{**values, **given}))
    assert (found is None) if said is None else (found is not None and said in found)


def test_a_retry_does_not_meet_its_own_work() -> None:
    again = action(state=State.SCHEDULED, attempts=1, evidence_at=NOW)
    smaller = table_metrics(table_id=TABLE, data_files=20)
    around_now = StartCircumstances(now=NOW, settings=MaintenanceConfig(), metrics=smaller)
    assert why_void_now(again, around_now) is None
