"""What hurts and is not cured has a reason; what an open action is about is not listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.config.models import MaintenanceConfig
from lakehouse_core.domain.maintenance import Kind, State
from lakehouse_core.health.points import SHARES
from lakehouse_core.views.unhealed import CURES, list_unhealed
from tests.factories import NOW, action, contributor, lake_table, table_health

if TYPE_CHECKING:
    from tests.unit.views.conftest import Shelf


def sick(store: Shelf, rule: str) -> None:
    store.add("lake_table", lake_table())
    store.add("health", table_health(contributors=(contributor(rule=rule),)))


def reasons(store: Shelf) -> list[str]:
    return [one.why for one in list_unhealed(store, MaintenanceConfig())]


@pytest.mark.parametrize("rule", sorted(SHARES))
def test_every_rule_is_cured_or_explained(store: Shelf, rule: str) -> None:
    sick(store, rule)
    assert rule in CURES
    (why,) = reasons(store)
    assert len(why) > 20


@pytest.mark.parametrize("state", [State.PROPOSED, State.SNOOZED, State.APPROVED, State.RUNNING])
def test_what_an_open_action_is_about_is_left_out(store: Shelf, state: State) -> None:
    sick(store, "small_file_share")
    store.add("action", action(state=state))
    assert reasons(store) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"state": State.REJECTED, "decided_by": "bo", "decision_reason": "archived"}, "bo: arch"),
        ({"state": State.FAILED, "explanation": "the disk was full"}, "disk was full"),
        ({"state": State.VERIFIED, "ended_at": NOW}, "2026-11-16 12:00:00 UTC"),
    ],
)
def test_what_became_of_the_last_action_is_the_reason(
    store: Shelf, given: dict[str, Any], said: str
) -> None:
    sick(store, "small_file_share")
    store.add("action", action(**given))
    (why,) = reasons(store)
    assert said in why


def test_an_action_of_another_kind_cures_nothing_else(store: Shelf) -> None:
    sick(store, "snapshots")
    store.add("action", action(kind=Kind.COMPACT))
    (why,) = reasons(store)
    assert "5 d" in why
    assert "newest 5" in why


@pytest.mark.parametrize("ended_first", [True, False])
def test_a_part_that_was_done_does_not_hide_what_is_open(store: Shelf, ended_first: bool) -> None:
    sick(store, "small_file_share")
    done = action(action_id="a" * 32, dedupe_key="a part of it", state=State.VERIFIED, ended_at=NOW)
    waits = action(action_id="b" * 32, state=State.PROPOSED)
    for one in (done, waits) if ended_first else (waits, done):
        store.add("action", one)
    assert reasons(store) == []
