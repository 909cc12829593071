"""A namespace of the lake, tables in it, and actions run on them by the real job code."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.maintenance import Kind
from lakehouse_core.domain.maintenance import Plan as DomainPlan
from lakehouse_core.domain.maintenance import Stage as DomainStage
from lakehouse_core.domain.table import TableName

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from lakehouse_core.config import Config
    from lakehouse_core.config.environment import Machine
    from spark_jobs.maintenance.plan import ActionRequest
    from spark_jobs.maintenance.report import ActionReport
    from spark_jobs.maintenance.table import LakeTable
    from spark_jobs.maintenance.work import Tools

EVENTS = "id BIGINT, day DATE, kind STRING, amount DOUBLE"
# Two rows of files are enough to be put together in these small tables.
FEW = {"min-input-files": "2"}
MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}
_numbers = itertools.count(1)


def stage(procedure: str, **arguments: Any) -> DomainStage:
    return DomainStage(
        name=procedure, procedure=procedure, arguments=arguments, call="", estimate={}
    )


@dataclass
class Lake:
    """One namespace."""

    config: Config
    machine: Machine
    spark: SparkSession
    namespace: str
    folder: Path
    made: list[TableName] = field(default_factory=list)

    def table(
        self, columns: str = EVENTS, *, name: str = "", partition: str = "", **properties: str
    ) -> TableName:
        """A new table, v2 unless `format-version` says another."""
        from spark_jobs.maintenance.table import full_name  # noqa: PLC0415 needs pyspark

        made = TableName("lake", (self.namespace,), name or f"t{next(_numbers)}")
        given = {"format-version": "2"} | properties
        settings = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        by = f"PARTITIONED BY ({partition})" if partition else ""
        self.spark.sql(
            f"CREATE TABLE {full_name(made)} ({columns}) USING iceberg {by} "
            f"TBLPROPERTIES ({settings})"
        )
        return made

    def events(self, files: int = 6, *, partition: str = "", **properties: str) -> TableName:
        """A table of events in so many small files, one commit each; two days."""
        made = self.table(partition=partition, **properties)
        for number in range(files):
            self.append(made, number)
        return made

    def append(self, table: TableName, number: int, rows: int = 20) -> None:
        """One commit with a file per day."""
        first = number * rows
        frame = self.spark.range(first, first + rows, 1, 1).selectExpr(
            "id",
            "date_add(DATE '2026-11-01', CAST(id % 2 AS INT)) AS day",
            "concat('kind-', id % 3) AS kind",
            "CAST(id AS DOUBLE) / 7 AS amount",
        )
        frame.orderBy("day").writeTo(self.name(table)).append()

    def name(self, table: TableName) -> str:
        from spark_jobs.maintenance.table import full_name  # noqa: PLC0415 needs pyspark

        return full_name(table)

    def open(self, table: TableName) -> LakeTable:
        from spark_jobs.maintenance.table import LakeTable as Opened  # noqa: PLC0415 as above

        return Opened.load(self.spark, table)

    def sql(self, statement: str, table: TableName, suffix: str = "") -> list[Any]:
        """Run a statement; `{t}` stands for the table."""
        return self.spark.sql(statement.format(t=self.name(table) + suffix)).collect()

    def rows(self, table: TableName, snapshot_id: int | None = None) -> Counter[str]:
        """Every row with how often it is there."""
        from collections import Counter as Bag  # noqa: PLC0415 beside its use

        at = f" VERSION AS OF {snapshot_id}" if snapshot_id else ""
        return Bag(repr(row) for row in self.sql("SELECT * FROM {t}", table, at))

    def files(self, table: TableName) -> list[Any]:
        """Data files of the current snapshot."""
        # Not all columns: Iceberg 1.12 cannot show the bounds of a UUID in `readable_metrics`.
        columns = (
            "file_path, record_count, file_size_in_bytes, value_counts, null_value_counts, "
            "nan_value_counts, lower_bounds, upper_bounds, split_offsets, sort_order_id"
        )
        return self.sql(f"SELECT {columns} FROM {{t}} WHERE content = 0", table, ".files")  # noqa: S608

    def snapshots(self, table: TableName) -> list[int]:
        rows = self.sql("SELECT snapshot_id FROM {t} ORDER BY committed_at", table, ".snapshots")
        return [row[0] for row in rows]

    def request(
        self,
        table: TableName,
        kind: Kind,
        stages: Iterable[DomainStage],
        *,
        operation_id: str | None = None,
        table_uuid: str | None = None,
        **guards: Any,
    ) -> ActionRequest:
        from spark_jobs.maintenance.plan import ActionRequest as Request  # noqa: PLC0415
        from spark_jobs.maintenance.plan import Guards, Verify  # noqa: PLC0415 as above

        plan = DomainPlan(
            kind=kind,
            table_id=str(table),
            table_uuid=table_uuid or self.open(table).metadata().uuid,
            base_snapshot_id=None,
            stages=tuple(stages),
            preconditions=(),
            input_bytes=0,
        )
        return Request(
            action_id=f"action-{next(_numbers)}",
            operation_id=operation_id or str(uuid.uuid4()),
            lease_token=7,
            plan=plan,
            guards=Guards(**guards),
            verify=Verify(),
        )

    def run(
        self, request: ActionRequest, tools: Tools | None = None, stop_file: Path | None = None
    ) -> ActionReport:
        from spark_jobs.maintenance.report import Report  # noqa: PLC0415 needs pyspark
        from spark_jobs.maintenance.runner import run_action  # noqa: PLC0415 as above
        from spark_jobs.maintenance.stop import Stop  # noqa: PLC0415 as above

        report = Report("run", self.folder / "report.json", total=10)
        with Stop(self.spark, None if stop_file is None else str(stop_file)) as stop:
            return run_action(self.spark, request, report, stop, tools)

    def compact(self, table: TableName, tools: Tools | None = None, **given: Any) -> ActionReport:
        """Compact with our own writer; options of the stage are `options`, the rest are guards."""
        options = FEW | given.pop("options", {})
        arguments = {"options": options} | given.pop("arguments", {})
        request = self.request(table, Kind.COMPACT, [stage("compact_files", **arguments)], **given)
        return self.run(request, tools)

    def assert_whole(self, table: TableName) -> None:
        """Every file of every snapshot is there, with its recorded size (invariant I2)."""
        from spark_jobs.maintenance.arrow_files import local_path  # noqa: PLC0415 needs pyspark

        rows = self.sql(
            "SELECT DISTINCT file_path, file_size_in_bytes FROM {t}", table, ".all_files"
        )
        for row in rows:
            path = Path(str(local_path(row[0])))
            assert path.exists(), path
            assert path.stat().st_size == row[1]


def ok(report: ActionReport) -> ActionReport:
    """The report of an action that did what it should."""
    assert report.outcome == "done", (report.outcome, report.error)
    assert report.checks
    assert all(check.ok for check in report.checks), report.checks
    return report
