"""The Spark session of a run: one of our own, or one on a Spark Connect server."""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

# Executors parse SQL with these; they are pure Python. sqlglot itself must be installed there.
SHIPPED = ("lakehouse_core/__init__.py", "lakehouse_core/sql", "lakehouse_core/domain")
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # A batch of texts in Python: few enough rows that megabytes of SQL each do no harm.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16MB",
    # By default sets and percentiles are sorted for once a task has more than 128 groups.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "50000",
    # Iceberg reads Parquet time stamps as they are; no session's calendar shall change them.
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}
OWN_SESSION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


class SessionPlan(Protocol):
    """What a job's plan says about its session."""

    @property
    def conf(self) -> Mapping[str, str]:
        """Spark settings."""

    @property
    def master(self) -> str:
        """Spark master of a session of our own."""

    @property
    def remote(self) -> str | None:
        """A Spark Connect server to use instead."""


def open_session(plan: SessionPlan, name: str = "lakehelm-pipeline") -> SparkSession:
    """A session as the plan wants it, under a name of its own."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 a plan that is wrong needs no Spark

    if plan.remote is not None:
        spark = SparkSession.builder.remote(plan.remote).getOrCreate()
        for key, value in {**SETTINGS, **plan.conf}.items():
            spark.conf.set(key, value)
        _ship(spark)
        return spark
    builder = SparkSession.builder.master(plan.master).appName(name)
    for key, value in {**OWN_SESSION, **SETTINGS, **plan.conf}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if plan.master.startswith("local"):
        _write_no_checksums(spark)
    else:
        _ship(spark)
    return spark


def _ship(spark: SparkSession) -> None:
    """Send the modules that executors need; they have an interpreter but not our tree."""
    root = Path(__file__).parents[2]
    archive = Path(tempfile.mkdtemp(prefix="lakehelm-")) / "lakehelm_sql.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for part in SHIPPED:
            path = root / part
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                target.write(file, file.relative_to(root))
        for file in sorted(Path(__file__).parents[1].rglob("*.py")):
            target.write(file, file.relative_to(root))
    try:
        spark.addArtifacts(str(archive), pyfile=True)
    finally:
        archive.unlink()
        archive.parent.rmdir()


def _write_no_checksums(spark: SparkSession) -> None:
    """Spare each file its `.crc` twin, which nobody reads: Parquet has checksums of its own."""
    java = spark._jvm  # a local session has a JVM of its own
    context = spark.sparkContext._jsc
    if java is None:
        sys.stderr.write("no JVM at hand: files get checksum twins\n")
        return
    where = java.java.net.URI.create("file:///")
    java.org.apache.hadoop.fs.FileSystem.get(where, context.hadoopConfiguration()).setWriteChecksum(
        False
    )
