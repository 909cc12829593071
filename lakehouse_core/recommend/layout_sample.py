"""The sample of a table: taken by a Spark job, kept until the table has another snapshot."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.domain.table import TableName
from lakehouse_core.layout.sample import Sample
from lakehouse_core.runtime import logs
from lakehouse_core.runtime.spark_job import (
    SHORT_JVM,
    JobFiles,
    SparkJob,
    run_spark_job,
    session_conf,
    where_it_runs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from lakehouse_core.catalog.measure import Reading
    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config
    from lakehouse_core.layout.planned import LakeFiles
    from lakehouse_core.layout.usable import Columns

MODULE = "spark_jobs.sample_layout"
KEPT_SAMPLES = 20
_PLACES = ("_file", "_pos")


class SampleError(LakehouseError):
    """Raised when a table could not be sampled; says why and where the log is."""


class Sampler:
    """Takes samples, or finds the one that was taken of the same snapshot."""

    def __init__(
        self,
        config: Config,
        machine: Machine,
        files: LakeFiles,
        *,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._config = config
        self._machine = machine
        self._files = files
        self._is_stopping = is_stopping

    def sample(self, reading: Reading, columns: Columns) -> Sample:
        """The rows of a table as of its current snapshot.

        Raises:
            SampleError: the job did not give one.
            NotInstalledError: there is no Java that Spark runs on.
        """
        target = self._target(reading)
        if not target.exists():
            self._take(reading, target)
            self._forget_old(target.parent)
        return self._load(target, reading, columns)

    def _target(self, reading: Reading) -> Path:
        snapshot = reading.metadata.current.snapshot_id if reading.metadata.current else 0
        settings = self._config.layout
        asked = f"{reading.metadata.table_uuid} {snapshot} {settings.sample_rows}"
        name = hashlib.sha256(f"{asked} {settings.sample_bytes}".encode()).hexdigest()[:24]
        return self._config.home / "cache" / "layout" / f"{name}.parquet"

    def _take(self, reading: Reading, target: Path) -> None:
        settings, config = self._config.layout, self._config
        current = reading.metadata.current
        folder = config.home / "run" / "layout"
        run = target.stem
        files = JobFiles(
            plan=folder / f"{run}.plan.json",
            report=folder / f"{run}.report.json",
            log=config.home / "logs" / "layout" / f"{run}.log",
        )
        own = {"spark.driver.extraJavaOptions": SHORT_JVM, "spark.sql.shuffle.partitions": "4"}
        plan: dict[str, Any] = {
            "run_id": run,
            "catalog": TableName.parse(reading.table_id).catalog,
            "table": reading.table_id,
            "snapshot_id": current.snapshot_id if current else None,
            "rows": settings.sample_rows,
            "max_bytes": settings.sample_bytes,
            "output": str(target),
            "conf": session_conf(config, self._machine, own),
            **where_it_runs(config),
        }
        job = SparkJob(
            module=MODULE, files=files, timeout=settings.timeout, is_stopping=self._is_stopping
        )
        end = run_spark_job(config, self._machine, job, plan)
        files.plan.unlink(missing_ok=True)
        if end.stopped is not None:
            raise SampleError(f"The sample of {reading.table_id} was stopped: {end.stopped}")
        if end.exit_code != 0 or not target.exists():
            raise SampleError(
                f"{reading.table_id} could not be sampled: {_error(files)} (log: {files.log})"
            )
        files.report.unlink(missing_ok=True)

    def _load(self, target: Path, reading: Reading, columns: Columns) -> Sample:
        rows = pq.read_table(target)
        parts = self._files.partitions(reading)
        partition = np.zeros(rows.num_rows, np.int64)
        if "_file" in rows.column_names and len(parts.sizes) > 1:
            partition = _partition_of(rows.column("_file"), parts.of_file)
            is_known = partition >= 0
            if rows.num_rows and not is_known.any():
                raise SampleError(
                    f"The sample of {reading.table_id} ({target}) has no row of the files that its "
                    "snapshot has: remove it and look again"
                )
            rows, partition = rows.filter(pa.array(is_known)), partition[is_known]
        kept = [name for name in rows.column_names if name not in _PLACES]
        rows = rows.select(kept)
        rows = rows.rename_columns([name.lower() for name in rows.column_names])
        is_data = reading.files.is_data
        return Sample(
            rows=rows,
            types=columns.types,
            truncations=columns.truncations,
            partition=partition,
            partition_bytes=parts.sizes,
            table_rows=int(reading.files.rows[is_data].sum()),
            telling=parts.telling,
        )

    @staticmethod
    def _forget_old(folder: Path) -> None:
        kept = sorted(folder.glob("*.parquet"), key=lambda file: file.stat().st_mtime, reverse=True)
        for old in kept[KEPT_SAMPLES:]:
            old.unlink(missing_ok=True)


def _partition_of(files: pa.ChunkedArray, known: Mapping[str, int]) -> NDArray[np.int64]:
    """The partition of each row by its file; -1: the table has no such file."""
    encoded = files.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    found = [known.get(one, -1) for one in encoded.dictionary.to_pylist()]
    numbers: NDArray[np.int64] = np.asarray(found, np.int64)[encoded.indices.to_numpy()]
    return numbers


def _error(files: JobFiles) -> str:
    try:
        found = json.loads(files.report.read_text(encoding="utf-8")).get("error")
    except (OSError, ValueError):
        found = None
    return (
        str(found)
        if found
        else f"the job left no report. The end of its log:\n{logs.tail(files.log)}"
    )
