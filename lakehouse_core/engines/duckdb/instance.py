"""One locked-down DuckDB with a fixed number of connections, and what it measures per query.

Nothing can be set once it is locked, not even profiling: the connections are made before.
DuckDB's profile knows the CPU time, but its byte and row counts leave out most of what an Iceberg
scan reads (1.5.5: 36 kB for a column of 5.2 MB, and twice the rows). Its log of file operations has
every read; the external file cache is off so that a scan is a read each time, as it is for the
other engines.
"""

from __future__ import annotations

import json
import tempfile
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb

from lakehouse_core import duck

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

_METRICS = json.dumps(
    dict.fromkeys(("CPU_TIME", "PLANNER", "ALL_OPTIMIZERS", "PHYSICAL_PLANNER"), "true")
)
_PLANNING = ("planner", "all_optimizers", "physical_planner")
_FILES_READ = """
SELECT
  count(*),
  coalesce(sum(CAST(json_extract_string(l.message, '$.bytes') AS BIGINT)) FILTER (
    contains(l.message, '"op":"READ"') AND contains(l.message, '.parquet"')
  ), 0)
FROM duckdb_logs() AS l JOIN duckdb_log_contexts() AS c USING (context_id)
WHERE l.type = 'FileSystem' AND c.connection_id = $connection AND c.query_id > $after
"""
# The log lives in memory. It is emptied when no query runs; this bounds it when one always does.
MAX_LOG_ENTRIES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSettings:
    """Limits of an instance and the folder it may read."""

    memory_limit_bytes: int
    threads: int
    slots: int
    warehouse: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What one query cost; None when DuckDB did not say."""

    cpu_ms: float | None
    planning_ms: float | None
    bytes_scanned: int | None


class Slot:
    """One connection of an instance; runs one query at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._connection.execute("SET enable_profiling = 'no_output'")
        self._connection.execute("SET custom_profiling_settings = $metrics", {"metrics": _METRICS})
        self._id = self._scalar("SELECT current_connection_id()")
        self._after = 0
        self.log_entries = 0  # of the last query measured

    def run(self, sql: str) -> pa.Table:
        """Run one statement and return all of its rows."""
        self._after = self._scalar("SELECT current_query_id()")
        return self._connection.execute(sql).to_arrow_table()

    def stream(self, sql: str, rows: int) -> pa.RecordBatchReader:
        """Run one statement and return a reader of its rows, some at a time."""
        self._after = self._scalar("SELECT current_query_id()")
        return self._connection.execute(sql).to_arrow_reader(rows)

    def measure(self) -> Measures:
        """The cost of the last `run`; to be asked once, right after it."""
        profile = json.loads(self._connection.get_profiling_information("json"))
        files = self._connection.execute(
            _FILES_READ, {"connection": self._id, "after": self._after}
        ).fetchone()
        self.log_entries, bytes_read = files or (0, None)
        planning = [profile[name] for name in _PLANNING if name in profile]
        return Measures(
            cpu_ms=profile["cpu_time"] * 1_000 if "cpu_time" in profile else None,
            planning_ms=sum(planning) * 1_000 if planning else None,
            bytes_scanned=bytes_read,
        )

    def interrupt(self) -> None:
        """Stop what runs; safe from another thread."""
        self._connection.interrupt()

    def close(self) -> None:
        """Release the connection."""
        self._connection.close()

    def _scalar(self, sql: str) -> Any:
        row = self._connection.execute(sql).fetchone()
        return row[0] if row else None


class Instance:
    """A database in memory that reads one warehouse and nothing else."""

    def __init__(self, settings: InstanceSettings) -> None:
        self._spill = tempfile.TemporaryDirectory(prefix="lakehelm-duckdb-")
        memory = f"{settings.memory_limit_bytes // 2**20}MiB"
        self._root = duck.connect(
            extensions=("iceberg",),
            config={
                "memory_limit": memory,
                "threads": settings.threads,
                "temp_directory": self._spill.name,
                "max_temp_directory_size": memory,
                "enable_external_file_cache": False,
                "python_enable_replacements": False,
            },
        )
        self._root_lock = threading.Lock()
        self._root.execute("CALL enable_logging('FileSystem')")
        # Engines write the same file as a path or in one of two spellings of a URI.
        folder = str(settings.warehouse).rstrip("/")
        allowed = [f"{prefix}{folder}/" for prefix in ("", "file:", "file://")]
        self._root.execute("SET allowed_directories = $allowed", {"allowed": allowed})
        self._root.execute("SET enable_external_access = false")
        self.slots = [Slot(self._root.cursor()) for _ in range(settings.slots)]
        self._root.execute("SET lock_configuration = true")

    def ping(self) -> None:
        """Raise what DuckDB raises when it can work no more."""
        with self._root_lock:
            self._root.execute("SELECT 1").fetchall()

    def forget_log(self) -> bool:
        """Empty the log of file operations, only while no query runs; False when it is broken."""
        with self._root_lock:
            try:
                self._root.execute("CALL truncate_duckdb_logs()")
            except duckdb.Error:
                return False
        return True

    def close(self) -> None:
        """Release all of it."""
        for slot in self.slots:
            slot.close()
        with self._root_lock:
            self._root.close()
        self._spill.cleanup()
