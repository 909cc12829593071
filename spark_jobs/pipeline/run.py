"""One run from start to end: what to do, in which order, what is kept as state.

Everything a stage needs to know it asks of the tables: which exports are in bronze, which texts
are known, which hours the exports touched. A run that is killed is therefore simply run again. The
state, a property of the silver table, is written last and says up to which export gold is whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.attribution import stage as costs
from spark_jobs.pipeline import bronze, care, gold, silver, texts
from spark_jobs.pipeline.commit import Commits
from spark_jobs.pipeline.lake import Lake

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import SparkSession

    from spark_jobs.pipeline.gold import GoldTable, Scope
    from spark_jobs.pipeline.plan import Plan
    from spark_jobs.pipeline.progress import Progress, Report

# bronze, texts, silver of events, silver of commits, one per gold table, those of costs, care
STAGES = 5 + len(gold.EVENT_TABLES) + len(gold.COMMIT_TABLES) + costs.STAGES


def run(spark: SparkSession, plan: Plan, progress: Progress) -> None:
    """Carry every export after `plan.after` through all stages."""
    lake = Lake(spark, plan, Commits(plan.commit_attempts))
    try:
        _Run(lake, progress).all()
    finally:
        progress.report.retries = lake.commits.retries


@dataclass(slots=True)
class _Run:
    lake: Lake
    progress: Progress

    @property
    def report(self) -> Report:
        return self.progress.report

    def all(self) -> None:
        plan = self.lake.plan
        with self.progress.stage("bronze") as stage:
            events = bronze.load(self.lake, silver.EVENT, stage)
            commits = bronze.load(self.lake, silver.COMMIT, stage)
            charges = bronze.load(self.lake, costs.CHARGE, stage)
            told = bronze.load(self.lake, costs.ATTRIBUTION, stage)
        days = self._events(events) if events else []
        if commits:
            self._commits(commits)
        costs.run(self.lake, costs.News(events, tuple(days), charges, told), self.progress)
        if plan.care.compact or plan.care.expire:
            with self.progress.stage("care") as stage:
                care.tidy(self.lake, stage)
        ids = [one for one in (plan.after, *events, *commits, *charges, *told) if one]
        self.report.through = max(ids, default=None)
        if self.lake.exists(silver.EVENT):
            silver.forget_superseded(self.lake)
            state = {"through": self.report.through, "cursor": plan.cursor, "run_id": plan.run_id}
            self.lake.keep_state(silver.EVENT, state)

    def _events(self, ids: tuple[str, ...]) -> list[date]:
        events = silver.events_of(self.lake, ids)
        with self.progress.stage("texts") as stage:
            texts.learn(self.lake, events, ids, stage)
        with self.progress.stage("silver") as stage:
            days = silver.days_of(self.lake, ids, events)
            silver.merge_events(self.lake, events, days, stage, has_many=len(ids) > 1)
            hours = silver.touched(self.lake, ids, days, stage)
        if hours:
            scope = gold.Scope(tuple(hours))
            gold.offer_events(self.lake, scope)
            self._gold(gold.EVENT_TABLES, scope)
        return days

    def _commits(self, ids: tuple[str, ...]) -> None:
        with self.progress.stage("silver.commits") as stage:
            key = ("table_id", "snapshot_id")
            hours = silver.merge_rows(self.lake, silver.COMMIT, key, "committed_at", ids, stage)
        scope = gold.Scope(tuple(hours))
        gold.offer_commits(self.lake, scope)
        self._gold(gold.COMMIT_TABLES, scope)

    def _gold(self, tables: tuple[GoldTable, ...], scope: Scope) -> None:
        for table in tables:
            with self.progress.stage(f"gold.{table.name}") as stage:
                gold.compute(self.lake, table, scope)
                stage.tables.append(table.name)
            self.report.recomputed[table.name] = table.moments(scope)
