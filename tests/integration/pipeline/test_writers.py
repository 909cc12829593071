"""Other writers and other schemas: conflicts are retried and named, columns are only ever added."""

from __future__ import annotations

import threading
import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_core.pipeline.state import read_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from spark_jobs.pipeline.lake import Lake
    from tests.integration.pipeline.lakes import Pipeline

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
DAY = date(2026, 11, 16)


def lake_of(pipeline: Pipeline, attempts: int = 4) -> Lake:
    from spark_jobs.pipeline.commit import Commits  # noqa: PLC0415 needs pyspark
    from spark_jobs.pipeline.lake import Lake as OurLake  # noqa: PLC0415 as above
    from spark_jobs.pipeline.plan import Plan  # noqa: PLC0415 as above

    plan = Plan(run_id="r", catalog="lake", namespace=pipeline.config.pipeline.namespace)
    return OurLake(pipeline.spark, plan, Commits(attempts, pause=lambda _: None))


def waiting_for(frame: DataFrame, flag: Path, started: Path) -> DataFrame:
    """The same rows, once somebody has made a file: time for another writer to commit."""
    waited_for, told = str(flag), str(started)

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        Path(told).touch()
        deadline = time.monotonic() + 60
        while not Path(waited_for).exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        yield from batches

    # In one task: the other writer needs a core as well.
    return frame.coalesce(1).mapInArrow(wait, frame.schema)


def test_a_commit_that_meets_another_writer_is_planned_again_or_given_up_by_name(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 needs pyspark

    from spark_jobs.pipeline.commit import CommitConflictError  # noqa: PLC0415 as above
    from spark_jobs.pipeline.lake import Layout  # noqa: PLC0415 as above

    lake = lake_of(pipeline)
    spark = pipeline.spark
    mine = spark.createDataFrame([("mine", 1)], "who string, n int")
    lake.prepare(Layout("shared"), mine)
    lake.append("shared", spark.createDataFrame([("mine", 0), ("other", 0)], "who string, n int"))
    table = lake.full_name("shared")

    def merge_slowly(attempt: int) -> None:
        flag, started = tmp_path / f"go-{attempt}", tmp_path / f"started-{attempt}"
        slow = waiting_for(mine, flag, started)

        def disturb() -> None:
            deadline = time.monotonic() + 60
            while not started.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            spark.sql(f"UPDATE {table} SET n = n + 100 WHERE who IN ('mine', 'other')")  # noqa: S608
            flag.touch()

        other = threading.Thread(target=disturb)
        other.start()
        try:
            same = F.col("new.who") == F.col("shared.who")
            merge = slow.alias("new").mergeInto(table, same)
            merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
        finally:
            other.join()

    attempts = iter(range(10))

    def write() -> None:
        attempt = next(attempts)
        if attempt == 0:
            merge_slowly(attempt)
        else:
            mine.alias("new").mergeInto(
                table, F.col("new.who") == F.col("shared.who")
            ).whenMatched().updateAll().whenNotMatched().insertAll().merge()

    lake.commits.run(table, write)
    assert lake.commits.retries == 1
    rows = {row["who"]: row["n"] for row in spark.table(table).collect()}
    assert rows == {"mine": 1, "other": 100}  # both writers' work is there

    once = lake_of(pipeline, attempts=1)
    with pytest.raises(CommitConflictError, match=f"{table}.*1 attempts met") as caught:
        once.commits.run(table, lambda: merge_slowly(5))
    assert "Exception" in str(caught.value)


def plan_with(pipeline: Pipeline, folder: Path, export_id: str, rows: pa.Table) -> dict:
    file = folder / f"{export_id}.parquet"
    pq.write_table(rows, file)
    part = {"files": [str(file)], "rows": rows.num_rows, "days": [DAY.isoformat()]}
    return {
        "run_id": export_id,
        "catalog": "lake",
        "namespace": pipeline.config.pipeline.namespace,
        "exports": [
            {
                "id": export_id,
                "exported_at": datetime(2026, 11, 16, 13, tzinfo=UTC).isoformat(),
                "tables": {"query_event": part},
            }
        ],
        "after": None,
    }


def test_columns_are_added_and_never_lost_or_retyped(pipeline: Pipeline, tmp_path: Path) -> None:
    from spark_jobs.pipeline.lake import SchemaChangeError  # noqa: PLC0415 needs pyspark
    from tests.factories import query_event  # noqa: PLC0415

    pipeline.add(query_event(query_id="a"))
    rows = pipeline.store.read("SELECT * FROM query_event")
    pipeline.run_plan(plan_with(pipeline, tmp_path, "1", rows))

    wider = rows.append_column("warehouse_size", pa.array(["XL"]))
    pipeline.run_plan(plan_with(pipeline, tmp_path, "2", wider))
    for name in ("query_event_bronze", "query_event"):
        found = pipeline.rows(name).to_pylist()
        assert {row["warehouse_size"] for row in found} == (
            {None, "XL"} if name.endswith("bronze") else {"XL"}
        )

    before = pipeline.snapshots()
    with pytest.raises(SchemaChangeError, match="column warehouse_size, which the store no longer"):
        pipeline.run_plan(plan_with(pipeline, tmp_path, "3", rows))
    retyped = wider.set_column(
        wider.schema.get_field_index("bytes_scanned"), "bytes_scanned", pa.array(["much"])
    )
    with pytest.raises(SchemaChangeError, match=r"bytes_scanned \(bigint in the table, string"):
        pipeline.run_plan(plan_with(pipeline, tmp_path, "4", retyped))
    assert pipeline.snapshots() == before


def test_care_puts_small_files_together_and_changes_no_row(pipeline: Pipeline) -> None:
    from tests.factories import query_event  # noqa: PLC0415

    for number in range(2):
        pipeline.add(query_event(query_id=f"q{number}", sql_text=f"SELECT a + {number}"))
        pipeline.run()
    pipeline.add(query_event(query_id="q0", bytes_scanned=2**40, sql_text="SELECT a + 0"))
    pipeline.run()
    content, files = pipeline.content(()), pipeline.files("query_event")
    assert files > 2  # one per run, and a delete file
    grown = ["query_event", "query_event_bronze", "sql_text"]
    document = pipeline.plans[-1] | {
        "run_id": "care",
        "exports": [],
        "after": "9",
        "care": {"compact": grown, "expire": grown, "min_files": 2, "keep_snapshots": 1,
                 "keep_hours": 0},
    }  # fmt: skip
    report = pipeline.run_plan(document)
    assert report["stages"][-1]["facts"] == {"compacted": grown, "expired": grown}
    assert pipeline.files("query_event") == pipeline.files("sql_text") == 1
    assert pipeline.content(()) == content
    assert len(read_state(pipeline.config).tables["sql_text"].snapshots) == 1
