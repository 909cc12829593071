"""The one SQL endpoint as the demo's people use it: a Trino client of the gateway, as any other."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx

from lakehouse_core.domain.engine import EngineProbe, ObservedState
from lakehouse_core.domain.errors import EngineUnavailableError, QueryFailedError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.views.statements import (
    ANSWER_SECONDS,
    AWAY,
    Connection,
    Limits,
    Run,
    connection_to,
)

if TYPE_CHECKING:
    from lakehouse_core.config.gateway import SqlConfig
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.engines.base import Statement

# No engine can be called so: names of engines have no spaces.
NAME = "SQL endpoint"
LIMITS = Limits(rows=100_000)
PROBE_SECONDS = 5.0


class SqlEndpoint:
    """Where statements are sent that the gateway routes; takes the place of an engine in a run."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def execute(self, statement: Statement) -> None:
        """Run a statement to its end.

        Raises:
            EngineUnavailableError: nobody answers.
            QueryFailedError: it was refused, failed or took too long.
        """
        run = Run(self._of(statement), statement.sql, LIMITS).start()
        seen = run.wait(LIMITS.seconds + ANSWER_SECONDS)
        if not seen.is_over:
            run.cancel()
            raise QueryFailedError(f"no answer within {seen.seconds:.0f} s; it was stopped")
        if seen.problem is not None:
            is_away = seen.problem.name == AWAY
            raise (EngineUnavailableError if is_away else QueryFailedError)(seen.problem.message)

    def probe(self) -> EngineProbe:
        """Whether it answers."""
        observed, detail = ObservedState.HEALTHY, None
        try:
            with self._connection.client() as client:
                answer = client.get(f"{self._connection.url}/v1/info", timeout=PROBE_SECONDS)
            if answer.status_code != HTTPStatus.OK:
                observed, detail = ObservedState.UNHEALTHY, f"HTTP {answer.status_code}"
        except (httpx.HTTPError, OSError) as error:
            observed, detail = ObservedState.UNHEALTHY, f"{type(error).__name__}: {error}"
        return EngineProbe(
            engine_id=EngineId(NAME), probed_at=self._clock(), observed=observed, detail=detail
        )

    def close(self) -> None:
        """Nothing is held between statements."""

    def _of(self, statement: Statement) -> Connection:
        said = {"X-Trino-Source": statement.source, "X-Trino-Client-Tags": ",".join(statement.tags)}
        return replace(self._connection, user=statement.user, headers=said)


def open_endpoint(sql: SqlConfig, clock: Clock) -> SqlEndpoint | str:
    """The endpoint of a configuration, or why nobody of the demo can use it now."""
    if not sql.enabled:
        return "gateway.sql.enabled is false"
    if sql.asks_who:
        return "it asks for passwords or tokens, which the demo's people do not have"
    connection = connection_to(sql, user=NAME)
    endpoint = SqlEndpoint(connection, clock)
    probe = endpoint.probe()
    if probe.observed is ObservedState.HEALTHY:
        return endpoint
    return f"nobody answers at {connection.url} ({probe.detail})"
