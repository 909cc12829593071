"""Orphans: what nothing refers to goes, after a dry run and a second look; all else stays."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.maintenance import Kind
from tests.integration.maintenance.job.lakes import MERGE_ON_READ, Lake, stage

if TYPE_CHECKING:
    from lakehouse_core.domain.table import TableName
    from spark_jobs.maintenance.report import ActionReport

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def location(lake: Lake, table: TableName) -> Path:
    return Path(lake.open(table).metadata().location.removeprefix("file:"))


def aged(path: Path, days: float = 10) -> Path:
    moment = time.time() - days * 86_400
    os.utime(path, (moment, moment))
    return path


def all_aged(folder: Path) -> set[Path]:
    return {aged(path) for path in folder.rglob("*") if path.is_file()}


def stray(folder: Path, name: str, days: float = 10) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"nobody's")
    return aged(path, days)


def cleaned(lake: Lake, table: TableName, days: float = 3, **guards: Any) -> ActionReport:
    older = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    stages = [
        stage("remove_orphan_files", older_than=older, dry_run=True),
        stage("remove_orphan_files", older_than=older, dry_run=False),
    ]
    return lake.run(lake.request(table, Kind.REMOVE_ORPHANS, stages, **guards))


def test_only_old_files_that_nothing_refers_to_go(lake: Lake) -> None:
    table = lake.events(2, partition="day", **MERGE_ON_READ)
    lake.sql("DELETE FROM {t} WHERE id = 1", table)
    lake.spark.sql(
        "CALL lake.system.compute_table_stats(table => :name)", args={"name": lake.name(table)}
    ).collect()
    lake.spark.sql(
        "CALL lake.system.compute_partition_stats(table => :name)", args={"name": lake.name(table)}
    ).collect()
    folder = location(lake, table)
    kept = all_aged(folder)  # data, deletes, manifests, lists, statistics, old metadata files
    rows = lake.rows(table)
    gone = {stray(folder, "data/day=2026-11-01/left over %20 ü.parquet"), stray(folder, "x/y.avro")}
    young = stray(folder, "data/being-written.parquet", days=1)

    report = cleaned(lake, table)

    assert report.outcome == "done", report.error
    assert set(report.stages[1].facts["orphans"]) == {f"file:{path}" for path in gone}
    assert report.stages[2].facts["deleted"] == 2
    assert not [path for path in gone if path.exists()]
    assert young.exists()
    assert not [path for path in kept if not path.exists()]
    assert lake.rows(table) == rows
    lake.assert_whole(table)
    assert cleaned(lake, table).outcome == "nothing"


def test_a_file_that_became_part_of_the_table_after_the_list_stays(lake: Lake) -> None:
    from spark_jobs.maintenance.orphans import remove_orphan_files  # noqa: PLC0415 needs pyspark
    from spark_jobs.maintenance.stop import Stop  # noqa: PLC0415 as above
    from spark_jobs.maintenance.work import Work  # noqa: PLC0415 as above

    table = lake.events(2)
    folder = location(lake, table)
    orphan = stray(folder, "data/orphan.parquet")
    snapshot = lake.snapshots(table)[-1]
    older = (datetime.now(UTC) - timedelta(days=2)).isoformat()
    steps = [
        stage("remove_orphan_files", older_than=older, dry_run=is_dry) for is_dry in (True, False)
    ]
    work = Work(
        lake.spark,
        lake.open(table),
        lake.request(table, Kind.REMOVE_ORPHANS, steps),
        Stop(lake.spark, None),
    )
    remove_orphan_files(work, steps[0])
    live = Path(lake.files(table)[0].file_path.removeprefix("file:"))
    assert work.listed == [f"file:{orphan}"]
    # A writer that had taken very long: what was an orphan is a file of the table now.
    work.listed.append(f"file://host{aged(live)}")

    facts = remove_orphan_files(work, steps[1]).facts

    assert (facts["deleted"], facts["kept_after_recheck"]) == (1, 1)
    assert live.exists()
    assert not orphan.exists()
    assert lake.snapshots(table)[-1] == snapshot
    lake.assert_whole(table)


def refused(report: ActionReport, reason: str, path: Path) -> None:
    assert report.outcome == "refused", (report.outcome, report.error)
    assert reason in str(report.error)
    assert path.exists()


def test_young_files_are_never_orphans(lake: Lake) -> None:
    table = lake.events(1)
    path = stray(location(lake, table), "data/x.parquet")
    refused(cleaned(lake, table, days=0.9), "24 hours", path)
    guard = datetime.now(UTC) - timedelta(days=30)
    assert cleaned(lake, table, older_than=guard).outcome == "nothing"  # the stricter one counts
    assert path.exists()


def test_a_table_whose_files_may_be_shared_is_refused(lake: Lake) -> None:
    table = lake.events(1, **{"gc.enabled": "false"})
    refused(cleaned(lake, table), "gc.enabled", stray(location(lake, table), "data/x.parquet"))


def test_a_location_shared_or_nested_is_refused(lake: Lake) -> None:
    table = lake.events(1)
    folder = location(lake, table)
    path = stray(folder, "data/x.parquet")
    metadata = lake.open(table).java.operations().current().metadataFileLocation()
    clone = f"{lake.namespace}.clone"
    lake.spark.sql(
        "CALL lake.system.register_table(table => :name, metadata_file => :file)",
        args={"name": clone, "file": metadata},
    ).collect()
    refused(cleaned(lake, table), "shared with", path)
    lake.spark.sql(f"DROP TABLE lake.{clone}")

    inner = f"lake.{lake.namespace}.inner"
    lake.spark.sql(f"CREATE TABLE {inner} (id INT) USING iceberg LOCATION 'file://{folder}/inner'")
    refused(cleaned(lake, table), "inner", path)
    lake.spark.sql(f"DROP TABLE {inner}")

    assert cleaned(lake, table).outcome == "done"
    assert not path.exists()


@pytest.mark.parametrize("variant", ["scheme", "authority"])
def test_paths_written_in_another_way_are_refused(lake: Lake, variant: str) -> None:
    table = lake.table()
    folder = location(lake, table)
    lake.append(table, 0)
    source = Path(lake.files(table)[0].file_path.removeprefix("file:"))
    opened = lake.open(table)
    written = {"scheme": f"hdfs:{source}", "authority": f"file://elsewhere{source}"}[variant]
    file = (
        opened.iceberg.DataFiles.builder(opened.java.spec())
        .withPath(written)
        .withFormat("PARQUET")
        .withFileSizeInBytes(source.stat().st_size)
        .withRecordCount(20)
        .build()
    )
    lake.sql("DELETE FROM {t}", table)
    opened.java.refresh()
    opened.java.expireSnapshots().expireOlderThan(int(time.time() * 1_000) + 1).cleanExpiredFiles(
        False
    ).commit()
    opened.java.newAppend().appendFile(file).commit()
    all_aged(folder)

    refused(cleaned(lake, table), "other schemes or authorities", source)
