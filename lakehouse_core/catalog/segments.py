"""Manifest entries on disk, so that no manifest is read twice, not even by another process.

A segment is an Arrow file with the entries of some manifests of one table, manifest after manifest;
its schema metadata lists the manifests. Segments are written aside and renamed, never changed, and
merged when there are many. The folder may be deleted at any moment: what is missing is read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.ipc
import structlog

from lakehouse_core.catalog.entries import ENTRY_SCHEMA
from lakehouse_core.catalog.files import BOUND_COLUMNS, PLAIN_COLUMNS, slim

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_LAYOUT = "v1"  # changes with ENTRY_SCHEMA: old folders are then left to the sweep
_MANIFESTS = b"manifests"
_MAX_SMALL = 16  # so many small segments of a table are merged
_SMALL_BYTES = 2 * 2**20  # a larger one is rewritten only when it is mostly dead
_WRITES_PER_SWEEP = 64
_ABANDONED_SECONDS = 3_600
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Run:
    """The entries of one manifest: how large its file was, how many live entries it has."""

    path: str
    size: int
    rows: int


class SegmentStore:
    """Entries of manifests below one folder, bounded in size; safe for several processes."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder / _LAYOUT
        self._max_bytes = max_bytes
        self._writes = 0

    def read(
        self, table_uuid: str, wanted: Mapping[str, int], sort_field: int | None
    ) -> Iterator[tuple[Run, pa.Table]]:
        """Narrow entries of those wanted manifests (path → size) that are here."""
        names = [*PLAIN_COLUMNS, *(() if sort_field is None else BOUND_COLUMNS)]
        for run, rows in self.read_columns(table_uuid, wanted, names):
            yield run, slim(rows, sort_field)

    def read_columns(
        self, table_uuid: str, wanted: Mapping[str, int], names: Sequence[str]
    ) -> Iterator[tuple[Run, pa.Table]]:
        """Some columns of the entries of those wanted manifests that are here."""
        left = dict(wanted)
        for segment in self._segments(table_uuid):
            if not left:
                return
            yield from _read_runs(segment, left, names)

    def write(self, table_uuid: str, runs: Sequence[Run], entries: pa.Table) -> None:
        """Keep entries; a full or read-only disk costs speed, not the reading."""
        try:
            _write(self._of_table(table_uuid), runs, [entries])
            self._writes += 1
            if self._writes % _WRITES_PER_SWEEP == 1:
                self._sweep()
        except OSError as error:
            _log.warning(
                "manifest cache cannot be written", folder=str(self._folder), error=str(error)
            )

    def tidy(self, table_uuid: str, live: Mapping[str, int]) -> None:
        """Merge small and mostly dead segments of a table into one when many are small."""
        segments = self._segments(table_uuid)
        if sum(_size(segment) < _SMALL_BYTES for segment in segments) <= _MAX_SMALL:
            return
        try:
            _merge(self._of_table(table_uuid), segments, live)
        except OSError as error:
            _log.warning(
                "manifest cache cannot be merged", folder=str(self._folder), error=str(error)
            )

    def _of_table(self, table_uuid: str) -> Path:
        # Hashed, because a metadata file may say anything where a UUID should be.
        return self._folder / hashlib.sha256(table_uuid.encode()).hexdigest()[:32]

    def _segments(self, table_uuid: str) -> list[Path]:
        return sorted(self._of_table(table_uuid).glob("*.arrow"))

    def _sweep(self) -> None:
        """Drop the tables read longest ago until the folder fits its bound."""
        tables = []
        for folder in self._folder.iterdir():
            for part in folder.glob("*.part"):
                if part.stat().st_mtime < time.time() - _ABANDONED_SECONDS:
                    part.unlink(missing_ok=True)
            sizes = [_size(file) for file in folder.glob("*")]
            tables.append((folder.stat().st_mtime, sum(sizes), folder))
        total = sum(size for _, size, _ in tables)
        for _, size, folder in sorted(tables):
            if total <= self._max_bytes:
                return
            shutil.rmtree(folder, ignore_errors=True)
            total -= size


