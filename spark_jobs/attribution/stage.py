"""The stage of costs: which hours, from which rows, into which tables.

    charge             what each hour of an engine cost, as the store exported it
    query_attribution  what an engine itself charges its queries with, likewise
    cost_allocation    its split: one row per charge and piece of a query, idle and unallocated
    cost_hour          the same, added up by label
    cost_query         the dearest queries of each engine and hour
    cost_label         who or what a label stands for

The statement is `lakehouse_core.domain.attribution`. An hour is computed anew when a charge of it
changed, when a query that executed in it did or is charged by its engine, or when the table still
has such a query there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 the name everybody knows it by

from lakehouse_core.domain import attribution
from spark_jobs.pipeline import bronze, gold, silver
from spark_jobs.pipeline.gold import GoldTable, Scope
from spark_jobs.pipeline.lake import Layout

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from pyspark.sql import Column, DataFrame

    from spark_jobs.pipeline.lake import Lake
    from spark_jobs.pipeline.progress import Progress, Stage

CHARGE, ATTRIBUTION, LABEL = "charge", "query_attribution", "cost_label"
CHARGE_KEY = ("hour_at", "engine_id", "resource", "meter", "price_id")
ALLOCATION = GoldTable("cost_allocation", attribution.allocation_sql(attribution.SPARK), "hour_at")
SUMS = (
    GoldTable("cost_hour", attribution.cost_hour_sql("allocation"), "hour_at"),
    GoldTable("cost_query", attribution.cost_query_sql("allocation"), "hour_at"),
)
STAGES = 5 + len(SUMS)
_HOUR = timedelta(hours=1)
_EVENT_COLUMNS = (
    *("engine_id", "query_id", "status", "submitted_at", "started_at", "ended_at", "collected_at"),
    *("queued_ms", "planning_ms", "execution_ms", "cpu_ms", "bytes_scanned", "template_id"),
    *("user_name", "source", "workload_group", "statement_kind", "tags"),
)


@dataclass(frozen=True, slots=True)
class News:
    """What a run brought: exports, by what is in them, and the days the events lie in."""

    events: tuple[str, ...]
    days: tuple[date, ...]
    charges: tuple[str, ...]
    attributions: tuple[str, ...]


def run(lake: Lake, news: News, progress: Progress) -> None:
    """Split the hours that the news touch."""
    hours: set[datetime] = set()
    if news.charges:
        with progress.stage("silver.charges") as stage:
            hours |= set(
                silver.merge_rows(lake, CHARGE, CHARGE_KEY, "hour_at", news.charges, stage)
            )
    if news.attributions:
        with progress.stage("silver.attributions") as stage:
            hours |= _attributed_hours(lake, news, stage)
    if not lake.exists(CHARGE):
        return  # a store that meters nothing yet
    if news.days:
        with progress.stage("cost.labels") as stage:
            mine = _told(lake, news)
            _keep_labels(lake, mine)
            hours |= _hours_of(lake, mine, news.days)
            stage.tables.append(LABEL)
    if not hours:
        return
    scope = Scope(tuple(sorted(hours)))
    with progress.stage(f"gold.{ALLOCATION.name}") as stage:
        _offer(lake, scope)
        gold.compute(lake, ALLOCATION, scope)
        stage.tables.append(ALLOCATION.name)
        stage.facts["hours"] = len(scope.hours)
    allocated = lake.read(ALLOCATION.name).where(silver.within(F.col("hour_at"), scope.days))
    allocated.where(F.col("hour_at").isin(*scope.hours)).createOrReplaceTempView("allocation")
    for table in SUMS:
        with progress.stage(f"gold.{table.name}") as stage:
            gold.compute(lake, table, scope)
            stage.tables.append(table.name)
        progress.report.recomputed[table.name] = table.moments(scope)


def _attributed_hours(lake: Lake, news: News, stage: Stage) -> set[datetime]:
    """Keep what engines charge queries with; the hours in which these queries executed."""
    key = ("engine_id", "query_id")
    exports = news.attributions
    began = silver.merge_rows(lake, ATTRIBUTION, key, "started_at", exports, stage)
    if not lake.exists(silver.EVENT):
        return set()
    days = sorted({hour.date() for hour in began})
    near = silver.within(F.col("submitted_at"), silver.with_neighbours(days))
    told = bronze.rows_of(lake, ATTRIBUTION, exports).select(*key).distinct()
    mine = lake.read(silver.EVENT).where(near & (F.col("origin") == "real"))
    return _hours_of(lake, mine.join(told, list(key), "left_semi"), days)


def _told(lake: Lake, news: News) -> DataFrame:
    """The queries that the exports told about; also those that turned out to be others'."""
    days = silver.with_neighbours(news.days)
    return lake.read(silver.EVENT).where(
        silver.within(F.col("submitted_at"), days)
        & F.col("export_id").between(news.events[0], news.events[-1])
        & (F.col("origin") == "real")
    )


