"""Gold: what the store and the pages want to know, by hour or day, computed from silver alone.

Each table is partitioned by day. The hours (or days) that new rows touched are computed anew; a
day's other hours are taken over from the table as it is; the day is replaced in one commit. So a
day is one small set of files however often its hours change. The statements are in `gold_sql`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 the name everybody knows it by
from pyspark.sql.functions import partitioning

from spark_jobs.pipeline import gold_sql, silver
from spark_jobs.pipeline.lake import Layout
from spark_jobs.pipeline.texts import SQL_TEXT, TEMPLATE, USAGE

if TYPE_CHECKING:
    from datetime import date, datetime

    from pyspark.sql import Column

    from spark_jobs.pipeline.lake import Lake


@dataclass(frozen=True, slots=True)
class GoldTable:
    """A table of gold: its statement, over which views, and the time its rows are about."""

    name: str
    statement: str
    time: str  # hour_at or day

    @property
    def layout(self) -> Layout:
        """One partition per day."""
        by_day = partitioning.days("hour_at") if self.time == "hour_at" else F.col("day")
        return Layout(self.name, (by_day,))

    def moments(self, scope: Scope) -> list[str]:
        """The hours or days of the scope that its rows are about."""
        wanted = scope.hours if self.time == "hour_at" else scope.days
        return [moment.isoformat() for moment in wanted]


EVENT_TABLES = (
    GoldTable("template_hour", gold_sql.TEMPLATE_HOUR, "hour_at"),
    GoldTable("workload_hour", gold_sql.WORKLOAD_HOUR, "hour_at"),
    GoldTable("usage_day", gold_sql.USAGE_DAY, "day"),
    GoldTable("literal_day", gold_sql.LITERAL_DAY, "day"),
)
COMMIT_TABLES = (GoldTable("commit_hour", gold_sql.COMMIT_HOUR, "hour_at"),)


@dataclass(frozen=True, slots=True)
class Scope:
    """What is to be computed anew."""

    hours: tuple[datetime, ...]

    @property
    def days(self) -> tuple[date, ...]:
        """The days the hours belong to."""
        return tuple(sorted({hour.date() for hour in self.hours}))


def offer_events(lake: Lake, scope: Scope) -> None:
    """Make the views that the statements over events read."""
    events = lake.read(silver.EVENT).where(F.col("superseded_by").isNull())
    days = events.where(silver.within(F.col("submitted_at"), scope.days))
    days.createOrReplaceTempView("day_events")
    hours = days.where(F.date_trunc("hour", "submitted_at").isin(*scope.hours))
    hours.createOrReplaceTempView("hour_events")
    for name in (SQL_TEXT, TEMPLATE, USAGE):
        lake.read(name).createOrReplaceTempView(name)


def offer_commits(lake: Lake, scope: Scope) -> None:
    """Make the view that the statement over commits reads."""
    moment = F.col("committed_at")
    commits = lake.read(silver.COMMIT).where(silver.within(moment, scope.days))
    commits.where(F.date_trunc("hour", moment).isin(*scope.hours)).createOrReplaceTempView(
        "hour_commits"
    )


def compute(lake: Lake, table: GoldTable, scope: Scope) -> None:
    """Compute the table's rows of the scope and put them in the place of the old ones."""
    fresh = lake.spark.sql(table.statement)
    is_new = not lake.exists(table.name)
    lake.prepare(table.layout, fresh)
    columns = lake.read(table.name).columns

    def write() -> None:
        days = _days(table, scope)
        whole = fresh.select(*columns)
        if not is_new:
            kept = lake.read(table.name).where(days & ~_in_scope(table, scope))
            whole = whole.unionByName(kept.select(*columns))
        lake.overwrite(table.name, whole, days)

    lake.commits.run(lake.full_name(table.name), write)


def _in_scope(table: GoldTable, scope: Scope) -> Column:
    wanted = scope.hours if table.time == "hour_at" else scope.days
    return F.col(table.time).isin(*wanted)


def _days(table: GoldTable, scope: Scope) -> Column:
    """The whole days of the scope, so that files are replaced as a whole."""
    if table.time == "day":
        return F.col("day").isin(*scope.days)
    return silver.within(F.col("hour_at"), scope.days)
