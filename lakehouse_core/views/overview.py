"""What do I need to know today? The first page in one record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.views.changes import Change, what_changed
from lakehouse_core.views.engines import EngineView, with_service
from lakehouse_core.views.freshness import Freshness, Job, freshness
from lakehouse_core.views.health import HealthView, StateCounts, count_states, list_health
from lakehouse_core.views.red import Red, RedSummary, red_in

if TYPE_CHECKING:
    from datetime import timedelta

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.filters import Filters
    from lakehouse_core.views.window import Window

_CARE_LIMIT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The figures of the first page.

    Attributes:
        window: what they are about.
        red: rate, errors and duration, in all and per engine.
        engines: every engine with its state beside them.
        before: the same total in the window before.
        freshness: how old all of it is.
        tables: how many tables are in each state now.
        care: the tables that need care, worst first.
        changes: what changed within the window.
    """

    window: Window
    red: RedSummary
    engines: tuple[EngineView, ...]
    before: Red
    freshness: Freshness
    tables: StateCounts
    care: tuple[HealthView, ...]
    changes: tuple[Change, ...]


def overview(
    store: TelemetryStore,
    expected: tuple[Job, ...],
    filters: Filters,
    clock: Clock,
    *,
    probe_every: timedelta,
) -> Overview:
    """Everything the first page shows, for the window and engine of the filter bar."""
    now = clock()
    bar = filters.only_engine()
    window = bar.window_at(now)
    verdicts = list_health(store)
    served = red_in(store, bar, window)
    return Overview(
        window=window,
        red=served,
        engines=with_service(store, served, bar, now, probe_every),
        before=red_in(store, bar, window.previous()).total,
        freshness=freshness(store, expected, clock),
        tables=count_states(verdicts),
        care=tuple(v for v in verdicts if v.state in {"critical", "warning"})[:_CARE_LIMIT],
        changes=what_changed(store, bar, window),
    )
