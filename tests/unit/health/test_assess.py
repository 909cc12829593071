"""Tables that are empty, unread or unreadable."""

from __future__ import annotations

from lakehouse_core.config.models import HealthThresholds
from lakehouse_core.domain.health import HealthState
from lakehouse_core.health import assess, assess_table
from tests.factories import NOW, lake_table, table_metrics

LIMITS = HealthThresholds()


def test_an_empty_table_is_healthy() -> None:
    empty = table_metrics(
        snapshot_id=0,
        data_files=0,
        delete_ratio=None,
        manifests=0,
        snapshots=0,
        oldest_snapshot_at=None,
        partitions=0,
        skew=None,
        amoro_score=100,
    )
    verdict = assess(empty, LIMITS, NOW)
    assert (verdict.state, verdict.score, verdict.contributors) == (HealthState.HEALTHY, 100, ())
    assert verdict.amoro_score == 100


def test_an_unreadable_table_is_critical_with_the_cause_and_without_a_score() -> None:
    table = lake_table(error="Metadata file file:/x.avro is missing")
    verdict = assess_table(table, table_metrics(table_id=table.table_id), LIMITS, NOW)
    assert verdict.state is HealthState.CRITICAL
    assert verdict.reason == "Metadata file file:/x.avro is missing"
    assert (verdict.score, verdict.amoro_score, verdict.contributors) == (None, None, ())
    assert verdict.table_id == table.table_id


def test_a_table_without_metrics_is_unknown() -> None:
    verdict = assess_table(lake_table(), None, LIMITS, NOW)
    assert (verdict.state, verdict.score) == (HealthState.UNKNOWN, None)
    assert verdict.reason


def test_a_readable_table_is_judged_by_its_metrics() -> None:
    metrics = table_metrics(snapshots=600)
    assert assess_table(lake_table(), metrics, LIMITS, NOW) == assess(metrics, LIMITS, NOW)
