"""The verdict on a table: state, score that explains itself, contributors worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.domain.health import Contributor, HealthState, TableHealth
from lakehouse_core.health.points import SHARES, severity, state_of
from lakehouse_core.health.rules import RULES, Facts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from lakehouse_core.config.models import HealthThresholds
    from lakehouse_core.domain.table import LakeTable, TableMetrics
    from lakehouse_core.health.rules import Signal

_WORST_FIRST = (HealthState.CRITICAL, HealthState.WARNING)


def assess(metrics: TableMetrics, thresholds: HealthThresholds, now: datetime) -> TableHealth:
    """Judge a table by its metrics; a table without files and snapshots is healthy."""
    facts = Facts(metrics, thresholds, now)
    signals = [(rule.id, rule.evaluate(facts)) for rule in RULES]
    contributors = _contributors([(rule, signal) for rule, signal in signals if signal is not None])
    states = {one.state for one in contributors}
    return TableHealth(
        table_id=metrics.table_id,
        assessed_at=now,
        snapshot_id=metrics.snapshot_id,
        state=next((state for state in _WORST_FIRST if state in states), HealthState.HEALTHY),
        score=max(100.0 - sum(one.points_lost for one in contributors), 0.0),
        amoro_score=metrics.amoro_score,
        contributors=contributors,
    )


def assess_table(
    table: LakeTable, metrics: TableMetrics | None, thresholds: HealthThresholds, now: datetime
) -> TableHealth:
    """Judge a table as it was last seen, readable or not.

    A table whose metadata cannot be read is critical, with the cause and without a score: what its
    metrics were before says nothing about what is left of it. Without metrics it is unknown.
    """
    if table.error is None and metrics is not None:
        return assess(metrics, thresholds, now)
    return TableHealth(
        table_id=table.table_id,
        assessed_at=now,
        snapshot_id=table.current_snapshot_id,
        state=HealthState.UNKNOWN if table.error is None else HealthState.CRITICAL,
        score=None,
        amoro_score=None,
        contributors=(),
        reason=table.error or "Its metadata was not collected yet",
    )


def _contributors(signals: Sequence[tuple[str, Signal]]) -> tuple[Contributor, ...]:
    """Signals that cost points: each takes its part of what the heavier ones left."""
    weighed = [(SHARES[rule] * severity(one.value, one.limits), rule, one) for rule, one in signals]
    left = 100.0
    found = []
    for weight, rule, signal in sorted(weighed, key=lambda one: (-one[0], one[1])):
        state = state_of(signal.value, signal.limits)
        if state is HealthState.HEALTHY:
            continue
        lost = left * weight
        left -= lost
        found.append(
            Contributor(
                rule=rule,
                state=state,
                value=float(signal.value),
                warning=signal.limits.warning,
                critical=signal.limits.critical,
                unit=signal.unit,
                points_lost=lost,
                message=signal.message,
            )
        )
    return tuple(found)
