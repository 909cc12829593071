"""The router over HTTP: what would happen to a statement, the rules in force, and new ones.

`POST /v1/route/explain` {"sql": …, "user": …}, `GET /v1/route/rules`, `POST /v1/route/reload`.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Route

from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.routing.explain import (
    BadQuestionError,
    explain,
    members_of,
    request_from,
    to_document,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from decimal import Decimal

    from starlette.requests import Request
    from starlette.responses import Response

    from lakehouse_core.routing.decide import Plan
    from lakehouse_core.routing.request import ScanEstimator
    from lakehouse_core.routing.router import Router

ROUTES = "/v1/route/explain, /v1/route/rules, /v1/route/reload"
_MOST_BYTES = 4 * 2**20


class RouteDesk:
    """Answers questions about the router of this process; its counts are live."""

    def __init__(
        self,
        router: Router,
        load: Callable[[], Plan],
        estimator: ScanEstimator | None = None,
        per_terabyte_usd: Mapping[str, Decimal] | None = None,
    ) -> None:
        self._router = router
        self._load = load
        self._estimator = estimator
        self._prices = per_terabyte_usd or {}

    def routes(self) -> list[Route]:
        """For the admin application."""
        return [
            Route("/v1/route/explain", self._explain, methods=["POST"]),
            Route("/v1/route/rules", self._rules),
            Route("/v1/route/reload", self._reload, methods=["POST"]),
        ]

    async def _explain(self, request: Request) -> Response:
        raw = await request.body()
        if len(raw) > _MOST_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "more than 4 MiB")
        try:
            asked = request_from(json.loads(raw))
        except (BadQuestionError, ValueError, RecursionError) as error:
            raise HTTPException(HTTPStatus.BAD_REQUEST, str(error)) from error
        found = explain(self._router, asked, self._estimator, self._prices)
        return JSONResponse(to_document(found))

    async def _rules(self, _: Request) -> Response:
        return JSONResponse(self.rules())

    def rules(self) -> dict[str, Any]:
        """The rules in order with their hits, and how full the groups are."""
        router, plan = self._router, self._router.plan
        return {
            "source": plan.source,
            "rules": [
                {"rule": rule.name, "says": rule.says, "hits": rule.hits} for rule in plan.rules
            ],
            "routing_fallback": plan.layout.fallback,
            "groups": [
                {
                    "group": group.name,
                    "strategy": group.strategy_name,
                    "running": router.decider.capacity.in_group(group.name),
                    "running_limit": group.total_limit,
                    "waiting": router.waiting(group.name),
                    "queue_limit": group.queue_limit,
                    "members": [
                        {
                            "member": view.member,
                            "engine_id": view.engine_id,
                            "running": view.running,
                            "limit": view.limit,
                            "circuit": view.circuit,
                            "obstacle": view.obstacle,
                        }
                        for view in members_of(router, group)
                    ],
                }
                for group in plan.layout.groups.values()
            ],
        }

    async def _reload(self, _: Request) -> Response:
        # Reading files is no work for the loop; taking the rules over is.
        loaded = await asyncio.to_thread(self._read)
        done = self._router.reload(loaded)
        status = HTTPStatus.OK if done.is_done else HTTPStatus.CONFLICT
        body = {"is_done": done.is_done, "message": done.message}
        return JSONResponse(body, status_code=status)

    def _read(self) -> Callable[[], Plan]:
        """The new plan, or what is wrong with it, to be told when it is taken over."""
        try:
            plan = self._load()
        except ConfigError as error:
            return _raiser(error)
        return lambda: plan


def _raiser(error: ConfigError) -> Callable[[], Plan]:
    def fail() -> Plan:
        raise error

    return fail
