"""A group of files rewritten by Spark: read as planned, written as the table asks for.

The way Iceberg's own action does it: tasks are staged under a name, read and written under it, and
the new files fetched from its coordinator. So groups written by Spark and by Arrow share a commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.maintenance.groups import Group
    from spark_jobs.maintenance.work import Work


def rewrite_group(
    work: Work, group: Group, arrange: Callable[[DataFrame], DataFrame] | None = None
) -> int:
    """Give a group its new files; how many they are.

    Args:
        work: the action.
        group: what to rewrite.
        arrange: brings the rows into an order, in as many partitions as there shall be files; else
            the files are put together in theirs.
    """
    table = work.table
    reading = {"split-size": str(group.split_bytes), "file-open-cost": "0"} if not arrange else {}
    with table.rows_of(group.java.fileScanTasks(), reading, _plain(work.spark)) as staged:
        name, rows = staged
        if arrange is not None:
            rows = arrange(rows)
        rows.write.format("iceberg").options(**_writing(work, group, arrange is not None)).mode(
            "append"
        ).save(name)
        files = table.iceberg.spark.FileRewriteCoordinator.get().fetchNewFiles(table.java, name)
        group.java.setOutputFiles(files)
        return int(files.size())


def _plain(spark: SparkSession) -> SparkSession:
    """A session that writes as many files as it was told to."""
    own = spark.newSession()
    own.conf.set("spark.sql.adaptive.enabled", "false")
    return own


def _writing(work: Work, group: Group, is_arranged: bool) -> dict[str, Any]:
    spec_id = group.java.outputSpecId()
    options = {
        "target-file-size-bytes": str(group.most_bytes),
        "output-spec-id": str(spec_id),
    }
    if is_arranged:
        return options | {"use-table-distribution-and-ordering": "false", "fanout-enabled": "true"}
    is_moved = any(one["spec-id"] != spec_id for one in group.files)
    return options | {"distribution-mode": "range" if is_moved else "none"}
