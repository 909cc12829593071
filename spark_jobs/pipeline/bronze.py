"""Bronze: exports as they are, appended once each, partitioned by the day they arrived.

The table itself is the record of what arrived: an export whose id it holds is not appended again,
whatever happened to the run that did it. Files of one export hold one id, so the question is
answered from file statistics.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 the name everybody knows it by
from pyspark.sql.functions import partitioning

from spark_jobs.pipeline.lake import Layout, storable
from spark_jobs.pipeline.texts import text_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.pipeline.lake import Lake
    from spark_jobs.pipeline.plan import Export
    from spark_jobs.pipeline.progress import Stage

OWN = ("export_id", "exported_at", "text_id")


def bronze_name(table: str) -> str:
    """The bronze table of a store table."""
    return f"{table}_bronze"


def load(lake: Lake, table: str, stage: Stage) -> tuple[str, ...]:
    """Append the exports of a store table that are not there yet, one commit each.

    Returns:
        The ids of all exports after `plan.after`, oldest first: what is left to be carried on.
    """
    name = bronze_name(table)
    present = set(_arrived(lake, name))
    landed = [export for export in lake.plan.exports if table in export.tables]
    for export in landed:
        part = export.tables[table]
        stage.rows_in = (stage.rows_in or 0) + part.rows
        if export.id in present:
            continue
        frame = _read(lake, export, part.files)
        lake.prepare(Layout(name, (partitioning.days("exported_at"),), OWN), frame)
        lake.commits.run(lake.full_name(name), partial(_append, lake, name, export, frame))
        stage.rows_out = (stage.rows_out or 0) + part.rows
        stage.tables.append(name)
    after = lake.plan.after or ""
    return tuple(sorted(present | {one.id for one in landed if one.id > after}))


def rows_of(lake: Lake, table: str, exports: tuple[str, ...]) -> DataFrame:
    """The bronze rows of consecutive exports."""
    frame = lake.read(bronze_name(table))
    return frame.where(F.col("export_id").between(exports[0], exports[-1]))


def _arrived(lake: Lake, name: str) -> list[str]:
    """Ids of the exports that are there and came after `plan.after`."""
    if not lake.exists(name):
        return []
    ids = lake.read(name).select("export_id").where(F.col("export_id") > (lake.plan.after or ""))
    return [row[0] for row in ids.distinct().collect()]


def _read(lake: Lake, export: Export, files: tuple[str, ...]) -> DataFrame:
    frame = storable(lake.spark.read.parquet(*files))
    if "sql_text" in frame.columns and "text_id" not in frame.columns:
        # Once, here: whoever comes later reads the id and leaves the texts alone.
        frame = frame.withColumn("text_id", text_id(frame))
    return frame.withColumns(
        {"export_id": F.lit(export.id), "exported_at": F.lit(export.exported_at)}
    )


def _append(lake: Lake, name: str, export: Export, frame: DataFrame) -> None:
    # Asked at every attempt: a commit of unknown outcome may have happened.
    if lake.read(name).where(F.col("export_id") == export.id).isEmpty():
        lake.append(name, frame, properties={"export-id": export.id})
