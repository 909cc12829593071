"""Silver: one row per query, the newest that is known of it, with its text's id and template.

A row replaces its namesake when its revision is higher, or equal and exported later: the store has
settled everything else before it exported. The MERGE reads only the days that the new rows lie in
and their neighbours: a clock that is put right moves a query over midnight, not over days.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 the name everybody knows it by
from pyspark.sql.functions import partitioning
from pyspark.sql.window import Window

from spark_jobs.pipeline import bronze
from spark_jobs.pipeline.lake import Layout
from spark_jobs.pipeline.texts import SQL_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame

    from spark_jobs.pipeline.lake import Lake
    from spark_jobs.pipeline.progress import Stage

EVENT, COMMIT = "query_event", "snapshot_commit"
OWN = ("text_id", "shape_id", "moved_from", "superseded_by")
_DEFAULTS = ("default_catalog", "default_namespace")
_DAY = timedelta(days=1)


def events_of(lake: Lake, exports: tuple[str, ...]) -> DataFrame:
    """The events of some exports."""
    frame = bronze.rows_of(lake, EVENT, exports)
    for name in _DEFAULTS:
        if name not in frame.columns:  # an older store exports none
            frame = frame.withColumn(name, F.lit(None).cast("string"))
    return frame


def days_of(lake: Lake, exports: tuple[str, ...], events: DataFrame) -> list[date]:
    """The days these events lie in: as their exports say, or counted when those are gone."""
    landed = {one.id: one.tables[EVENT].days for one in lake.plan.exports if EVENT in one.tables}
    if all(one in landed for one in exports):
        return sorted({day for one in exports for day in landed[one]})
    days = events.select(F.to_date("submitted_at").alias("day")).distinct().collect()
    return sorted(row[0] for row in days)


def merge_events(
    lake: Lake, events: DataFrame, days: Sequence[date], stage: Stage, *, has_many: bool
) -> None:
    """Bring the events, of one export or of many, into the silver table."""
    newest = events.drop("sql_text")
    if has_many:  # within one export every query comes once
        order = ("revision", "export_id", "collected_at")
        newest = _newest(newest, ("engine_id", "query_id"), order)
    batch = _understood(lake, newest).withColumns(
        {"moved_from": F.lit(None).cast("timestamp"), "superseded_by": F.lit(None).cast("string")}
    )
    lake.prepare(Layout(EVENT, (partitioning.days("submitted_at"),), OWN), batch)

    def write() -> None:
        whole = _with_superseded(lake, batch, events, days)
        if _has_none(lake, days):
            fresh = whole.where(F.col("status").isNotNull())  # a mark has nothing to supersede
            lake.append(EVENT, fresh, spread=True)
        else:
            _merge_events(lake, whole, days)

    lake.commits.run(lake.full_name(EVENT), write)
    stage.tables.append(EVENT)


def touched(
    lake: Lake, exports: tuple[str, ...], days: Sequence[date], stage: Stage
) -> list[datetime]:
    """The hours whose queries these exports changed.

    Asked of silver itself, so that a run that was killed after its MERGE finds the same hours.
    """
    mine = lake.read(EVENT).where(
        within(F.col("submitted_at"), with_neighbours(days))
        & F.col("export_id").between(exports[0], exports[-1])
    )
    is_own, at = F.col("pos") == 0, F.col("col")
    moments = mine.select(F.posexplode(F.array("submitted_at", "moved_from"))).where(at.isNotNull())
    hour = F.date_trunc("hour", at).alias("hour_at")
    hours = moments.groupBy(hour).agg(F.count_if(is_own).alias("rows")).collect()
    stage.rows_out = sum(int(row["rows"]) for row in hours)
    return sorted(row["hour_at"].astimezone(UTC) for row in hours)


def forget_superseded(lake: Lake) -> None:
    """Drop the rows that stood for a query until its engine named it; gold has seen it."""
    table = lake.full_name(EVENT)
    statement = f"DELETE FROM {table} WHERE superseded_by IS NOT NULL"  # noqa: S608 our own name
    if not lake.read(EVENT).where(F.col("superseded_by").isNotNull()).isEmpty():
        lake.commits.run(table, lambda: lake.sql(statement))


def merge_rows(
    lake: Lake, table: str, key: tuple[str, ...], time: str, exports: tuple[str, ...], stage: Stage
) -> list[datetime]:
    """Bring the rows of a store table into its silver table, by key; the hours they are about."""
    rows = bronze.rows_of(lake, table, exports)
    newest = _newest(rows, key, ("export_id",))
    lake.prepare(Layout(table, (partitioning.months(time),)), newest)

    def write() -> None:
        same = reduce(and_, (_new(name) == _old(table, name) for name in key))
        newer = _new("export_id") > _old(table, "export_id")
        merge = newest.alias("new").mergeInto(lake.full_name(table), same)
        merge.whenMatched(newer).updateAll().whenNotMatched().insertAll().merge()

    lake.commits.run(lake.full_name(table), write)
    stage.tables.append(table)
    hours = rows.select(F.date_trunc("hour", time).alias("hour_at")).distinct().collect()
    return sorted(row[0].astimezone(UTC) for row in hours)


def within(moment: Column, days: Sequence[date]) -> Column:
    """Whether a moment lies in one of the days, as ranges that Iceberg prunes partitions by."""
    return reduce(or_, (_between(moment, first, last) for first, last in spans_of(days)))


def _between(moment: Column, first: date, last: date) -> Column:
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    end = datetime(last.year, last.month, last.day, tzinfo=UTC) + _DAY
    return (moment >= F.lit(start)) & (moment < F.lit(end))


def _merge_events(lake: Lake, batch: DataFrame, days: Sequence[date]) -> None:
    same = (
        (_old(EVENT, "engine_id") == _new("engine_id"))
        & (_old(EVENT, "query_id") == _new("query_id"))
        & within(_old(EVENT, "submitted_at"), with_neighbours(days))
    )
    newer = (_new("revision") > _old(EVENT, "revision")) | (
        (_new("revision") == _old(EVENT, "revision"))
        & (_new("export_id") > _old(EVENT, "export_id"))
    )
    moved = F.when(
        _old(EVENT, "submitted_at") != _new("submitted_at"), _old(EVENT, "submitted_at")
    ).otherwise(_old(EVENT, "moved_from"))
    values = {name: _new(name) for name in batch.columns} | {"moved_from": moved}
    is_gone = _new("superseded_by").isNotNull()
    gone = {name: _new(name) for name in ("export_id", "superseded_by")}
    merge = batch.alias("new").mergeInto(lake.full_name(EVENT), same)
    merge = merge.whenMatched(is_gone).update(gone).whenMatched(newer).update(values)
    merge.whenNotMatched(~is_gone).insertAll().merge()


def _has_none(lake: Lake, days: Sequence[date]) -> bool:
    """Whether silver has no query of these days yet: then there is nothing to compare with."""
    moment = F.col("submitted_at")
    return lake.read(EVENT).where(within(moment, with_neighbours(days))).isEmpty()


def _with_superseded(
    lake: Lake, batch: DataFrame, events: DataFrame, days: Sequence[date]
) -> DataFrame:
    """Also a mark for each row that stood for one of these queries before its engine named it.

    The gateway reports a query under its own id first; the store folds that row into the engine's
    as soon as both are known, and never exports it again. Few rows are of that kind at any time.
    """
    silver = lake.read(EVENT).where(within(F.col("submitted_at"), with_neighbours(days)))
    key, is_own = ["engine_id", "gateway_id"], F.col("gateway_id") == F.col("query_id")
    own = silver.where(is_own).select(*key).union(events.where(is_own).select(*key)).distinct()
    named = events.where(F.col("gateway_id") != F.col("query_id"))
    marks = (
        named.join(F.broadcast(own), key, "left_semi")
        .groupBy("engine_id", F.col("gateway_id").alias("own_id"))
        .agg(F.min("query_id").alias("superseded_by"), F.max("export_id").alias("export_id"))
        .withColumnRenamed("own_id", "query_id")
    )
    gone = F.broadcast(marks.select("engine_id", "query_id"))
    kept = batch.join(gone, ["engine_id", "query_id"], "left_anti")
    blank = {
        one.name: F.lit(None).cast(one.dataType)
        for one in batch.schema
        if one.name not in marks.columns
    }
    return kept.unionByName(marks.withColumns(blank))


def _new(column: str) -> Column:
    return F.col(f"new.{column}")


def _old(table: str, column: str) -> Column:
    return F.col(f"{table}.{column}")


def _understood(lake: Lake, events: DataFrame) -> DataFrame:
    texts = lake.read(SQL_TEXT).select(
        "text_id",
        "shape_id",
        F.col("template_id").alias("parsed_id"),
        F.col("statement_kind").alias("parsed_kind"),
    )
    joined = events.join(texts, "text_id", "left")
    return joined.withColumns(
        {
            "template_id": F.coalesce("parsed_id", "template_id"),
            "statement_kind": F.coalesce("statement_kind", "parsed_kind"),
        }
    ).drop("parsed_id", "parsed_kind")


def _newest(frame: DataFrame, key: Iterable[str], order: Iterable[str]) -> DataFrame:
    rank = F.row_number().over(
        Window.partitionBy(*key).orderBy(*(F.col(name).desc_nulls_last() for name in order))
    )
    return frame.withColumn("rank", rank).where(F.col("rank") == 1).drop("rank")


def with_neighbours(days: Sequence[date]) -> list[date]:
    """The days and those beside them: a clock that is put right moves a query that far."""
    return sorted({day + shift for day in days for shift in (-_DAY, timedelta(), _DAY)})


def spans_of(days: Sequence[date]) -> list[tuple[date, date]]:
    """Days that follow each other, as the first and the last of them."""
    spans: list[tuple[date, date]] = []
    for day in sorted(days):
        if spans and day - spans[-1][1] <= _DAY:
            spans[-1] = (spans[-1][0], day)
        else:
            spans.append((day, day))
    return spans
