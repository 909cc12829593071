"""An Iceberg table through Java: one handle, its metadata as one document, its files in bulk.

Each call across to Java costs a round trip, so what comes by the thousand (snapshots, files) comes
as one JSON text, in the forms Iceberg itself writes to metadata files and REST answers.
"""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.maintenance.outcome import RefusedError, is_no_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lakehouse_core.domain.table import TableName

OPERATION = "lakehelm.operation-id"
ACTION = "lakehelm.action-id"
STAGE = "lakehelm.stage"
MAIN = "main"


def identifier(name: str) -> str:
    """A name as Spark reads it back, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def full_name(table: TableName) -> str:
    """Catalog, namespace and name, quoted."""
    return ".".join(identifier(part) for part in (table.catalog, *table.namespace, table.name))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot, as the metadata file tells it."""

    snapshot_id: int
    parent_id: int | None
    timestamp_ms: int
    summary: dict[str, str]


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the metadata file says; one moment of the table."""

    document: dict[str, Any]

    @property
    def uuid(self) -> str:
        """Tells a table from another of the same name."""
        return str(self.document["table-uuid"])

    @property
    def format_version(self) -> int:
        """1, 2 or 3."""
        return int(self.document["format-version"])

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self.document.get("properties", {}))

    @property
    def location(self) -> str:
        """Where the table is."""
        return str(self.document["location"])

    @property
    def current_snapshot_id(self) -> int | None:
        """The head of main."""
        found = self.document.get("current-snapshot-id")
        return None if found in (None, -1) else int(found)

    @property
    def refs(self) -> dict[str, dict[str, Any]]:
        """Branches and tags by name."""
        return dict(self.document.get("refs", {}))

    @property
    def snapshots(self) -> dict[int, Snapshot]:
        """Every snapshot by its id."""
        return {
            one["snapshot-id"]: Snapshot(
                one["snapshot-id"],
                one.get("parent-snapshot-id"),
                one["timestamp-ms"],
                one.get("summary", {}),
            )
            for one in self.document.get("snapshots", ())
        }

    @property
    def schema(self) -> dict[str, Any]:
        """The current schema."""
        wanted = self.document["current-schema-id"]
        return next(one for one in self.document["schemas"] if one["schema-id"] == wanted)

    @property
    def spec(self) -> dict[str, Any]:
        """The partition spec that writers use."""
        wanted = self.document["default-spec-id"]
        return next(one for one in self.document["partition-specs"] if one["spec-id"] == wanted)

    @property
    def sort_order_id(self) -> int:
        """The order that writers are asked for; 0 for none."""
        return int(self.document.get("default-sort-order-id", 0))

    def is_gc_enabled(self) -> bool:
        """Whether files may be deleted: another table may share them."""
        return self.properties.get("gc.enabled", "true").strip().lower() == "true"

    def ancestors(self, snapshot_id: int | None) -> list[Snapshot]:
        """A snapshot and those before it, as far as they are kept; newest first."""
        found, known = [], self.snapshots
        while snapshot_id is not None and snapshot_id in known:
            found.append(known[snapshot_id])
            snapshot_id = known[snapshot_id].parent_id
        return found

    def commits_of(self, operation_id: str) -> list[Snapshot]:
        """The snapshots on main that an operation made; oldest first."""
        line = self.ancestors(self.current_snapshot_id)
        return [one for one in reversed(line) if one.summary.get(OPERATION) == operation_id]


@dataclass(frozen=True, slots=True)
class LakeTable:
    """One table, at hand in Java."""

    spark: SparkSession
    name: TableName
    java: Any

    @classmethod
    def load(cls, spark: SparkSession, name: TableName) -> LakeTable:
        """The table as it is now.

        Raises:
            RefusedError: there is none of this name.
        """
        try:
            java = _jvm(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
                spark._jsparkSession, full_name(name)
            )
        except Exception as error:
            if is_no_table(error):
                raise RefusedError(f"Table {name} is not there: dropped or renamed") from None
            raise
        return cls(spark, name, java)

    @property
    def jvm(self) -> Any:
        """The way into Java."""
        return _jvm(self.spark)

    @property
    def iceberg(self) -> Any:
        """Iceberg's packages."""
        return self.jvm.org.apache.iceberg

    @property
    def full_name(self) -> str:
        """Quoted, for statements."""
        return full_name(self.name)

    def refresh(self) -> Metadata:
        """Read the table again.

        Raises:
            RefusedError: it is gone.
        """
        try:
            self.java.refresh()
        except Exception as error:
            if is_no_table(error):
                raise RefusedError(f"Table {self.name} is gone: it was dropped meanwhile") from None
            if "UUID does not match" in str(error):
                raise RefusedError(
                    f"Table {self.name} is another one now: it was dropped and made anew meanwhile"
                ) from None
            raise
        return self.metadata()

    def metadata(self) -> Metadata:
        """What the handle knows, without asking the catalog."""
        current = self.java.operations().current()
        if current is None:  # a refresh has found nothing
            raise RefusedError(f"Table {self.name} is gone: it was dropped meanwhile")
        return Metadata(json.loads(self.iceberg.TableMetadataParser.toJson(current)))

    def tasks(self, snapshot_id: int) -> Any:
        """A Java list of the tasks that read a snapshot, one per data file."""
        scan = self.java.newScan().useSnapshot(snapshot_id).ignoreResiduals()
        found = scan.planFiles()
        try:
            return self.iceberg.relocated.com.google.common.collect.Lists.newArrayList(
                found.iterator()
            )
        finally:
            found.close()

    def files_of(self, tasks: Any) -> list[dict[str, Any]]:
        """The data files of tasks, in their order, as Iceberg's REST answers describe them."""
        if tasks.isEmpty():
            return []
        responses = self.iceberg.rest.responses
        answer = (
            responses.FetchScanTasksResponse.builder()
            .withFileScanTasks(tasks)
            .withSpecsById(self.java.specs())
            .build()
        )
        document = json.loads(responses.FetchScanTasksResponseParser.toJson(answer))
        return [one["data-file"] for one in document["file-scan-tasks"]]

    def parsed_order(self, order: str) -> list[Any]:
        """The parts of a sort order, as Iceberg's extension of Spark's parser reads them."""
        parser = self.spark._jsparkSession.sessionState().sqlParser()
        return list(parser.parseSortOrder(order))

    @contextmanager
    def rows_of(
        self, tasks: Any, options: Mapping[str, str], session: SparkSession | None = None
    ) -> Iterator[tuple[str, DataFrame]]:
        """The rows that tasks read, with deletes applied; and the name they are staged under."""
        spark, name = self.iceberg.spark, str(uuid.uuid4())
        spark.SparkTableCache.get().add(name, self.java)
        spark.ScanTaskSetManager.get().stageTasks(self.java, name, tasks)
        try:
            reader = (session or self.spark).read.format("iceberg").options(**options)
            yield name, reader.load(name)
        finally:
            spark.SparkTableCache.get().remove(name)
            spark.ScanTaskSetManager.get().removeTasks(self.java, name)
            spark.FileRewriteCoordinator.get().clearRewrite(self.java, name)


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm
