"""Many Avro files at once into Arrow, through DuckDB, with every record accounted for."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_core import duck
from lakehouse_core.catalog.avro import inspect_container
from lakehouse_core.catalog.location import local_path, read_file, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_READ = "SELECT * FROM read_avro($files, filename = true)"


@dataclass(frozen=True, slots=True)
class AvroRows:
    """The records of some files that share one schema, file after file."""

    locations: tuple[str, ...]
    counts: tuple[int, ...]  # records per file
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class _File:
    location: str
    path: str
    records: int


class AvroReader:
    """Reads Avro files; opens DuckDB at the first use. Threads take turns."""

    def __init__(self, *, threads: int = 2) -> None:
        self._threads = threads
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._lock = Lock()

    def read(self, locations: Sequence[str]) -> Iterator[AvroRows]:
        """Read all of the files, one answer per schema: writers and partition specs differ.

        Raises:
            MetadataUnreadableError: a file is missing, cut short or broken; names it.
        """
        with ExitStack() as stack:
            groups: dict[str, list[_File]] = {}
            for location in locations:
                schema, file = _inspect(location, stack)
                groups.setdefault(schema, []).append(file)
            for files in groups.values():
                yield self._read_group(files)

    def close(self) -> None:
        """Let DuckDB go."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _read_group(self, files: list[_File]) -> AvroRows:
        filled = [file for file in files if file.records]
        try:
            rows = self._query([file.path for file in filled]) if filled else pa.table({})
        except duckdb.Error as error:
            raise self._blame(files, error) from error
        if filled:
            rows = _in_order(rows, filled)
        return AvroRows(
            tuple(file.location for file in files), tuple(file.records for file in files), rows
        )

    def _query(self, paths: list[str]) -> pa.Table:
        with self._lock:
            if self._connection is None:
                settings = {"threads": self._threads, "enable_external_file_cache": False}
                self._connection = duck.connect(extensions=("avro",), config=settings)
            return self._connection.execute(_READ, {"files": paths}).to_arrow_table()

    def _blame(self, files: list[_File], error: duckdb.Error) -> Exception:
        """DuckDB does not say which of many files it stumbled over: try them one by one."""
        for file in files:
            try:
                self._query([file.path])
            except duckdb.Error as own:
                return unreadable(file.location, own)
        return unreadable(files[0].location, error)


def _inspect(location: str, stack: ExitStack) -> tuple[str, _File]:
    data = read_file(location)
    try:
        container = inspect_container(data)
    except ValueError as error:
        raise unreadable(location, error) from error
    path = str(local_path(location))
    if container.recoded is not None:
        path = stack.enter_context(_scratch(container.recoded))
    return container.schema, _File(location, path, container.records)


@contextmanager
def _scratch(data: bytes) -> Iterator[str]:
    with NamedTemporaryFile(prefix="lakehelm-", suffix=".avro") as file:
        file.write(data)
        file.flush()
        yield file.name


def _in_order(rows: pa.Table, files: list[_File]) -> pa.Table:
    """The rows file by file in the order asked for, each file complete."""
    paths = pa.array([file.path for file in files], pa.string())
    number = pc.index_in(rows.column("filename").cast(pa.string()), value_set=paths)
    counted = {one["values"]: one["counts"] for one in pc.value_counts(number).to_pylist()}
    for index, file in enumerate(files):
        if counted.get(index, 0) != file.records:
            raise unreadable(
                file.location,
                f"it holds {file.records} records, of which {counted.get(index, 0)} can be decoded",
            )
    plain = number.combine_chunks().to_numpy(zero_copy_only=False)
    if (plain[1:] < plain[:-1]).any():
        rows = rows.take(pa.array(plain.argsort(kind="stable")))
    return rows.drop_columns(["filename"])
