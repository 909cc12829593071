"""The score explains itself, never rises when a signal worsens, and tells tables apart."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.config.models import HealthThresholds, Threshold
from lakehouse_core.domain.health import HealthState
from lakehouse_core.health import assess
from lakehouse_core.health.points import AT_CRITICAL, AT_WARNING, severity, state_of
from tests.factories import NOW, table_metrics

if TYPE_CHECKING:
    from lakehouse_core.domain.table import TableMetrics

LIMITS = HealthThresholds()
COUNT = st.integers(0, 10**6)
SIGNALS: dict[str, st.SearchStrategy[Any]] = {
    "small_share": st.floats(0, 1),
    "data_files": COUNT,
    "snapshots": COUNT,
    "age_days": st.floats(0, 4_000),
    "delete_ratio": st.floats(0, 100),
    "manifests": COUNT,
    "skew": st.floats(1, 10_000),
}
signals = st.fixed_dictionaries(SIGNALS)


def metrics_of(signal: dict[str, Any]) -> TableMetrics:
    return table_metrics(
        data_files=signal["data_files"],
        small_files=int(signal["small_share"] * signal["data_files"]),
        snapshots=signal["snapshots"],
        oldest_snapshot_at=NOW - timedelta(days=signal["age_days"]),
        delete_ratio=signal["delete_ratio"],
        manifests=signal["manifests"],
        skew=signal["skew"],
    )


def score(metrics: TableMetrics) -> float:
    found = assess(metrics, LIMITS, NOW).score
    assert found is not None
    return found


@given(signals)
def test_the_score_is_what_the_lost_points_leave_of_a_hundred(signal: dict[str, Any]) -> None:
    verdict = assess(metrics_of(signal), LIMITS, NOW)
    assert verdict.score is not None
    assert 0 <= verdict.score <= 100
    lost = sum(one.points_lost for one in verdict.contributors)
    assert verdict.score == pytest.approx(100 - lost)
    assert all(one.points_lost > 0 for one in verdict.contributors)


@given(signals)
def test_contributors_come_worst_first(signal: dict[str, Any]) -> None:
    points = [one.points_lost for one in assess(metrics_of(signal), LIMITS, NOW).contributors]
    assert points == sorted(points, reverse=True)


@given(signals)
def test_the_state_is_that_of_the_worst_signal_and_a_hundred_means_healthy(
    signal: dict[str, Any],
) -> None:
    verdict = assess(metrics_of(signal), LIMITS, NOW)
    states = {one.state for one in verdict.contributors}
    worst = HealthState.CRITICAL if HealthState.CRITICAL in states else HealthState.WARNING
    assert verdict.state is (worst if states else HealthState.HEALTHY)
    assert (verdict.score == 100) == (verdict.state is HealthState.HEALTHY)


@pytest.mark.parametrize("name", [name for name in SIGNALS if name != "small_share"])
@given(signal=signals, data=st.data())
def test_the_score_never_rises_when_one_signal_worsens(
    name: str, signal: dict[str, Any], data: st.DataObject
) -> None:
    if name == "data_files":
        # More files at the same share of small ones.
        signal["small_share"] = data.draw(st.sampled_from([0.0, 1.0]))
    low, high = sorted((signal[name], data.draw(SIGNALS[name])))
    better, worse = metrics_of({**signal, name: low}), metrics_of({**signal, name: high})
    assert score(worse) <= score(better) + 1e-9


@given(signal=signals, data=st.data())
def test_the_score_never_rises_when_more_of_the_files_are_small(
    signal: dict[str, Any], data: st.DataObject
) -> None:
    files = signal["data_files"]
    low, high = sorted(data.draw(st.tuples(st.integers(0, files), st.integers(0, files))))
    scores = [score(metrics_of({**signal, "small_share": n / max(files, 1)})) for n in (low, high)]
    assert scores[1] <= scores[0] + 1e-9


positive = st.floats(0.001, 10**6)


@given(st.tuples(positive, positive).map(sorted), st.tuples(positive, positive).map(sorted))
def test_severity_never_falls_and_agrees_with_the_state(
    edges: list[float], values: list[float]
) -> None:
    limits = Threshold(warning=edges[0], critical=edges[1])
    low, high = (severity(value, limits) for value in values)
    assert 0 <= low <= high <= 1
    state = state_of(values[0], limits)
    floor = {HealthState.CRITICAL: AT_CRITICAL, HealthState.WARNING: AT_WARNING}.get(state, 0.0)
    assert low >= floor - 1e-9
    assert (low > 0) == (state is not HealthState.HEALTHY)


def test_a_limit_of_zero_makes_anything_critical() -> None:
    limits = Threshold(warning=0, critical=0)
    assert state_of(0, limits) is HealthState.CRITICAL
    assert severity(0, limits) == AT_CRITICAL
    assert severity(5, limits) == 1.0


@pytest.mark.parametrize(
    "sick",
    [
        {"data_files": 500, "small_files": 500},
        {"delete_ratio": 1.0},
        {"data_files": 60_000},
        {"snapshots": 600},
        {"manifests": 600},
        {"skew": 12},
    ],
    ids=str,
)
def test_one_critical_signal_alone_makes_a_table_clearly_worse(sick: dict[str, Any]) -> None:
    assert score(table_metrics()) == 100
    assert score(table_metrics(**sick)) <= 70


def test_many_small_files_alone_leave_less_than_half() -> None:
    assert score(table_metrics(data_files=500, small_files=500)) < 50
