"""Our Iceberg tables: made when missing, widened when the store grew, never narrowed.

Bronze and silver take their columns from the store's own, so a column that is new there appears
here by itself; one that vanished or changed its type stops the run before anything is written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 the name everybody knows it by
from pyspark.sql import types as T  # noqa: N812 as above

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from spark_jobs.pipeline.commit import Commits
    from spark_jobs.pipeline.plan import Plan

STATE = "lakehelm.pipeline.state"
MIB = 2**20
PROPERTIES = {
    "format-version": "2",
    "write.format.default": "parquet",
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": "1",
    "write.target-file-size-bytes": str(128 * MIB),
    # Row groups are what a scan is split by: a day of history shall keep several cores busy.
    "write.parquet.row-group-size-bytes": str(16 * MIB),
    "read.split.target-size": str(32 * MIB),
    "write.distribution-mode": "hash",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.metadata.metrics.default": "truncate(16)",
    "commit.retry.num-retries": "10",
    "commit.retry.min-wait-ms": "50",
    "commit.manifest.min-count-to-merge": "20",
    # Deletes beside the data: a changed row does not rewrite the files of its day.
    "write.merge.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
}


LONG_TEXTS = ("sql_text", "translated_sql", "error_message", "template")


class SchemaChangeError(Exception):
    """Raised when the store's columns no longer fit a table: one is gone or changed its type."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is kept: partitions, and columns that are ours and not the store's."""

    name: str
    partition: tuple[Column, ...] = ()
    own: tuple[str, ...] = ()


@dataclass(slots=True)
class Lake:
    """The tables of one run."""

    spark: SparkSession
    plan: Plan
    commits: Commits

    def full_name(self, name: str) -> str:
        """Catalog, namespace and table."""
        return self.plan.table(name)

    def exists(self, name: str) -> bool:
        """Whether the table is there."""
        return bool(self.spark.catalog.tableExists(self.full_name(name)))

    def read(self, name: str) -> DataFrame:
        """The table as it is now."""
        return self.spark.table(self.full_name(name))

    def prepare(self, layout: Layout, frame: DataFrame) -> None:
        """Have the table, with every column of the frame.

        Raises:
            SchemaChangeError: the frame lacks a column of the table, or has it with another type.
        """
        table = self.full_name(layout.name)
        if not self.exists(layout.name):
            self.commits.run(table, lambda: self._create(layout, frame))
            return
        added = missing_columns(table, self.read(layout.name).schema, frame.schema, layout.own)
        if added:
            columns = ", ".join(f"`{one.name}` {one.dataType.simpleString()}" for one in added)
            self.commits.run(
                table, lambda: self.sql(f"ALTER TABLE {table} ADD COLUMNS ({columns})")
            )

    def append(
        self,
        name: str,
        frame: DataFrame,
        *,
        spread: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Append rows in one commit whose snapshot carries the properties.

        Args:
            name: the table.
            frame: the rows.
            spread: they belong to many partitions, and are sorted out before they are written.
            properties: for the snapshot's summary.
        """
        mode = "hash" if spread else "none"
        writer = frame.writeTo(self.full_name(name)).option("distribution-mode", mode)
        for key, value in {"run-id": self.plan.run_id, **(properties or {})}.items():
            writer = writer.option(f"snapshot-property.lakehelm.{key}", value)
        writer.append()

    def overwrite(self, name: str, frame: DataFrame, condition: Column) -> None:
        """Replace the rows that the condition covers by those of the frame, in one commit."""
        writer = frame.writeTo(self.full_name(name))
        writer = writer.option("snapshot-property.lakehelm.run-id", self.plan.run_id)
        writer.overwrite(condition)

    def keep_state(self, name: str, state: dict[str, Any]) -> None:
        """Leave the state with the table, as a property: no data file, no snapshot."""
        table = self.full_name(name)
        text = json.dumps(state, sort_keys=True).replace("\\", "\\\\").replace("'", "\\'")
        statement = f"ALTER TABLE {table} SET TBLPROPERTIES ('{STATE}' = '{text}')"
        self.commits.run(table, lambda: self.sql(statement))

    def sql(self, statement: str) -> DataFrame:
        """Run a statement made of our own names (`Plan.table`), never of anything read."""
        return self.spark.sql(statement)

    def _create(self, layout: Layout, frame: DataFrame) -> None:
        table = self.full_name(layout.name)
        self.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.plan.catalog}.{self.plan.namespace}")
        writer = frame.limit(0).writeTo(table).using("iceberg")
        # Nobody prunes files by the bounds of a long text.
        unbounded = {
            f"write.metadata.metrics.column.{name}": "counts"
            for name in LONG_TEXTS
            if name in frame.columns
        }
        for key, value in (PROPERTIES | unbounded).items():
            writer = writer.tableProperty(key, value)
        if layout.partition:
            writer = writer.partitionedBy(*layout.partition)
        try:
            writer.create()
        except Exception:
            if not self.exists(layout.name):  # else another run was faster
                raise


def missing_columns(
    table: str, present: T.StructType, wanted: T.StructType, own: Collection[str] = ()
) -> list[T.StructField]:
    """The columns that the table lacks.

    Raises:
        SchemaChangeError: a column of the table is gone or has another type; names it.
    """
    # As texts: whether an array may hold NULL is no difference.
    known = {one.name: one.dataType.simpleString() for one in present}
    asked = {one.name: one.dataType.simpleString() for one in wanted}
    gone = [name for name in known if name not in asked and name not in own]
    if gone:
        raise SchemaChangeError(
            f"Table {table} has column {', '.join(gone)}, which the store no longer exports. Only "
            "additions are followed: bring the column back, or move the table away to start anew"
        )
    changed = [
        f"{name} ({known[name]} in the table, {kind} in the store)"
        for name, kind in asked.items()
        if name in known and known[name] != kind
    ]
    if changed:
        raise SchemaChangeError(
            f"Columns of {table} changed their type: {'; '.join(changed)}. Only additions are "
            "followed: change it back, or move the table away to start anew"
        )
    return [one for one in wanted if one.name not in known]


def storable(frame: DataFrame) -> DataFrame:
    """The frame with types that Iceberg has: it knows no integers below 32 bits."""
    narrow = (T.ByteType, T.ShortType)
    return frame.select(
        *(
            F.col(one.name).cast("int").alias(one.name)
            if isinstance(one.dataType, narrow)
            else F.col(one.name)
            for one in frame.schema
        )
    )
