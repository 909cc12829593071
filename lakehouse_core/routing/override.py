"""A client names its engine itself: `X-Lakehelm-Engine: spark`, or `SET lakehelm.engine = 'spark'`.

Rules, group authorization and limits hold all the same; who may ask for it says the role.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.routing.groups import is_allowed
from lakehouse_core.routing.request import Denial

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.routing.groups import Group
    from lakehouse_core.routing.request import Request

ENGINE_HEADER = "X-Lakehelm-Engine"
_NAMES = (ENGINE_HEADER.lower(), "lakehelm.engine")  # PostgreSQL's settings reach us as headers


def engine_asked_for(request: Request) -> str | None:
    """The engine the client names; None: it leaves that to the router."""
    headers = request.headers
    return next((headers[name] for name in _NAMES if headers.get(name)), None)


def group_with(engine: str, groups: Iterable[Group], request: Request) -> Group | Denial:
    """The first group that has the engine and lets the user in.

    Args:
        engine: the engine the client names.
        groups: where to look, the preferred first.
        request: who asks.
    """
    known: dict[str, None] = {}
    for group in groups:
        if not group.is_enabled or not is_allowed(group.authorization, request):
            continue
        engines = [member.engine_id for member in group.members]
        if engine in engines:
            return group
        known.update(dict.fromkeys(engines))
    there = f"; there are {', '.join(known)}" if known else ""
    return Denial(
        "no_route", f"User {request.user or 'unknown'} can reach no engine {engine!r}{there}"
    )
