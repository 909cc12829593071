"""Which members may take a statement at all, before one is preferred; and why the others not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.domain.engine import ConfiguredState, ObservedState

if TYPE_CHECKING:
    from lakehouse_core.routing.groups import Member
    from lakehouse_core.routing.request import EngineStanding, Request, StatementFacts

# UNKNOWN is no obstacle: when nobody looks any more, the engines still work, and the breaker sees
# those that do not.
_OUT_OF_SERVICE = (ObservedState.UNHEALTHY, ObservedState.PENDING)


def state_obstacle(member: Member, standing: EngineStanding) -> str | None:
    """Why nobody may use a member now."""
    if member.unusable:
        return member.unusable
    if standing.configured is not ConfiguredState.ACTIVE:
        return standing.reason or f"it is {standing.configured}"
    if standing.observed in _OUT_OF_SERVICE:
        return f"it is {standing.observed}" + (f": {standing.reason}" if standing.reason else "")
    return None


def statement_obstacle(
    member: Member, request: Request, facts: StatementFacts, ours: frozenset[str]
) -> str | None:
    """Why a member cannot take this statement.

    Args:
        member: the member.
        request: the request.
        facts: what its text tells.
        ours: names of the configured catalogs.
    """
    if facts.error is not None:
        if member.dialect != request.dialect:
            return "the text is not understood, so that only an engine of its dialect may get it"
        return None
    if not member.can_write and not facts.is_read_only:
        return f"it takes no {facts.kind} statements"
    for catalog in facts.catalogs:
        if catalog in ours:
            if member.catalog is not None and catalog != member.catalog:
                return f"it does not reach catalog {catalog}"
        elif member.dialect != request.dialect:
            return f"catalog {catalog} is none of ours; only an engine of its dialect may know it"
    return None
