"""Costs on real Spark and Iceberg: the statement gives there what it gives in the store."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from agents import finops
from agents.watch import Lease
from lakehouse_core.config.pricebook import PricesConfig
from lakehouse_core.finops.attribution import COST_HOUR_SQL, split_params
from lakehouse_core.finops.reconcile import reconcile
from lakehouse_core.store.schema import schema_of
from tests.unit.finops.costs.traces import FIRST, START, at, query, trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from lakehouse_core.domain.query import QueryEvent
    from tests.integration.pipeline.lakes import Pipeline

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

HOURS = 12
NOW = at(HOURS + 30)


def settle(pipeline: Pipeline) -> None:
    finops.run_once(pipeline.store, pipeline.config, lambda: NOW, Lease())


def with_a_warehouse(pipeline: Pipeline) -> None:
    """Snowflake has a price, and tells what its warehouses used in each hour."""
    section = PricesConfig.model_validate({"editions": {"snowflake": "enterprise"}})
    section.know({"snowflake": "snowflake"})
    pipeline.config = pipeline.config.model_copy(update={"prices": section})
    rows = [
        {
            "engine_id": "snowflake",
            "resource": name,
            "meter": "compute",
            "hour": at(hour),
            "unit": "credit",
            "quantity": Decimal(3),
            "attributed": Decimal("1.7"),
            "source": "engine",
            "collected_at": at(HOURS),
        }
        for name in "AB"
        for hour in range(HOURS)
    ]
    pipeline.store.upsert("metering", pa.Table.from_pylist(rows, schema_of("metering")))


def attribute(pipeline: Pipeline, events: Sequence[QueryEvent], told_at: datetime) -> None:
    """What Snowflake charges its queries with."""
    rows = [
        {
            "engine_id": "snowflake",
            "query_id": one.query_id,
            "credits": Decimal(number % 7) / 10,
            "started_at": one.submitted_at,
            "ended_at": one.ended_at,
            "collected_at": told_at,
        }
        for number, one in enumerate(events)
        if one.engine_id == "snowflake"
    ]
    table = pa.Table.from_pylist(rows, schema_of("query_attribution"))
    pipeline.store.upsert("query_attribution", table)


def is_short(one: QueryEvent) -> bool:
    return one.ended_at is not None and one.ended_at < at(8)


def by_key(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(
        repr({n: v for n, v in row.items() if n != "split_at"} | {"hour_at": str(row["hour_at"])})
        for row in rows
        if row["runs"]
    )


def check(pipeline: Pipeline, since: int = -24) -> None:
    """Lake, store and a computation in the store itself agree, row by row, to the last digit."""
    lake = pipeline.rows("cost_hour").to_pylist()
    hours = [FIRST + number for number in range(since, HOURS + 31)]
    live = pipeline.store.read(COST_HOUR_SQL, **split_params(hours)).to_pylist()
    assert sorted(set(by_key(lake)) ^ set(by_key(live)))[:2] == []
    found = reconcile(pipeline.store, START + timedelta(hours=since - 24), NOW)
    assert not [one for one in found if one.difference]
    metered = sum(one.metered for one in found)
    ((total,),) = pipeline.spark.sql(
        "SELECT sum(cost) FROM IDENTIFIER(:name)", {"name": pipeline.table("cost_allocation")}
    ).collect()
    assert total == metered != 0


def test_spark_and_the_store_split_alike_and_late_queries_restate_their_hours(
    pipeline: Pipeline,
) -> None:
    events, charges = trace(5, hours=HOURS, queries=400)
    del charges
    with_a_warehouse(pipeline)
    pipeline.add(*events)
    attribute(pipeline, events[::2], at(HOURS))
    settle(pipeline)
    report = pipeline.run()
    assert set(report.loaded) >= {"cost_hour", "cost_query"}
    check(pipeline)
    # A query that was told late, over two hours: only those, and what is beside them, move. What
    # Snowflake tells hours later of queries that it has told already counts where they executed.
    pipeline.add(query(3.5, 3600, collected_at=NOW + timedelta(minutes=1)))
    late = [one for one in events[1::2] if at(7) < one.submitted_at < at(7.5) and is_short(one)]
    attribute(pipeline, late, NOW + timedelta(minutes=1))
    settle(pipeline)
    second = pipeline.run()
    assert {at(hour).isoformat() for hour in (3, 4, 7)} <= set(second.recomputed["cost_hour"])
    assert len(second.recomputed["cost_hour"]) < len(report.recomputed["cost_hour"]) / 2
    check(pipeline)
    labels = pipeline.rows("cost_label").to_pylist()
    assert len({row["label_id"] for row in labels}) == len(labels)


def test_a_new_hour_reads_no_history_that_cannot_have_executed_in_it(pipeline: Pipeline) -> None:
    pipeline.add(query(-20 * 24.0, 60), query(0.5, 60))
    settle(pipeline)
    pipeline.run()
    events = pipeline.table("query_event")
    files = (
        pipeline.spark.table(f"{events}.files")
        .orderBy("readable_metrics.submitted_at.lower_bound")
        .collect()
    )
    assert len(files) == 2
    old = Path(urlsplit(files[0]["file_path"]).path)
    away = old.rename(old.with_suffix(".away"))  # whoever reads it fails
    pipeline.add(query(3.5, 60, collected_at=NOW + timedelta(minutes=1)))
    settle(pipeline)
    assert at(3).isoformat() in pipeline.run().recomputed["cost_hour"]
    away.rename(old)
    check(pipeline, since=-20 * 24)


def test_an_hour_that_was_charged_anew_is_not_taken_from_the_lake(pipeline: Pipeline) -> None:
    pipeline.add(query(0.5, 60))
    settle(pipeline)

    def charged_meanwhile(document: dict[str, Any]) -> dict[str, Any]:
        report = pipeline.run_plan(document)
        pipeline.store.transact("charge", ["UPDATE charge SET cost = cost * 2, list_cost = cost"])
        return report

    from lakehouse_core.pipeline.service import Surroundings, run_pipeline  # noqa: PLC0415

    around = Surroundings(machine=pipeline.machine, clock=lambda: NOW, spark=charged_meanwhile)
    assert "cost_hour" not in run_pipeline(pipeline.config, pipeline.store, around).loaded
    settle(pipeline)
    assert {one.difference for one in reconcile(pipeline.store, START, NOW)} == {Decimal(0)}
