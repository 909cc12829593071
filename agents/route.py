"""The route agent: measures what routing brought, proposes moves, takes trials a step on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from agents import trials
from agents.runs import Result
from lakehouse_core.routing.build import make_plan
from lakehouse_core.store.schema import schema_of
from lakehouse_core.views.regret import routing_regret

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore
    from lakehouse_core.views.regret import MeasureRegret

WINDOW = "7d"


def run_once(store: OwnerStore, config: Config, clock: Clock) -> Result:
    """Measure the regret of the last week, look at trials, propose what pays."""
    found = routing_regret(store, clock, window=WINDOW)
    rows = [
        _row(measure, clock)
        | {"baseline": one.name, "engine_id": one.engine, "total": float(one.total)}
        for measure in (found.cost, found.seconds)
        for one in measure.baselines
    ]
    if rows:
        store.upsert("route_regret", pa.Table.from_pylist(rows, schema=schema_of("route_regret")))
    changed = trials.take_steps(store, clock) + trials.propose(store, clock, _groups(config))
    return Result(rows=len(rows) + changed)


def _groups(config: Config) -> dict[str, set[str]]:
    """The engines of each group that statements can be sent to; the routing is read anew."""
    groups = make_plan(config).layout.groups.values()
    return {
        group.name: {one.engine_id for one in group.members if not one.unusable} for group in groups
    }


def _row(found: MeasureRegret[Any], clock: Clock) -> dict[str, Any]:
    return {
        "measure": found.measure,
        "measured_at": clock(),
        "window_spec": WINDOW,
        "unit": found.unit,
        "actual": float(found.actual),
        "runs": found.runs,
        "compared_runs": found.compared_runs,
    }
