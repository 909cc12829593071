"""What the schedule knows of its jobs, kept in the store: read at the start, written on change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.agent import AgentState
from lakehouse_core.domain.circuit import Circuit
from lakehouse_core.domain.errors import StoreError
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.store.port import TelemetryStore

STATES_SQL = """
SELECT agent, circuit, failures, since, reason, retry_at, abandoned, updated_at FROM agent_state
"""
_log = structlog.get_logger(__name__)


def read_circuits(store: TelemetryStore) -> dict[str, Circuit]:
    """The circuits as the last process left them."""
    return {
        kept.agent: Circuit(
            state=kept.circuit, since=kept.since, failures=kept.failures, reason=kept.reason
        )
        for kept in records(AgentState, store.read(STATES_SQL))
    }


def write_states(store: TelemetryStore, states: Sequence[AgentState]) -> None:
    """Keep states; a store that cannot take them stops no job."""
    if not states:
        return
    try:
        store.upsert("agent_state", to_arrow("agent_state", states))
    except StoreError as error:
        _log.error("agent.state_not_recorded", detail=str(error))
