"""Asking for an engine's state from a page or a command: send the wish, wait for the answer.

Any client may ask, also one that may only read: `set engine <wish>` is a command of the owner that
notes the wish (store/gate.py); the agents process answers within seconds.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from difflib import get_close_matches
from typing import TYPE_CHECKING

from lakehouse_core.domain.engine import EngineRequest
from lakehouse_core.domain.errors import FilterError, NotFoundError, StoreUnavailableError
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from lakehouse_core.domain.engine import ConfiguredState
    from lakehouse_core.store.client import StoreClient

PATIENCE_SECONDS = 10.0
LONGEST_REASON = 1_000
LONGEST_NAME = 120
_PAUSE_SECONDS = 0.2

REQUEST_SQL = "SELECT * FROM engine_request WHERE request_id = $request::VARCHAR"
KNOWN_SQL = "SELECT engine_id FROM engine ORDER BY engine_id"


def set_engine(
    store: StoreClient,
    engine_id: str,
    wanted: ConfiguredState,
    *,
    actor: str,
    reason: str | None = None,
    patience: float = PATIENCE_SECONDS,
) -> EngineRequest:
    """Ask for a state and wait for the answer.

    Returns:
        The wish as answered: `done` or `refused`, with the answer in words.

    Raises:
        NotFoundError: there is no such engine; names the nearest.
        FilterError: a text is too long, nobody is named, or too many wishes came at once.
        StoreUnavailableError: the agents process does not run, or did not answer in time.
    """
    _check(actor, reason)
    known = store.read(KNOWN_SQL).column("engine_id").to_pylist()
    if engine_id not in known:
        near = get_close_matches(engine_id, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known) or 'none'}"
        raise NotFoundError(f"Engine {engine_id!r} is not known: {hint}")
    request_id = secrets.token_hex(16)
    wish = {
        "request_id": request_id,
        "engine_id": engine_id,
        "configured": wanted.value,
        "actor": actor.strip(),
        "reason": reason,
    }
    text = base64.urlsafe_b64encode(json.dumps(wish).encode()).decode()
    if not store.command(f"set engine {text}").num_rows:
        raise FilterError("It was not taken: too many wishes within a minute. Try again later")
    deadline = time.monotonic() + patience
    while True:
        seen = records(EngineRequest, store.read(REQUEST_SQL, request=request_id))[0]
        if seen.state != "waiting":
            return seen
        if time.monotonic() >= deadline:
            raise StoreUnavailableError(
                f"The wish about {engine_id} waits: the agents process has not answered within "
                f"{patience:.0f} s. `lakehelm engines` tells what became of it"
            )
        time.sleep(_PAUSE_SECONDS)


def _check(actor: str, reason: str | None) -> None:
    if not 1 <= len(actor.strip()) <= LONGEST_NAME:
        raise FilterError(f"Say who asks (--actor), in at most {LONGEST_NAME} characters")
    if len(reason or "") > LONGEST_REASON:
        raise FilterError(f"The reason is longer than {LONGEST_REASON:,} characters")
