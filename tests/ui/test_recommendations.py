"""The page of recommendations: what is proposed, why, and deciding about it for real."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.bootstrap import open_store
from lakehouse_core.config import load_config
from lakehouse_core.domain.maintenance import Action, Kind, State
from lakehouse_core.views.recommendations import (
    RecommendationFilters,
    list_recommendations,
    show_recommendation,
)
from tests.ui.conftest import Place, Visitor, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

    from lakehouse_core.store.client import StoreClient

pytestmark = pytest.mark.ui
PAGE = "recommendations"


@pytest.fixture
def place(tmp_path: Path, repository: Path) -> Iterator[Place]:
    """A store of its own: decisions stay."""
    found = Place.below(tmp_path, repository)
    with found.served(filled=True):
        yield found


@pytest.fixture
def store(place: Place) -> Iterator[StoreClient]:
    with open_store(load_config(environ=place.environ).config) as opened:
        yield opened


def one(store: StoreClient, kind: Kind) -> Action:
    return list_recommendations(store, RecommendationFilters(kind=kind.value)).actions[0]


def state(store: StoreClient, action: Action) -> State:
    return show_recommendation(store, action.action_id).action.state


def click(app: AppTest, key: str) -> None:
    app.button(key=key).click().run(timeout=60)
    assert not app.exception


def test_a_proposal_shows_evidence_range_plan_and_risk(
    visitor: Visitor, place: Place, store: StoreClient
) -> None:
    action = one(store, Kind.COMPACT)
    app = visitor.at(place, PAGE, action=action.action_id)
    assert not app.exception
    said = words(app)
    assert action.plan.stages[0].call in said
    assert "Undo: roll back" in said.replace("\\", "")
    assert "Waiting for a decision" in said
    assert len(app.dataframe) >= 4
    assert app.button(key="decide_approve").disabled  # nobody signed yet


def test_an_approval_is_carried_out_and_told(
    visitor: Visitor, place: Place, store: StoreClient
) -> None:
    action = one(store, Kind.COMPACT)
    app = visitor.at(place, PAGE, action=action.action_id)
    app.text_input(key="decide_actor").input("ana").run()
    click(app, "decide_approve")
    assert any("Approved by ana" in told.value for told in app.success), words(app)
    approved = show_recommendation(store, action.action_id).action
    assert (approved.state, approved.decided_by) == (State.APPROVED, "ana")
    assert "decide_approve" not in [button.key for button in app.button]


def test_a_rejection_needs_a_reason_and_keeps_it(
    visitor: Visitor, place: Place, store: StoreClient
) -> None:
    action = one(store, Kind.COMPACT)
    app = visitor.at(place, PAGE, action=action.action_id)
    app.text_input(key="decide_actor").input("bo").run()
    assert app.button(key="decide_reject").disabled
    app.text_input(key=f"decide_reason_{action.action_id}").input("archived soon").run()
    click(app, "decide_reject")
    rejected = show_recommendation(store, action.action_id).action
    assert (rejected.state, rejected.decision_reason) == (State.REJECTED, "archived soon")


def test_a_snooze_lets_it_sleep(visitor: Visitor, place: Place, store: StoreClient) -> None:
    action = one(store, Kind.COMPACT)
    app = visitor.at(place, PAGE, action=action.action_id)
    app.text_input(key="decide_actor").input("bo").run()
    click(app, "decide_snooze")
    assert state(store, action) is State.SNOOZED


def test_what_deletes_files_wants_the_name_typed(
    visitor: Visitor, place: Place, store: StoreClient
) -> None:
    action = one(store, Kind.EXPIRE_SNAPSHOTS)
    app = visitor.at(place, PAGE, action=action.action_id)
    app.text_input(key="decide_actor").input("ana").run()
    assert app.button(key="decide_approve").disabled
    field = f"decide_confirm_{action.action_id}"
    app.text_input(key=field).input("events").run()
    assert app.button(key="decide_approve").disabled
    app.text_input(key=field).input(action.table_id).run()
    click(app, "decide_approve")
    assert state(store, action) is State.APPROVED


def test_a_refusal_is_told(visitor: Visitor, place: Place, store: StoreClient) -> None:
    action = one(store, Kind.COMPACT)
    app = visitor.at(place, PAGE, action=action.action_id)
    app.text_input(key="decide_actor").input("policy:1").run()
    click(app, "decide_approve")
    assert any("Not done" in told.value for told in app.warning)
    assert state(store, action) is State.PROPOSED


def test_filters_narrow_the_list(visitor: Visitor, place: Place) -> None:
    app = visitor.at(place, PAGE)
    app.selectbox(key="rec_kind").set_value("expire_snapshots").run()
    grid = app.dataframe[0].value
    assert set(grid["kind"]) == {"expire snapshots"}
    app.selectbox(key="rec_state").set_value("verified").run()
    assert "Nothing is in this state" in words(app)


def test_skew_is_explained_instead_of_cured(visitor: Visitor, place: Place) -> None:
    app = visitor.at(place, PAGE)
    grid = app.dataframe[-1].value
    why = dict(zip(grid["table"], grid["why"], strict=True))
    assert "No action cures it" in why["lake.demo.skewed"]


def test_an_unknown_action_is_told(visitor: Visitor, place: Place) -> None:
    app = visitor.at(place, PAGE, action="nobody")
    assert not app.exception
    assert any("not known" in info.value for info in app.info)
