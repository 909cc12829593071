"""Small Parquet files into a large one with Arrow, inside a Spark task.

Nothing of Spark or Java is needed here: files are read column by column as they are, and written
with the field ids, codec and sizes that the table asks for. A file that is not exactly what the
table's schema says is told (`UnfitError`) and left to Spark.
"""

from __future__ import annotations

import contextlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_jobs.maintenance.arrow_schema import (
    UnfitError,
    can_widen,
    floating_paths,
    id_of,
    is_same,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyarrow.parquet import FileMetaData

READ_AT_ONCE_BYTES = 4 << 20
PAGE_ROWS = 20_000  # as Iceberg's writers do: readers skip by page


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How new files are written, as the table's properties say.

    Attributes:
        schema: serialized Arrow schema with field ids.
        iceberg_schema: what Iceberg's own writers leave in the footer.
        unfillable: field ids that must not be taken for NULL where a file lacks them.
        most_bytes: a larger file is ended and another begun.
        threads: files read at the same time by one task.
    """

    schema: bytes
    iceberg_schema: str
    unfillable: frozenset[int]
    codec: str
    codec_level: int | None
    row_group_bytes: int
    page_bytes: int
    dictionary_bytes: int
    most_bytes: int
    threads: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """One task: files that become one new file.

    Attributes:
        group: which group of the plan they are of.
        sources: paths of the local file system.
        rows: how many the manifests say they hold.
        stem: where the new file goes, without attempt, number and extension.
    """

    group: int
    sources: tuple[str, ...]
    rows: int
    stem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file that was written; not yet of the table."""

    location: str
    size_bytes: int
    rows: int
    split_offsets: tuple[int, ...]
    nan_counts: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What came of a bin: files, or the reason why it is none of Arrow's business."""

    group: int
    files: tuple[NewFile, ...] = ()
    unfit: str | None = None


def local_path(location: str) -> str | None:
    """The path of a location on the local file system; None when it is elsewhere.

    >>> local_path("file:/a/b c"), local_path("file:///a"), local_path("/a"), local_path("s3://a/b")
    ('/a/b c', '/a', '/a', None)
    """
    for prefix in ("file:///", "file:/"):
        if location.startswith(prefix):
            rest = "/" + location[len(prefix) :]
            return None if rest.startswith("//") else rest
    return location if location.startswith("/") else None


def write_bin(layout: Layout, work: Bin, attempt: int) -> Written:
    """Put the files of a bin together.

    Args:
        layout: how.
        work: which files, and where to.
        attempt: tells the files of a task that Spark runs again from those of its first try.
    """
    # Arrow's own allocator takes huge pages for every row group and has the kernel clear them.
    pa.set_memory_pool(pa.system_memory_pool())
    target = _Target(layout, f"{work.stem}-{attempt}")
    try:
        for table in _read_all(layout, work.sources):
            target.add(table)
        files = target.finish()
        written = sum(one.rows for one in files)
        if written != work.rows:
            raise ValueError(
                f"{len(work.sources)} files hold {written} rows where their manifests say "
                f"{work.rows}; the first is {work.sources[0]}"
            )
    except UnfitError as error:
        target.discard()
        return Written(group=work.group, unfit=str(error))
    except BaseException:
        target.discard()
        raise
    return Written(group=work.group, files=tuple(files))


def _read_all(layout: Layout, sources: Sequence[str]) -> Iterator[pa.Table]:
    """The files' rows, in order, a few files ahead of the writer."""
    reader = _Reader(layout)
    if layout.threads <= 1:
        yield from map(reader.read, sources)
        return
    with ThreadPoolExecutor(layout.threads) as pool:
        ahead: deque[Any] = deque()
        for source in sources:
            ahead.append(pool.submit(reader.read, source))
            if len(ahead) > 8 * layout.threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _opened(source: str) -> pq.ParquetFile:
    """A file; a small one is read at once: mapping costs a fault of the kernel per page."""
    path = Path(source)
    if path.stat().st_size > READ_AT_ONCE_BYTES:
        return pq.ParquetFile(path, memory_map=True, pre_buffer=False)
    return pq.ParquetFile(pa.BufferReader(path.read_bytes()), pre_buffer=False)


class _Reader:
    """Reads files as the table's schema says; files of one writer are understood once."""

    def __init__(self, layout: Layout) -> None:
        self._wanted = pa.ipc.read_schema(pa.py_buffer(layout.schema))
        self._unfillable = layout.unfillable
        self._known: tuple[pa.Schema, list[str] | None] | None = None

    def read(self, source: str) -> pa.Table:
        with _opened(source) as file:
            schema = file.schema_arrow
            known = self._known
            if known is None or not known[0].equals(schema, check_metadata=True):
                known = (schema, self._understand(schema, source))
                self._known = known
            if known[1] is None:
                table = file.read(use_threads=False)
                return pa.Table.from_arrays(table.columns, schema=self._wanted)
            return self._arrange(file.read(columns=known[1], use_threads=False))

    def _understand(self, schema: pa.Schema, source: str) -> list[str] | None:
        """The columns to read; None when the file is exactly what is wanted."""
        by_id = {id_of(one): one for one in schema}
        if None in by_id or len(by_id) != len(schema):
            raise UnfitError(f"{source} has columns without field ids")
        for field_ in self._wanted:
            have = by_id.get(id_of(field_))
            if have is None:
                if not field_.nullable or id_of(field_) in self._unfillable:
                    raise UnfitError(f"{source} lacks column {field_.name}")
            elif not is_same(have.type, field_.type) and not can_widen(have.type, field_.type):
                raise UnfitError(f"{source} has {field_.name} as {have.type}, not {field_.type}")
        if [id_of(one) for one in schema] == [id_of(one) for one in self._wanted] and all(
            have.type.equals(want.type) for have, want in zip(schema, self._wanted, strict=True)
        ):
            return None
        return [by_id[id_of(one)].name for one in self._wanted if id_of(one) in by_id]

    def _arrange(self, table: pa.Table) -> pa.Table:
        by_id = {id_of(one): n for n, one in enumerate(table.schema)}
        columns = []
        for wanted in self._wanted:
            place = by_id.get(id_of(wanted))
            if place is None:
                columns.append(pa.nulls(table.num_rows, wanted.type))
                continue
            try:
                columns.append(table.column(place).cast(wanted.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise UnfitError(f"column {wanted.name}: {error}") from error
        return pa.Table.from_arrays(columns, schema=self._wanted)


@dataclass(slots=True)
class _Target:
    """The new file of a bin, or several when it would grow too large."""

    layout: Layout
    stem: str
    _schema: pa.Schema = field(init=False)
    _floating: list[tuple[int, tuple[str, ...]]] = field(init=False)
    _writer: pq.ParquetWriter | None = None
    _waiting: list[pa.Table] = field(default_factory=list)
    _waiting_bytes: int = 0
    _nans: dict[int, int] = field(default_factory=dict)
    _begun: list[str] = field(default_factory=list)
    _finished: list[NewFile] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._schema = pa.ipc.read_schema(pa.py_buffer(self.layout.schema))
        self._floating = floating_paths(self._schema)

    def add(self, table: pa.Table) -> None:
        """Take rows; whole row groups go to the file."""
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        if self._waiting_bytes >= self.layout.row_group_bytes:
            self._flush()

    def finish(self) -> list[NewFile]:
        """End the last file."""
        self._flush()
        self._end()
        return self._finished

    def discard(self) -> None:
        """Take back what was written."""
        with contextlib.suppress(OSError, pa.ArrowException):
            if self._writer is not None:
                self._writer.close()
        for location in self._begun:
            Path(_path(location)).unlink(missing_ok=True)

    def _flush(self) -> None:
        rows = pa.concat_tables(self._waiting) if self._waiting else None
        self._waiting, self._waiting_bytes = [], 0
        if rows is None or not rows.num_rows:
            return
        if self._writer is None:
            self._writer = self._begin(rows)
        self._writer.write_table(rows, row_group_size=rows.num_rows)
        for field_id, path in self._floating:
            count = pc.sum(pc.is_nan(_column(rows, path))).as_py()
            self._nans[field_id] = self._nans.get(field_id, 0) + (count or 0)
        if Path(_path(self._begun[-1])).stat().st_size >= self.layout.most_bytes:
            self._end()

    def _begin(self, rows: pa.Table) -> pq.ParquetWriter:
        location = f"{self.stem}-{len(self._begun) + 1:05}.parquet"
        self._begun.append(location)
        path = Path(_path(location))
        path.parent.mkdir(parents=True, exist_ok=True)
        layout = self.layout
        writer = pq.ParquetWriter(
            path,
            self._schema,
            version="2.6",
            use_dictionary=worth_a_dictionary(rows.slice(0, PAGE_ROWS)),
            compression=layout.codec,
            compression_level=layout.codec_level,
            data_page_size=layout.page_bytes,
            dictionary_pagesize_limit=layout.dictionary_bytes,
            max_rows_per_page=PAGE_ROWS,
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
            write_page_checksum=True,
        )
        writer.add_key_value_metadata({"iceberg.schema": layout.iceberg_schema})
        return writer

    def _end(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        location = self._begun[-1]
        path = _path(location)
        footer = pq.read_metadata(path)
        self._finished.append(
            NewFile(
                location=location,
                size_bytes=Path(path).stat().st_size,
                rows=footer.num_rows,
                split_offsets=tuple(_starts(footer)),
                nan_counts=self._nans,
            )
        )
        self._nans = {}


def worth_a_dictionary(rows: pa.Table) -> list[str]:
    """Paths of the columns that a dictionary makes smaller, as far as the first rows tell.

    Arrow keeps a dictionary until it is too large; parquet-java also drops one that does not pay.
    """
    found: list[str] = []
    for column, field_ in zip(rows.columns, rows.schema, strict=True):
        if pa.types.is_nested(field_.type):
            found += _leaves(field_.name, field_.type)
            continue
        try:
            distinct = pc.count_distinct(column).as_py()
        except pa.ArrowNotImplementedError:
            found.append(field_.name)
            continue
        plain = column.nbytes
        index_bytes = rows.num_rows * max(1, distinct.bit_length()) / 8
        if distinct * plain / max(1, rows.num_rows) + index_bytes < plain:
            found.append(field_.name)
    return found


def _leaves(path: str, kind: pa.DataType) -> list[str]:
    """The paths of a column's leaves, as Parquet names them."""
    if pa.types.is_struct(kind):
        return [one for part in kind for one in _leaves(f"{path}.{part.name}", part.type)]
    if pa.types.is_map(kind):
        inner = f"{path}.key_value"
        keys = _leaves(f"{inner}.key", kind.key_type)
        return keys + _leaves(f"{inner}.value", kind.item_type)
    if pa.types.is_list(kind):
        return _leaves(f"{path}.list.element", kind.value_type)
    return [path]


def _path(location: str) -> str:
    path = local_path(location)
    if path is None:
        raise ValueError(f"{location} is not on the local file system")
    return path


def _starts(footer: FileMetaData) -> Iterator[int]:
    """Where the row groups begin: readers split files there."""
    for number in range(footer.num_row_groups):
        first = footer.row_group(number).column(0)
        dictionary = first.dictionary_page_offset
        if dictionary is not None and 0 < dictionary < first.data_page_offset:
            yield dictionary
        else:
            yield first.data_page_offset


def _column(rows: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    column = rows.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column
