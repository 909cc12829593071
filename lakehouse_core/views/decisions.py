"""Deciding about an action from a page or a command: send the wish, wait for the answer.

Any client may ask, also one that may only read: `decide action <wish>` is a command of the owner
that notes the wish (store/gate.py); the agents process checks it and answers within seconds.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import MaintenanceError, NotFoundError, StoreUnavailableError
from lakehouse_core.maintenance.records import requests_of

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import DecisionRequest, DecisionVerb
    from lakehouse_core.recommend.by_hand import Idea
    from lakehouse_core.store.client import StoreClient

PATIENCE_SECONDS = 10.0
NO_PLAN = "0" * 64  # of a proposal there is no plan yet
LONGEST_TEXT = 1_000
LONGEST_NAME = 120
_PAUSE_SECONDS = 0.2

REQUEST_SQL = "SELECT * FROM decision_request WHERE request_id = $request::VARCHAR"
KNOWN_SQL = """
SELECT action_id FROM action WHERE action_id = $action::VARCHAR
UNION ALL SELECT trial_id FROM route_trial WHERE trial_id = $action::VARCHAR
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody wants to happen to an action.

    Attributes:
        action_id: the action.
        verb: approve, reject, snooze or cancel.
        actor: who wants it.
        plan_hash: of the plan the actor has seen.
        reason: kept with the decision.
        confirmation: the table's name, typed, for what deletes files.
        until: end of a snooze.
    """

    action_id: str
    verb: DecisionVerb
    actor: str
    plan_hash: str
    reason: str | None = None
    confirmation: str | None = None
    until: datetime | None = None


def ask(store: StoreClient, wish: Wish, *, patience: float = PATIENCE_SECONDS) -> DecisionRequest:
    """Send a wish and wait for its answer.

    Returns:
        The wish as answered: `done` or `refused`, with the answer in words.

    Raises:
        NotFoundError: there is no such action.
        MaintenanceError: it was not taken: too long, or too many at once.
        StoreUnavailableError: the agents process does not run, or did not answer in time.
    """
    _check(wish)
    if not store.read(KNOWN_SQL, action=wish.action_id).num_rows:
        raise NotFoundError(
            f"Action {wish.action_id!r} is not known. See `lakehelm recommend list`."
        )
    return _send(store, wish, patience)


def propose(
    store: StoreClient,
    idea: Idea,
    *,
    actor: str,
    reason: str | None = None,
    patience: float = PATIENCE_SECONDS,
) -> DecisionRequest:
    """Propose an action by hand and wait for the answer; it has the id of the action to be.

    Raises:
        MaintenanceError: it was not taken: too long, or too many at once.
        StoreUnavailableError: the agents process does not run, or did not answer in time.
    """
    wish = Wish(
        action_id=f"a{secrets.token_hex(6)}",
        verb="propose",
        actor=actor,
        plan_hash=NO_PLAN,
        reason=reason,
    )
    _check(wish)
    return _send(store, wish, patience, idea.to_json())


def _send(
    store: StoreClient, wish: Wish, patience: float, proposal: str | None = None
) -> DecisionRequest:
    request_id = secrets.token_hex(16)
    text = _encoded(request_id, wish, proposal)
    taken = requests_of(store.command(f"decide action {text}"))
    if not taken:
        raise MaintenanceError(
            "It was not taken: too many decisions were sent within a minute, or it is too long. "
            "Try again in a minute"
        )
    deadline = time.monotonic() + patience
    while True:
        seen = requests_of(store.read(REQUEST_SQL, request=request_id))[0]
        if seen.state != "waiting":
            return seen
        if time.monotonic() >= deadline:
            raise StoreUnavailableError(
                f"The wish about {wish.action_id} waits: the agents process has not answered "
                f"within {patience:.0f} s. See `lakehelm agents`; `lakehelm recommend show "
                f"{wish.action_id}` tells what became of it"
            )
        time.sleep(_PAUSE_SECONDS)


def _check(wish: Wish) -> None:
    texts = (("reason", wish.reason), ("confirmation", wish.confirmation))
    for name, text in texts:
        if text is not None and len(text) > LONGEST_TEXT:
            raise MaintenanceError(f"The {name} is longer than {LONGEST_TEXT:,} characters")
    if not 1 <= len(wish.actor.strip()) <= LONGEST_NAME:
        raise MaintenanceError(
            f"A decision needs the name of who decides, at most {LONGEST_NAME} characters"
        )


def _encoded(request_id: str, wish: Wish, proposal: str | None) -> str:
    document = {
        "request_id": request_id,
        "action_id": wish.action_id,
        "verb": wish.verb,
        "actor": wish.actor.strip(),
        "plan_hash": wish.plan_hash,
        "reason": wish.reason,
        "confirmation": wish.confirmation,
        "proposal": proposal,
        "until": wish.until.astimezone(UTC).isoformat() if wish.until else None,
    }
    given = {name: value for name, value in document.items() if value is not None}
    # Not escaped to ASCII: a name of 1,000 characters may be 4,000 bytes long, not 12,000.
    text = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode("utf-8", "replace")).decode("ascii")