def _write(folder: Path, runs: Sequence[Run], parts: Iterable[pa.Table]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    listed = json.dumps([[run.path, run.size, run.rows] for run in runs]).encode()
    schema = ENTRY_SCHEMA.with_metadata({_MANIFESTS: listed})
    # A process that dies in between leaves a file that nobody reads and the sweep removes.
    aside = folder / f"{uuid.uuid4().hex}.part"
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    try:
        with aside.open("wb") as sink, pa.ipc.new_file(sink, schema, options=options) as writer:
            for part in parts:
                writer.write_table(part.replace_schema_metadata(schema.metadata))
        final = aside.with_suffix(".arrow")
        aside.rename(final)
    finally:
        aside.unlink(missing_ok=True)
    return final


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _runs_of(schema: pa.Schema) -> list[Run]:
    return [Run(*one) for one in json.loads((schema.metadata or {})[_MANIFESTS])]


def _open(segment: Path, names: Sequence[str] | None = None) -> tuple[list[Run], pa.Table] | None:
    """A segment's runs and the named columns; None when another process took or broke it."""
    chosen = [ENTRY_SCHEMA.get_field_index(name) for name in names or ()]
    options = pa.ipc.IpcReadOptions(included_fields=chosen)
    try:
        # Not memory-mapped: a file cut short under a map would end the process.
        with pa.OSFile(str(segment)) as source:
            reader = pa.ipc.open_file(source, options=options)
            runs = _runs_of(reader.schema)
            rows = reader.read_all() if names else pa.table({})
        if names and sum(run.rows for run in runs) != rows.num_rows:
            raise ValueError("it does not hold what it lists")
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError) as error:
        _log.warning("manifest cache segment is broken", file=str(segment), error=str(error))
        segment.unlink(missing_ok=True)
        return None
    return runs, rows


def _read_runs(
    segment: Path, left: dict[str, int], names: Sequence[str]
) -> Iterator[tuple[Run, pa.Table]]:
    opened = _open(segment, names)
    if opened is None:
        return
    runs, rows = opened
    start = 0
    for run in runs:
        if left.get(run.path) == run.size:
            del left[run.path]
            yield run, rows.slice(start, run.rows)
        start += run.rows
    with contextlib.suppress(OSError):  # gone or read-only: then it is only swept sooner
        os.utime(segment.parent)


def _merge(folder: Path, segments: Sequence[Path], live: Mapping[str, int]) -> None:
    chosen: dict[Path, list[Run]] = {}  # segments to merge: their live runs
    seen: set[str] = set()
    for segment in sorted(segments, key=_size, reverse=True):
        opened = _open(segment)
        if opened is None:
            continue
        runs, _ = opened
        kept = [run for run in runs if live.get(run.path) == run.size and run.path not in seen]
        is_mostly_dead = 2 * sum(run.rows for run in kept) < sum(run.rows for run in runs)
        if _size(segment) < _SMALL_BYTES or is_mostly_dead:
            chosen[segment] = kept
        seen.update(run.path for run in kept)
    if any(chosen.values()):
        runs = [run for kept in chosen.values() for run in kept]
        _write(folder, runs, _kept_rows(chosen))
    for segment in chosen:
        segment.unlink(missing_ok=True)


def _kept_rows(chosen: Mapping[Path, Sequence[Run]]) -> Iterator[pa.Table]:
    """Rows of the kept runs, one segment at a time.

    A segment gone meanwhile leaves a gap that whoever opens the merged one notices.
    """
    for segment, kept in chosen.items():
        opened = _open(segment, ENTRY_SCHEMA.names)
        if opened is None:
            continue
        start = 0
        for run in opened[0]:
            if run in kept:
                yield opened[1].slice(start, run.rows)
            start += run.rows
