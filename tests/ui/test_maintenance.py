"""The page of maintenance: what runs with its bar and log, what was done, refused; cancelling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.config import load_config
from lakehouse_core.domain.agent import AgentProgress
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.maintenance import Action, Change, State
from lakehouse_core.maintenance.job import operation_of, run_of
from lakehouse_core.maintenance.records import actions_of
from lakehouse_core.maintenance.states import Ledger
from lakehouse_core.store.rows import to_arrow
from tests.ui.conftest import Place, Visitor, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.ui
PAGE = "maintenance"
PATHS = {
    "waiting": [State.APPROVED, State.SCHEDULED],
    "running": [State.APPROVED, State.RUNNING],
    "done": [State.APPROVED, State.RUNNING, State.VERIFYING, State.VERIFIED],
    "refused": [State.APPROVED, State.REFUSED],
}


@pytest.fixture
def place(tmp_path: Path, repository: Path) -> Place:
    return Place.below(tmp_path, repository)


@pytest.fixture
def owner(place: Place) -> Iterator[OwnerStore]:
    with place.served(filled=True) as opened:
        yield opened


def brought(owner: OwnerStore, group: str, **facts: Any) -> Action:
    """An action that went all the way to a group."""
    ledger = Ledger(owner, utc_now)
    action = actions_of(owner.read("SELECT * FROM action WHERE state = 'proposed' LIMIT 1"))[0]
    for state in PATHS[group]:
        given = {"decided_by": "ana", "decided_at": utc_now()} if state is State.APPROVED else {}
        if state is State.RUNNING:
            given = {
                "started_at": utc_now(),
                "operation_id": operation_of("20261116T120000-ab", action.action_id),
            }
        if state is PATHS[group][-1]:
            given |= facts
        action = ledger.move(action, state, by="lakehelm", **given)
    return action


def test_what_runs_has_a_bar_and_a_log(visitor: Visitor, place: Place, owner: OwnerStore) -> None:
    action = brought(owner, "running")
    progress = AgentProgress(
        agent=f"maintain/{action.action_id}", done=2, total=4, unit="compact", updated_at=utc_now()
    )
    owner.upsert("agent_progress", to_arrow("agent_progress", [progress]))
    config = load_config(environ=place.environ).config
    log = run_of(config.home, action.operation_id or "").files.log
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("progress 2/4 compact\nrewriting group 7\n")
    app = visitor.at(place, PAGE)
    assert not app.exception
    assert "rewriting group 7" in words(app)
    bars = app.get("progress")
    assert [bar.proto.value for bar in bars] == [50]


def test_what_was_done_shows_before_predicted_and_realised(
    visitor: Visitor, place: Place, owner: OwnerStore
) -> None:
    realised = (
        Change(name="data_files", unit="files", before=336, after=2),
        Change(name="score", unit="points", before=40, after=97),
    )
    check = {"name": "rows of day=1", "expected": "12:ab", "found": "12:ab", "ok": True}
    action = brought(
        owner,
        "done",
        realised=realised,
        verification=(check,),
        explanation="data files 336 → 2",
        ended_at=utc_now(),
    )
    app = visitor.at(place, PAGE, action=action.action_id)
    assert not app.exception
    assert "data files 336 → 2" in words(app)
    cells = " ".join(str(frame.value.to_dict()) for frame in app.dataframe)
    assert "336 → 2" in cells
    assert "rows of day=1" in cells


def test_what_ends_between_two_looks_is_in_the_list_as_soon_as_it_is_counted(
    visitor: Visitor, place: Place, owner: OwnerStore
) -> None:
    action = brought(owner, "running")
    assert not visitor.at(place, PAGE).dataframe
    ledger = Ledger(owner, utc_now)
    for state in (State.VERIFYING, State.VERIFIED):
        action = ledger.move(action, state, by="lakehelm")
    app = visitor.at(place, PAGE)
    assert app.metric[2].value == "1"
    assert action.title in str([frame.value.to_dict() for frame in app.dataframe])


def test_what_was_refused_says_why(visitor: Visitor, place: Place, owner: OwnerStore) -> None:
    brought(owner, "refused", explanation="gc.enabled=false: it shares files", ended_at=utc_now())
    app = visitor.at(place, PAGE)
    assert not app.exception
    assert "gc.enabled=false" in str([frame.value.to_dict() for frame in app.dataframe])


def test_a_waiting_action_is_cancelled_with_a_name(
    visitor: Visitor, place: Place, owner: OwnerStore
) -> None:
    action = brought(owner, "waiting", explanation="It waits for its window")
    app = visitor.at(place, PAGE, action=action.action_id)
    assert app.button(key="decide_cancel").disabled
    app.text_input(key="cancel_actor").input("bo").run()
    app.button(key="decide_cancel").click().run(timeout=60)
    assert not app.exception
    assert Ledger(owner, utc_now).get(action.action_id).state is State.CANCELLED
    assert any("Cancelled by bo" in told.value for told in app.success), words(app)
