"""Other writers commit between our planning and our commit: no row is lost, doubled or back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from lakehouse_core.domain.maintenance import Kind
from tests.integration.maintenance.job.lakes import MERGE_ON_READ, Lake, ok, stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.domain.table import TableName
    from spark_jobs.maintenance.work import Tools

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def meeting(*disturbances: Callable[[], object]) -> Tools:
    """Tools whose n-th commit happens right after the n-th disturbance."""
    from spark_jobs.maintenance.commit import commit_groups  # noqa: PLC0415 needs pyspark
    from spark_jobs.maintenance.work import Tools as Made  # noqa: PLC0415 as above

    waiting = list(disturbances)

    def commit(*given: Any) -> None:
        if waiting:
            waiting.pop(0)()
        commit_groups(*given)

    return Made(commit=commit, pause=lambda _: None)


def by_pyiceberg(lake: Lake, table: TableName, first: int) -> None:
    """Another engine appends a row per day."""
    catalog = lake.config.catalogs["lake"]
    opened = SqlCatalog(
        "lake", uri=f"sqlite:///{catalog.path}", warehouse=f"file://{catalog.warehouse}"
    )
    try:
        target = opened.load_table((*table.namespace, table.name))
        target.append(
            pa.table(
                {
                    "id": [first, first + 1],
                    "day": pa.array([20758, 20759], pa.date32()),
                    "kind": ["other", "other"],
                    "amount": [float("nan"), -0.0],
                },
                schema=target.schema().as_arrow(),
            )
        )
    finally:
        opened.engine.dispose()


def stray_files(lake: Lake, table: TableName) -> set[str]:
    """Data files on disk that no snapshot knows."""
    from spark_jobs.maintenance.arrow_files import local_path  # noqa: PLC0415 needs pyspark

    known = {
        str(local_path(row[0]))
        for row in lake.sql("SELECT file_path FROM {t}", table, ".all_files")
    }
    folder = Path(str(local_path(lake.open(table).metadata().location))) / "data"
    return {str(path) for path in folder.rglob("*.parquet")} - known


@pytest.mark.parametrize("partition", ["", "day"])
def test_an_append_meanwhile_and_the_rewrite_both_land(lake: Lake, partition: str) -> None:
    table = lake.events(3, partition=partition)
    rows = lake.rows(table)

    report = ok(lake.compact(table, meeting(lambda: by_pyiceberg(lake, table, 900))))

    found = lake.rows(table)
    assert sum((found - rows).values()) == 2
    assert not rows - found
    assert report.stages[1].facts["attempts"] == 1
    lake.assert_whole(table)


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_deleted_meanwhile_stay_deleted(lake: Lake, mode: str) -> None:
    table = lake.events(3, partition="day", **{"write.delete.mode": mode})
    delete = "DELETE FROM {t} WHERE id IN (0, 1, 25)"

    report = ok(lake.compact(table, meeting(lambda: lake.sql(delete, table))))

    ids = [row.id for row in lake.sql("SELECT id FROM {t}", table)]
    assert sorted(ids) == [one for one in range(60) if one not in {0, 1, 25}]
    assert report.stages[1].facts["attempts"] == 2
    assert stray_files(lake, table) == set()  # the first attempt's files are gone
    lake.assert_whole(table)


def test_an_equality_delete_meanwhile_still_applies(lake: Lake) -> None:
    table = lake.events(3)

    def delete() -> None:
        """What a Flink writer does: the key, not the place, of the deleted row."""
        opened = lake.open(table)
        schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
        path = lake.folder / "equality.parquet"
        pq.write_table(pa.table({"id": [3, 44]}, schema=schema), path)
        gateway: Any = lake.spark.sparkContext._gateway
        ids = gateway.new_array(gateway.jvm.int, 1)
        ids[0] = 1
        file = (
            opened.iceberg.FileMetadata.deleteFileBuilder(opened.java.spec())
            .ofEqualityDeletes(ids)
            .withPath(f"file:{path}")
            .withFormat("PARQUET")
            .withFileSizeInBytes(path.stat().st_size)
            .withRecordCount(2)
            .build()
        )
        opened.java.newRowDelta().addDeletes(file).commit()

    report = lake.compact(table, meeting(delete))

    assert report.outcome == "done", report.error
    ids = [row.id for row in lake.sql("SELECT id FROM {t}", table)]
    assert sorted(ids) == [one for one in range(60) if one not in {3, 44}]
    assert report.stages[1].facts["attempts"] == 1


def test_rows_replaced_meanwhile_are_not_doubled(lake: Lake) -> None:
    table = lake.events(3, partition="day")
    overwrite = "INSERT OVERWRITE {t} SELECT 1000, DATE '2026-11-01', 'new', 0.5"
    lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        ok(lake.compact(table, meeting(lambda: lake.sql(overwrite, table))))
    finally:
        lake.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

    ids = [row.id for row in lake.sql("SELECT id FROM {t}", table)]
    assert sorted(ids) == [*range(1, 60, 2), 1000]


def test_a_conflict_without_end_is_named_and_leaves_nothing_behind(lake: Lake) -> None:
    table = lake.events(4, **MERGE_ON_READ)
    deletes = [
        lambda one=one: lake.sql(f"DELETE FROM {{t}} WHERE id = {one}", table)  # noqa: S608 ours
        for one in range(3)
    ]

    report = lake.compact(table, meeting(*deletes), max_attempts=2)

    assert report.outcome == "conflict"
    assert "2 attempts met" in str(report.error)
    assert "ValidationException: Cannot commit, found new position delete" in str(report.error)
    assert report.commits == []
    assert stray_files(lake, table) == set()
    assert len(lake.sql("SELECT id FROM {t}", table)) == 80 - 2


def test_a_tag_set_after_planning_survives_expiry(lake: Lake) -> None:
    table = lake.events(4)
    first, second, *_ = lake.snapshots(table)
    request = lake.request(
        table,
        Kind.EXPIRE_SNAPSHOTS,
        [stage("expire_snapshots", older_than="2100-01-01T00:00:00+00:00", retain_last=1)],
    )
    lake.sql(f"ALTER TABLE {{t}} CREATE TAG late AS OF VERSION {second}", table)
    rows = lake.rows(table, second)

    report = ok(lake.run(request))

    assert report.outcome == "done"
    assert first not in lake.snapshots(table)
    assert lake.rows(table, second) == rows
