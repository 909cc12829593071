"""What people propose: planned like everything else, refused with a reason, never withdrawn."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agents import recommend
from agents.decide import Decisions
from agents.propose import Proposals
from lakehouse_core.domain.errors import MaintenanceError
from lakehouse_core.domain.maintenance import DecisionRequest, Kind, State
from lakehouse_core.maintenance.audit import AUDIT_SQL, read_head, verify_chain
from lakehouse_core.maintenance.records import actions_of, audit_of, requests_of
from lakehouse_core.recommend.by_hand import RISKS, Idea
from tests.factories import decision_request
from tests.unit.recommend.test_cures import SMALL

if TYPE_CHECKING:
    from lakehouse_core.config import Config
    from lakehouse_core.domain.maintenance import Action
    from tests.conftest import DemoConfig
    from tests.unit.recommend.conftest import Lake

ORDERED = {Kind.SORT, Kind.ZORDER, Kind.HILBERT, Kind.SET_SORT_ORDER}


@pytest.fixture(scope="module")
def config(load_demo_config: DemoConfig) -> Config:
    return load_demo_config()


def idea(kind: Kind = Kind.REMOVE_ORPHANS, **parameters: Any) -> Idea:
    return Idea(table_id="lake.demo.events", kind=kind, parameters=parameters)


def wish(lake: Lake, config: Config, text: str, **given: Any) -> DecisionRequest:
    values = {"verb": "propose", "plan_hash": "0" * 64, "asked_at": lake.now, "proposal": text}
    asked = decision_request(action_id=given.pop("action_id", "anew"), **{**values, **given})
    lake.add("decision_request", asked)
    assert Proposals(lake.store, config, lake.clock).take_up() == 1
    entries = audit_of(lake.store.read(AUDIT_SQL))
    assert verify_chain(entries, read_head(lake.store.path)).is_intact
    rows = requests_of(lake.store.read("SELECT * FROM decision_request"))
    return next(one for one in rows if one.request_id == asked.request_id)


def actions(lake: Lake) -> list[Action]:
    return list(actions_of(lake.store.read("SELECT * FROM action ORDER BY action_id")))


@pytest.mark.parametrize("kind", sorted(Kind))
def test_every_kind_can_be_proposed(lake: Lake, config: Config, kind: Kind) -> None:
    lake.table("events")
    parameters = {"columns": ["day", 'odd"; name']} if kind in ORDERED else {}
    answer = wish(lake, config, idea(kind, **parameters).to_json(), reason="I know it")
    assert answer.state == "done", answer.answer
    (found,) = actions(lake)
    assert (found.kind, found.state, found.proposed_by) == (kind, State.PROPOSED, "ana")
    assert found.action_id == "anew"
    assert found.reason == "I know it"
    assert found.risk == RISKS[kind]
    assert found.plan.stages


def test_what_a_cure_would_propose_has_its_prediction(lake: Lake, config: Config) -> None:
    lake.table("events", **SMALL)
    wish(lake, config, idea(Kind.COMPACT).to_json())
    (found,) = actions(lake)
    assert found.proposed_by == "ana"
    assert [one.name for one in found.predicted] == ["data_files", "total_bytes", "score"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 3_900,
        '{"table":' * 400,
        "[]",
        '"x"',
        '{"table": "lake.demo.events"}',
        '{"table": "lake.demo.events", "kind": "vacuum"}',
        '{"table": 5, "kind": "compact"}',
        '{"table": "lake.demo.nobody", "kind": "compact"}',
        '{"table": "lake.demo.events", "kind": "sort"}',
        '{"table": "lake.demo.events", "kind": "sort", "parameters": {"columns": "day"}}',
        '{"table": "lake.demo.events", "kind": "sort", "parameters": {"columns": [1]}}',
        '{"table": "lake.demo.events", "kind": "compact", "parameters": {"where": "1=1"}}',
        '{"table": "lake.demo.events", "kind": "compact", "parameters": {"target_file_bytes": 1}}',
        (
            '{"table": "lake.demo.events", "kind": "compact", '
            '"parameters": {"target_file_bytes": true}}'
        ),
        (
            '{"table": "lake.demo.events", "kind": "expire_snapshots", '
            '"parameters": {"older_than": "2030-01-01T00:00:00+00:00"}}'
        ),
    ],
)
def test_what_cannot_be_planned_is_refused_with_an_audit_row(
    lake: Lake, config: Config, text: str
) -> None:
    lake.table("events")
    answer = wish(lake, config, text)
    assert answer.state == "refused"
    assert answer.answer
    assert actions(lake) == []
    assert [one.verb for one in audit_of(lake.store.read(AUDIT_SQL))] == ["propose refused"]


@pytest.mark.parametrize(
    "given", [{"actor": "lakehelm"}, {"actor": "Policy:1"}, {"asked_at": timedelta(hours=-1)}]
)
def test_names_of_ours_and_old_wishes_are_refused(
    lake: Lake, config: Config, given: dict[str, Any]
) -> None:
    lake.table("events")
    if "asked_at" in given:
        given = {"asked_at": lake.now + given["asked_at"]}
    assert wish(lake, config, idea().to_json(), **given).state == "refused"


def test_the_same_is_not_proposed_twice(lake: Lake, config: Config) -> None:
    lake.table("events")
    wish(lake, config, idea().to_json())
    again = wish(lake, config, idea().to_json(), action_id="another", actor="bo")
    assert again.state == "refused"
    assert "anew" in str(again.answer)
    other = wish(
        lake, config, idea(Kind.SORT, columns=["a"]).to_json(), action_id="third", actor="bo"
    )
    assert other.state == "done"


def test_a_proposal_by_hand_stands_until_its_time_is_over(lake: Lake, config: Config) -> None:
    lake.table("events")
    wish(lake, config, idea().to_json())
    before = actions(lake)
    recommend.run_once(lake.store, config, lake.clock)
    assert actions(lake) == before
    lake.wait(config.maintenance.expires_after)
    recommend.run_once(lake.store, config, lake.clock)
    assert [one.state for one in actions(lake)] == [State.EXPIRED]


@pytest.mark.slow
def test_whoever_proposed_it_does_not_approve_it(lake: Lake, config: Config) -> None:
    lake.table("events")
    wish(lake, config, idea(Kind.COMPACT).to_json())
    (found,) = actions(lake)
    strict = config.maintenance.model_copy(update={"four_eyes": True})
    for actor in ("ana", "bo"):
        asked = decision_request(
            action_id=found.action_id, plan_hash=found.plan_hash, asked_at=lake.now, actor=actor
        )
        lake.add("decision_request", asked)
        Decisions(lake.store, strict, lake.clock).take_up()
    (approved,) = actions(lake)
    assert (approved.state, approved.decided_by) == (State.APPROVED, "bo")


def test_an_idea_comes_back_as_it_was() -> None:
    given = idea(Kind.ZORDER, columns=["a", "Ω"], target_file_bytes=2**27)
    assert Idea.from_json(given.to_json()) == given
    with pytest.raises(MaintenanceError, match="8 names"):
        Idea.from_json(idea(Kind.SORT, columns=list("abcdefghi")).to_json())
