"""How a table stands: files, bytes, deletes, manifests, snapshots; before an action and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_FILE_BYTES = 32 << 20


def measure(spark: SparkSession, table: str, snapshot_id: int | None) -> dict[str, float]:
    """The figures of a table at a snapshot.

    Args:
        spark: the session.
        table: its quoted name.
        snapshot_id: the head of main; None when the table is empty.
    """
    names = ("data_files", "total_bytes", "delete_files", "small_files", "manifests")
    figures: dict[str, float] = dict.fromkeys(names, 0)
    figures["snapshots"] = spark.sql(f"SELECT 1 FROM {table}.snapshots").count()  # noqa: S608 quoted
    if snapshot_id is None:
        return figures
    files = spark.sql(
        "SELECT content, count(*) AS files, sum(file_size_in_bytes) AS bytes, "  # noqa: S608 quoted
        "count_if(file_size_in_bytes < :small) AS small "
        f"FROM {table}.files GROUP BY content",
        args={"small": SMALL_FILE_BYTES},
    ).collect()
    for row in files:
        if row["content"] == 0:
            figures["data_files"] = row["files"]
            figures["total_bytes"] = row["bytes"]
            figures["small_files"] = row["small"]
        else:
            figures["delete_files"] += row["files"]
    figures["manifests"] = spark.sql(f"SELECT 1 FROM {table}.manifests").count()  # noqa: S608 quoted
    return figures
