"""The probe agent: look at every engine, note what is seen; what is wanted belongs to people."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from agents.runs import Result
from lakehouse_core.domain.engine import ConfiguredState, EngineProbe, ObservedState
from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from lakehouse_core.config.models import Config, EngineConfig
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.engines.base import Engine
    from lakehouse_core.store.port import TelemetryStore

CONFIGURATION = "configuration"
PATIENCE = timedelta(seconds=8)
ENGINES_SQL = """
SELECT engine_id, engine_type, dialect, catalog, url, configured, changed_by, reason, changed_at
FROM engine
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRow:
    """A row of `engine`: what the engine is, and the state it is wanted in."""

    engine_id: str
    engine_type: str
    dialect: str
    catalog: str | None
    url: str | None
    configured: str
    changed_by: str | None
    reason: str | None
    changed_at: datetime


class EnginePool:
    """The engines to probe, each opened when first needed and kept open."""

    def __init__(self, config: Config, open_engine: Callable[[str], Engine]) -> None:
        self.config = config
        self._open_engine = open_engine
        self._open: dict[str, Engine] = {}
        self._threads = ThreadPoolExecutor(len(config.engines) or 1, thread_name_prefix="probe")
        self._asked: dict[str, Future[EngineProbe]] = {}

    @property
    def wanted(self) -> Mapping[str, EngineConfig]:
        """The engines that are switched on."""
        return {name: one for name, one in self.config.engines.items() if one.enabled}

    def look(self, clock: Clock, patience: timedelta = PATIENCE) -> list[EngineProbe]:
        """Look at all engines side by side; one that hangs is told from one that is down.

        An engine that has not answered the last look is not asked again before it has.
        """
        wanted = list(self.wanted)
        for name in wanted:
            asked = self._asked.get(name)
            if asked is None or asked.done():
                self._asked[name] = self._threads.submit(self._probe, name, clock)
        futures = {name: self._asked[name] for name in wanted}
        wait(futures.values(), timeout=patience.total_seconds())
        return [
            future.result()
            if future.done()
            else _unhealthy(name, clock, f"no answer within {patience.total_seconds():g} s")
            for name, future in futures.items()
        ]

    def close(self) -> None:
        """Release every engine that was opened."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for engine in self._open.values():
            engine.close()
        self._open.clear()

    def _probe(self, name: str, clock: Clock) -> EngineProbe:
        try:
            engine = self._open.get(name)
            if engine is None:
                engine = self._open[name] = self._open_engine(name)
            return engine.probe()
        except LakehouseError as error:
            return _unhealthy(name, clock, str(error))


def run_once(
    pool: EnginePool, store: TelemetryStore, clock: Clock, patience: timedelta = PATIENCE
) -> Result:
    """Register the configured engines, look at each, and write down what was seen."""
    written = _register(pool.config, store, clock)
    probes = pool.look(clock, patience)
    if probes:
        written += store.upsert("engine_probe", to_arrow("engine_probe", probes))
    return Result(rows=written)


def _unhealthy(name: str, clock: Clock, detail: str) -> EngineProbe:
    return EngineProbe(
        engine_id=EngineId(name),
        probed_at=clock(),
        observed=ObservedState.UNHEALTHY,
        detail=detail,
    )


def _register(config: Config, store: TelemetryStore, clock: Clock) -> int:
    """Keep the registry in step with the configuration.

    A row is written only when it is new or the engine itself changed, so that a switch somebody
    throws at this very moment is not overwritten by what was read a moment before.
    """
    known = {row.engine_id: row for row in records(EngineRow, store.read(ENGINES_SQL))}
    rows = []
    for name, engine in config.engines.items():
        row = _row(name, engine, known.get(name), clock)
        if row != known.get(name):
            rows.append(row)
    return store.upsert("engine", to_arrow("engine", rows)) if rows else 0


def _row(name: str, engine: EngineConfig, known: EngineRow | None, clock: Clock) -> EngineRow:
    wanted = ConfiguredState.ACTIVE if engine.enabled else ConfiguredState.INACTIVE
    fresh = EngineRow(
        engine_id=name,
        engine_type=engine.type,
        dialect=engine.type,
        catalog=engine.catalog,
        url=engine.url,
        configured=wanted,
        changed_by=CONFIGURATION,
        reason=None,
        changed_at=clock(),
    )
    if known is None or _was_switched_by_configuration(known, wanted):
        return fresh
    return replace(
        fresh,
        configured=known.configured,
        changed_by=known.changed_by,
        reason=known.reason,
        changed_at=known.changed_at,
    )


def _was_switched_by_configuration(known: EngineRow, wanted: ConfiguredState) -> bool:
    """The configuration may change its own mind; a person's word stands."""
    return known.changed_by == CONFIGURATION and known.configured != wanted
