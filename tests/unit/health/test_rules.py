"""Each rule: when it speaks, what it says, where its limits are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lakehouse_core.config.models import HealthThresholds, Threshold
from lakehouse_core.domain.health import HealthState
from lakehouse_core.domain.table import MIB
from lakehouse_core.health import assess, points
from lakehouse_core.health.points import SHARES
from lakehouse_core.health.rules import RULES
from tests.factories import NOW, table_metrics

LIMITS = HealthThresholds()


def state_and_rules(**metrics: Any) -> tuple[HealthState, list[str]]:
    verdict = assess(table_metrics(**metrics), LIMITS, NOW)
    return verdict.state, [one.rule for one in verdict.contributors]


def days_ago(days: float) -> dict[str, Any]:
    return {"oldest_snapshot_at": NOW - timedelta(days=days)}


# rule, just healthy, just a warning, just critical: the limits of the design
EDGES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (
        "small_file_share",
        {"data_files": 100, "small_files": 19},
        {"data_files": 100, "small_files": 20},
        {"data_files": 100, "small_files": 50},
    ),
    ("data_files", {"data_files": 9_999}, {"data_files": 10_000}, {"data_files": 50_000}),
    ("snapshots", {"snapshots": 99}, {"snapshots": 100}, {"snapshots": 500}),
    ("oldest_snapshot_days", days_ago(6.9), days_ago(7), days_ago(30)),
    ("delete_ratio", {"delete_ratio": 0.099}, {"delete_ratio": 0.1}, {"delete_ratio": 0.25}),
    ("manifests", {"manifests": 99}, {"manifests": 100}, {"manifests": 500}),
    ("skew", {"skew": 2.9}, {"skew": 3.0}, {"skew": 10.0}),
]


@pytest.mark.parametrize(("rule", "healthy", "warning", "critical"), EDGES)
def test_the_limits_of_every_rule(
    rule: str, healthy: dict[str, Any], warning: dict[str, Any], critical: dict[str, Any]
) -> None:
    assert state_and_rules(**healthy) == (HealthState.HEALTHY, [])
    assert state_and_rules(**warning) == (HealthState.WARNING, [rule])
    assert state_and_rules(**critical) == (HealthState.CRITICAL, [rule])


def test_every_rule_is_covered_here_and_has_limits_a_share_and_a_docstring() -> None:
    ids = [rule.id for rule in RULES]
    assert sorted(ids) == sorted(edge[0] for edge in EDGES) == sorted(SHARES)
    for rule in RULES:
        assert isinstance(getattr(LIMITS, rule.id), Threshold)
        assert type(rule).__doc__


def test_the_documented_shares_are_the_ones_in_force() -> None:
    cells = [line.split("|") for line in (points.__doc__ or "").splitlines() if "%" in line]
    listed = {cell[1].strip(): cell[2].strip() for cell in cells if len(cell) == 4}
    assert listed == {rule: f"{share:.0%}".replace("%", " %") for rule, share in SHARES.items()}


def test_small_files_alone_in_their_partition_do_not_matter() -> None:
    sick = {"data_files": 100, "small_files": 100}
    assert state_and_rules(**sick, lone_small_files=0)[0] is HealthState.CRITICAL
    assert state_and_rules(**sick, lone_small_files=70)[0] is HealthState.WARNING
    assert state_and_rules(**sick, lone_small_files=100) == (HealthState.HEALTHY, [])


def test_few_small_files_do_not_matter() -> None:
    assert state_and_rules(data_files=15, small_files=15) == (HealthState.HEALTHY, [])
    assert state_and_rules(data_files=16, small_files=16)[0] is HealthState.CRITICAL


def test_the_age_of_the_only_snapshot_does_not_matter() -> None:
    old = days_ago(400)
    assert state_and_rules(snapshots=1, **old) == (HealthState.HEALTHY, [])
    assert state_and_rules(snapshots=2, **old)[0] is HealthState.CRITICAL


def test_a_snapshot_from_the_future_is_not_old() -> None:
    assert state_and_rules(**days_ago(-3)) == (HealthState.HEALTHY, [])


def test_messages_hold_the_numbers() -> None:
    verdict = assess(
        table_metrics(
            data_files=1_000,
            small_files=900,
            delete_files=300,
            position_delete_files=100,
            deletion_vectors=200,
            delete_ratio=0.3,
            skew=12.34,
            partitions=7,
        ),
        HealthThresholds(small_file_bytes=8 * MIB),
        NOW,
    )
    messages = {one.rule: one.message for one in verdict.contributors}
    assert messages == {
        "small_file_share": (
            "900 of 1,000 data files (90%) are smaller than 8MiB and could be put together"
        ),
        "delete_ratio": (
            "300 delete files (100 position, 200 vectors) on 1,000 data files: 0.30 each"
        ),
        "skew": "the largest of 7 partitions holds 12.3 times the mean",
    }
