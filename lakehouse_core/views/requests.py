"""Asking the agents process to run a job at once, and following what becomes of it.

Any client may ask, also one that may only read: `run agent <name>` is a command of the owner that
notes the wish (store/gate.py); the schedule takes it up within a second.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from lakehouse_core.domain.agent import AgentRequest
from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from lakehouse_core.store.client import StoreClient
    from lakehouse_core.store.port import TelemetryStore

REQUEST_SQL = """
SELECT request_id, agent, asked_at, state, taken_at, ended_at, run_id, answer FROM agent_request
WHERE request_id = $request::VARCHAR
"""
KNOWN_SQL = "SELECT agent FROM agent_state ORDER BY agent"


def ask_for_run(store: StoreClient, agent: str) -> AgentRequest:
    """Ask for a run; the request that stands, when somebody asked already.

    Raises:
        NotFoundError: no such job is scheduled; names the nearest.
        StoreUnavailableError: the agents process does not run.
    """
    known = store.read(KNOWN_SQL).column("agent").to_pylist()
    if agent not in known:
        raise NotFoundError(_unknown(agent, known))
    return records(AgentRequest, store.command(f"run agent {agent}"))[0]


def request_state(store: TelemetryStore, request_id: str) -> AgentRequest | None:
    """What became of a request; None when its time in the store is over."""
    found = records(AgentRequest, store.read(REQUEST_SQL, request=request_id))
    return found[0] if found else None


def follow(
    store: TelemetryStore,
    request: AgentRequest,
    *,
    wait: Callable[[], bool],
    on_state: Callable[[AgentRequest], None] = lambda _: None,
) -> AgentRequest:
    """Wait until a request is answered, or `wait` (which pauses) says that it was long enough."""
    seen = request
    while seen.state in {"waiting", "running"} and wait():
        seen = request_state(store, request.request_id) or seen
        on_state(seen)
    return seen


def _unknown(agent: str, known: Collection[str]) -> str:
    if not known:
        return f"Job {agent!r} is not known: the agents process has not started yet"
    near = get_close_matches(agent, known, n=2, cutoff=0.5)
    near = near or [name for name in known if name.endswith(f":{agent}")]
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known are: {', '.join(known)}."
    return f"Job {agent!r} is not scheduled. {hint}"
