"""`decide action`: anybody may wish, about known actions, in bounds; nothing in a wish is SQL."""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.errors import NotFoundError, StoreError, StoreUnavailableError
from lakehouse_core.maintenance.records import requests_of
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views import decisions
from lakehouse_core.views.decisions import Wish, ask
from tests.factories import NOW, action

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import Action
    from lakehouse_core.store.client import StoreClient
    from tests.integration.store.conftest import OwnerProcess

pytestmark = pytest.mark.duckdb
NASTY = 'it\'s "quoted"; DROP TABLE action; --\n{file} $1 \u2028 Ωж'


@pytest.fixture
def proposal(served: OwnerProcess) -> Action:
    """A known action; no wish of another test is left."""
    made = action(action_id=f"a{secrets.token_hex(4)}", revision=1)
    with served.client("writer") as client:
        client.upsert("action", to_arrow("action", [made]))
        answered = [
            _answered(one) for one in requests_of(client.read("SELECT * FROM decision_request"))
        ]
        if answered:
            client.upsert("decision_request", to_arrow("decision_request", answered))
    return made


def _answered(one: Any) -> Any:

    return replace(one, state="done", asked_at=NOW)


def encoded(**given: Any) -> str:
    document = {"request_id": secrets.token_hex(16), "verb": "approve", "actor": "ana", **given}
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode()


def wishes(client: StoreClient, about: Action) -> int:
    sql = "SELECT 1 FROM decision_request WHERE action_id = $id"
    return client.read(sql, id=about.action_id).num_rows


def send(client: StoreClient, text: str) -> int:
    """How many rows came back; a refusal of the gate counts as none."""
    try:
        return client.command(f"decide action {text}").num_rows
    except StoreError:
        return 0


def test_a_reader_may_wish_and_every_character_arrives(
    reader: StoreClient, proposal: Action
) -> None:
    text = encoded(
        action_id=proposal.action_id,
        plan_hash=proposal.plan_hash,
        actor=NASTY,
        reason=NASTY,
        confirmation=NASTY,
        until="2026-12-01T00:00:00+00:00",
    )
    (row,) = requests_of(reader.command(f"decide action {text}"))
    assert (row.actor, row.reason, row.confirmation) == (NASTY, NASTY, NASTY)
    assert (row.state, row.verb) == ("waiting", "approve")
    assert row.until is not None
    assert row.until.isoformat().startswith("2026-12-01T")


def test_a_proposal_by_hand_is_about_an_action_to_be(reader: StoreClient) -> None:
    name = f"a{secrets.token_hex(6)}"
    text = encoded(action_id=name, plan_hash="0" * 64, verb="propose", proposal=NASTY)
    (row,) = requests_of(reader.command(f"decide action {text}"))
    assert (row.action_id, row.verb, row.proposal) == (name, "propose", NASTY)


def test_a_wish_that_is_sent_twice_counts_once(reader: StoreClient, proposal: Action) -> None:
    text = encoded(action_id=proposal.action_id, plan_hash=proposal.plan_hash)
    first, second = (reader.command(f"decide action {text}").to_pylist() for _ in range(2))
    assert first == second
    assert wishes(reader, proposal) == 1


@pytest.mark.parametrize(
    "given",
    [
        {"verb": "drop"},
        {"verb": None},
        {"actor": ""},
        {"actor": "x" * 121},
        {"actor": None},
        {"reason": "x" * 1001},
        {"confirmation": "x" * 1001},
        {"plan_hash": "zz"},
        {"plan_hash": None},
        {"request_id": "x"},
        {"request_id": None},
        {"action_id": "nobody"},
        {"action_id": None},
        {"until": "soon"},
        {"verb": "propose"},
        {"verb": "propose", "proposal": "{}"},  # the action is known already
        {"verb": "propose", "proposal": "{}", "action_id": "a b"},
        {"verb": "propose", "proposal": "x" * 4001, "action_id": "anew"},
        {"proposal": "{}"},
    ],
)
def test_a_bad_wish_leaves_nothing(
    reader: StoreClient, proposal: Action, given: dict[str, Any]
) -> None:
    good = {"action_id": proposal.action_id, "plan_hash": proposal.plan_hash}
    assert send(reader, encoded(**{**good, **given})) == 0
    assert wishes(reader, proposal) == 0


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "AAAA",
        "====",
        "a'b",
        "eyJ9",
        base64.urlsafe_b64encode(b"\xff\xfe\x00").decode(),
        base64.urlsafe_b64encode(b"[1, 2]").decode(),
        base64.urlsafe_b64encode(b'"text"').decode(),
        "A" * 16_001,
        "A" * 200_000,
    ],
)
def test_what_is_no_wish_at_all_leaves_nothing(
    reader: StoreClient, proposal: Action, text: str
) -> None:
    before = reader.read("SELECT 1 FROM decision_request").num_rows
    assert send(reader, text) == 0
    assert reader.read("SELECT 1 FROM decision_request").num_rows == before


def test_wishes_cannot_fill_the_store(reader: StoreClient, proposal: Action) -> None:
    good = {"action_id": proposal.action_id, "plan_hash": proposal.plan_hash}
    taken = sum(send(reader, encoded(**good)) for _ in range(70))
    assert taken == wishes(reader, proposal)
    assert taken <= 50


def test_an_unknown_action_is_told_before_it_is_sent(reader: StoreClient) -> None:
    wish = Wish(action_id="nobody", verb="approve", actor="ana", plan_hash="ab" * 32)
    with pytest.raises(NotFoundError, match="recommend list"):
        ask(reader, wish)


def test_a_wish_nobody_answers_is_told_with_what_to_look_at(
    reader: StoreClient, proposal: Action
) -> None:
    wish = Wish(
        action_id=proposal.action_id, verb="approve", actor="ana", plan_hash=proposal.plan_hash
    )
    with pytest.raises(StoreUnavailableError, match="lakehelm agents"):
        ask(reader, wish, patience=0.1)


def test_statements_of_decisions_pass_the_gate(reader: StoreClient) -> None:
    assert reader.read(decisions.REQUEST_SQL, request="x").num_rows == 0
    assert reader.read(decisions.KNOWN_SQL, action="x").num_rows == 0