def _keep_labels(lake: Lake, events: DataFrame) -> None:
    events.createOrReplaceTempView("events")
    fresh = lake.spark.sql(attribution.labels_sql(attribution.SPARK))
    lake.prepare(Layout(LABEL), fresh)

    def write() -> None:
        known = lake.read(LABEL).select("label_id")
        lake.append(LABEL, fresh.join(known, "label_id", "left_anti").coalesce(1))

    lake.commits.run(lake.full_name(LABEL), write)


def _hours_of(lake: Lake, events: DataFrame, days: Sequence[date]) -> set[datetime]:
    """The hours these queries executed in, now and as the table has them."""
    events.createOrReplaceTempView("events")
    rows = lake.spark.sql(attribution.hours_sql(attribution.SPARK)).collect()
    hours = {datetime.fromtimestamp(row["hour_no"] * 3600, UTC) for row in rows}
    if lake.exists(ALLOCATION.name):
        near = silver.with_neighbours([*days, *(hour.date() for hour in hours)])
        split = lake.read(ALLOCATION.name).where(silver.within(F.col("hour_at"), near))
        key = ["engine_id", "query_id"]
        before = split.join(events.select(*key).distinct(), key, "left_semi")
        found = before.select("hour_at").distinct().collect()
        hours |= {row["hour_at"].astimezone(UTC) for row in found}
    return hours


def _offer(lake: Lake, scope: Scope) -> None:
    """Make the views that the statement reads."""
    numbers = [(int(hour.timestamp()) // 3600,) for hour in scope.hours]
    lake.spark.createDataFrame(numbers, "hour_no BIGINT").createOrReplaceTempView("hours")
    charges = lake.read(CHARGE).where(silver.within(F.col("hour_at"), scope.days))
    charges.createOrReplaceTempView("charges")
    _attributions(lake).createOrReplaceTempView("attributions")
    events = lake.read(silver.EVENT).where(
        F.col("superseded_by").isNull() & (F.col("origin") == "real") & _executed_in(scope)
    )
    events.select(*_EVENT_COLUMNS).createOrReplaceTempView("events")


def _attributions(lake: Lake) -> DataFrame:
    """What engines charge queries with; nothing, known as such before anything runs, without it."""
    if lake.exists(ATTRIBUTION):
        return lake.read(ATTRIBUTION).select("engine_id", "query_id", "credits")
    return lake.spark.sql(
        "SELECT '' AS engine_id, '' AS query_id, CAST(0 AS DECIMAL(38, 9)) AS credits WHERE false"
    )


def _executed_in(scope: Scope) -> Column:
    """Whether a query may have executed in the scope: files are left out by their bounds."""

    def ends_from(moment: Column) -> Column:  # no coalesce: Iceberg knows no bounds of one
        has_no_end = F.col("ended_at").isNull() & (F.col("collected_at") >= moment)
        return (F.col("ended_at") >= moment) | has_no_end

    return reduce(
        or_,
        (
            (F.col("submitted_at") < F.lit(_midnight(last) + 24 * _HOUR))
            & ends_from(F.lit(_midnight(first)))
            for first, last in silver.spans_of(scope.days)
        ),
    )


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
