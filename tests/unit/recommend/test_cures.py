"""Each sickness has its cure, and a cure that would change nothing is not proposed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.config.pricebook import PricesConfig
from lakehouse_core.domain.maintenance import Action, Kind
from lakehouse_core.domain.table import MIB
from lakehouse_core.health import assess_table, thresholds_for
from lakehouse_core.maintenance.plan import plan_hash
from lakehouse_core.recommend.facts import OldSnapshots, Reader, Subject
from lakehouse_core.recommend.layout_advisor import scan_prices
from lakehouse_core.recommend.model import LIKELY, Span, usd_per_month
from lakehouse_core.recommend.propose import proposals
from tests.factories import NOW, lake_table, table_metrics

if TYPE_CHECKING:
    from lakehouse_core.config import Config
    from tests.conftest import DemoConfig

SMALL = {
    "data_files": 336,
    "total_bytes": 336 * 200_000,
    "small_files": 336,
    "file_size_histogram": (336, 0, 0, 0, 0, 0),
    "manifests": 40,
}


@pytest.fixture(scope="module")
def config(load_demo_config: DemoConfig) -> Config:
    return load_demo_config()


def subject(config: Config, metrics: dict[str, Any], **given: Any) -> Subject:
    measured = table_metrics(**{"table_id": "lake.demo.t", **metrics})
    limits = thresholds_for(config.health, "lake.demo.t")
    table = lake_table(table_id="lake.demo.t")
    return Subject(
        table=table,
        metrics=measured,
        limits=limits,
        health=assess_table(table, measured, limits, NOW),
        config=config,
        now=NOW,
        **given,
    )


def kinds(found: list[Action]) -> list[Kind]:
    return [one.kind for one in found]


def change(action: Action, name: str) -> Any:
    return next(one for one in action.predicted if one.name == name)


def reader(**given: Any) -> Reader:
    values: dict[str, Any] = {
        "table_id": "lake.demo.t",
        "engine_id": "trino",
        "template_id": "q1",
        "runs": 100,
        "bytes_scanned": 100 * 64 * MIB,
        "execution_ms": 3_600_000.0,
        "cpu_ms": 7_200_000.0,
        "planning_ms": 80.0,
    }
    return Reader(**{**values, **given})


def test_a_healthy_table_is_left_alone(config: Config) -> None:
    assert proposals(subject(config, {})) == []


def test_small_files_are_put_together(config: Config) -> None:
    (found,) = proposals(subject(config, SMALL))
    assert found.kind is Kind.COMPACT
    files = change(found, "data_files")
    assert (files.before, files.after) == (336, 1)
    assert files.low is not None
    assert files.high is not None
    assert files.low <= files.after <= files.high
    score = change(found, "score")
    assert score.after > score.before
    assert "336 of 336 data files" in found.reason
    assert found.plan_hash == plan_hash(found.plan, found.predicted)
    assert found.proposed_by == "lakehelm"
    assert found.expires_at == NOW + config.maintenance.expires_after


def test_one_small_file_per_partition_is_as_good_as_it_gets(config: Config) -> None:
    assert proposals(subject(config, {**SMALL, "partitions": 336})) == []


def test_delete_files_are_applied(config: Config) -> None:
    deletes = {"delete_files": 10, "position_delete_files": 10, "delete_ratio": 0.5}
    (found,) = proposals(subject(config, {**deletes, "deleted_rows": 2_000_000}))
    assert found.kind is Kind.COMPACT
    assert change(found, "delete_files").after == 0
    assert "delete-file-threshold" in found.plan.stages[0].call
    assert change(found, "total_bytes").after < change(found, "total_bytes").before


def test_many_delete_files_of_few_rows_are_put_together_alone(config: Config) -> None:
    deletes = {"delete_files": 10, "position_delete_files": 10, "delete_ratio": 0.5}
    merged = {**deletes, "deleted_rows": 50, "mergeable_delete_files": 9}
    (found,) = proposals(subject(config, merged))
    assert found.kind is Kind.REWRITE_POSITION_DELETES
    assert change(found, "delete_files").after == 1


@pytest.mark.parametrize("mergeable", [0, 2, None])
def test_delete_files_that_cannot_be_merged_are_applied(
    config: Config, mergeable: int | None
) -> None:
    """One delete file per data file: the job would find nothing to put together."""
    deletes = {"delete_files": 10, "position_delete_files": 10, "delete_ratio": 0.5}
    given = {**deletes, "deleted_rows": 50, "mergeable_delete_files": mergeable}
    (found,) = proposals(subject(config, given))
    assert found.kind is Kind.COMPACT
    assert change(found, "delete_files").after == 0


def test_equality_deletes_are_applied_however_few(config: Config) -> None:
    deletes = {"delete_files": 10, "equality_delete_files": 10, "delete_ratio": 0.5}
    assert kinds(proposals(subject(config, {**deletes, "deleted_rows": 50}))) == [Kind.COMPACT]


def test_many_manifests_are_written_as_few(config: Config) -> None:
    (found,) = proposals(subject(config, {"manifests": 300, "manifest_bytes": 3_000_000}))
    assert found.kind is Kind.REWRITE_MANIFESTS
    assert change(found, "manifests").after == 1


def test_manifests_that_are_full_are_left_alone(config: Config) -> None:
    assert proposals(subject(config, {"manifests": 300, "manifest_bytes": 300 * 8 * MIB})) == []


def test_a_snapshot_that_only_a_tag_keeps_is_no_sickness(config: Config) -> None:
    tagged = {
        "snapshots": 12,
        "oldest_snapshot_at": NOW - timedelta(days=60),
        "ref_snapshot_ids": (1,),
        "oldest_free_snapshot_at": NOW - timedelta(hours=3),
    }
    sick = subject(config, tagged, old=old(0))
    assert not sick.health.contributors
    assert proposals(sick) == []


def old(count: int, **given: Any) -> OldSnapshots:
    values: dict[str, Any] = {"added_bytes": 10**12, "oldest_kept_at": NOW - timedelta(hours=1)}
    return OldSnapshots(table_id="lake.demo.t", count=count, **{**values, **given})


def test_old_snapshots_expire_down_to_the_least_number(config: Config) -> None:
    sick = {"snapshots": 320, "oldest_snapshot_at": NOW - timedelta(days=40)}
    (found,) = proposals(subject(config, sick, old=old(320)))
    assert found.kind is Kind.EXPIRE_SNAPSHOTS
    assert change(found, "snapshots").after == config.maintenance.min_snapshots
    freed = change(found, "freed_bytes")
    assert freed.low <= freed.after <= freed.high
    assert found.gain_usd_month is not None
    assert found.gain_usd_month > 0
    assert "cannot be undone" in found.risk


@pytest.mark.parametrize("known", [None, old(0)])
def test_young_snapshots_are_not_proposed_for_expiry(
    config: Config, known: OldSnapshots | None
) -> None:
    sick = {"snapshots": 320, "oldest_snapshot_at": NOW - timedelta(hours=4)}
    assert proposals(subject(config, sick, old=known)) == []


def test_skew_has_no_cure_that_could_be_executed(config: Config) -> None:
    assert proposals(subject(config, {"skew": 40.0, "partitions": 12})) == []


def test_readers_are_the_evidence_and_pay(config: Config) -> None:
    seen = (reader(), reader(engine_id="duckdb", template_id="q2", cpu_ms=None))
    (found,) = proposals(subject(config, SMALL, readers=seen, observed_days=30.0))
    assert [(one.engine_id, one.runs) for one in found.evidence] == [
        ("trino", 100),
        ("duckdb", 100),
    ]
    saving = change(found, "saving_usd_month")
    assert 0 < saving.low < saving.after < saving.high
    # An hour of Trino's node and one of one core were used: no more than that can be saved.
    assert saving.high < 0.0816 + 0.05
    assert "modelled" in saving.unit
    assert found.gain_usd_month == sum(one.saving_usd_month for one in found.evidence)
    assert change(found, "planning_ms").after < 80


def test_an_engine_billed_by_bytes_saves_nothing_by_fewer_files(config: Config) -> None:
    prices = PricesConfig.model_validate(
        {"book": {"t": {"engine": "trino", "unit": "tb_scanned", "list_price": "5"}}}
    )
    prices.know({"trino": "trino"})
    billed = config.model_copy(update={"prices": prices})
    (found,) = proposals(subject(billed, SMALL, readers=(reader(),)))
    assert found.evidence[0].saving_usd_month == 0


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        ({"unit": "core_hour", "list_price": "3"}, 3 * 2),  # two core hours were used
        ({"unit": "cluster_hour", "list_price": "3"}, 3),  # within one hour of the cluster
        ({"unit": "node_hour", "nodes": 4, "list_price": "3"}, 3 * 4),
        ({"unit": "credit", "list_price": "3"}, 3),  # of the smallest warehouse
    ],
)
def test_reader_saves_by_the_price_of_its_own_engine(
    config: Config, price: dict[str, Any], expected: float
) -> None:
    prices = PricesConfig.model_validate({"book": {"t": {"engine": "trino", **price}}})
    prices.know({"trino": "trino"})
    rates = prices.rates("trino")
    everything = Span(1.0, 1.0, 1.0)
    found = usd_per_month(reader(), rates, 30.0, everything, everything)
    assert found is not None
    assert found.likely == pytest.approx(expected)
    priced = config.model_copy(update={"prices": prices})
    scan = scan_prices(priced)["trino"]
    per_hour = expected / 2 if price["unit"] == "core_hour" else expected
    assert float(scan.per_file) == pytest.approx(per_hour / 3_600_000 * LIKELY.file_ms)
    assert scan_prices(priced)["duckdb"].per_file != scan.per_file


def test_without_prices_order_follows_points_for_bytes(config: Config) -> None:
    prices = PricesConfig(list_prices=False)
    unpriced = config.model_copy(update={"prices": prices})
    (small,) = proposals(subject(unpriced, SMALL, readers=(reader(),)))
    (large,) = proposals(
        subject(unpriced, {**SMALL, "total_bytes": 336 * 30 * MIB}, readers=(reader(),))
    )
    assert small.gain_usd_month is None
    assert small.cost_usd is None
    assert small.priority > large.priority > 0


def test_who_is_read_more_comes_first(config: Config) -> None:
    (quiet,) = proposals(subject(config, SMALL))
    (some,) = proposals(subject(config, SMALL, readers=(reader(),)))
    (much,) = proposals(subject(config, SMALL, readers=(reader(execution_ms=3.6e8),)))
    assert quiet.priority < some.priority < much.priority


@given(
    files=st.integers(0, 60_000),
    size=st.integers(1, 400 * MIB),
    deletes=st.integers(0, 500),
    manifests=st.integers(0, 2_000),
    snapshots=st.integers(0, 2_000),
    partitions=st.integers(1, 500),
)
def test_a_cure_leaves_nothing_to_cure(  # noqa: PLR0917 one parameter per figure
    config: Config,
    files: int,
    size: int,
    deletes: int,
    manifests: int,
    snapshots: int,
    partitions: int,
) -> None:
    """What is predicted would not be proposed again: automation is a fixed point."""
    is_small = size < 32 * MIB
    before = subject(
        config,
        {
            "data_files": files,
            "total_bytes": files * size,
            "small_files": files if is_small else 0,
            "file_size_histogram": (files, 0, 0, 0, 0, 0) if is_small else (0, 0, 0, 0, files, 0),
            "delete_files": deletes,
            "position_delete_files": deletes,
            "delete_ratio": deletes / files if files else None,
            "deleted_rows": deletes * 1_000,
            "manifests": manifests,
            "manifest_bytes": manifests * 10_000,
            "snapshots": snapshots,
            "oldest_snapshot_at": NOW - timedelta(days=60),
            "partitions": partitions,
        },
        old=old(snapshots),
    )
    for found in proposals(before):
        assert change(found, "score").after > change(found, "score").before
        for name in (one.name for one in found.predicted if one.low is not None):
            one = change(found, name)
            assert one.low <= one.after <= one.high, one
        if found.kind is Kind.COMPACT:
            after: dict[str, Any] = {one.name: one.after for one in found.predicted}
            left = replace(
                before.metrics,
                data_files=int(after["data_files"]),
                total_bytes=int(after["total_bytes"]),
                small_files=min(int(after["data_files"]), before.metrics.small_files),
                file_size_histogram=(int(after["data_files"]), 0, 0, 0, 0, 0),
                delete_files=0,
                position_delete_files=0,
                delete_ratio=0.0,
                deleted_rows=0,
            )
            again = replace(
                before, metrics=left, health=assess_table(before.table, left, before.limits, NOW)
            )
            assert Kind.COMPACT not in kinds(proposals(again))
