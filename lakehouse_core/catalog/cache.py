"""Entries of manifests in memory, on disk, or from the manifests: each manifest is read once.

A manifest never changes, so its path is its key; the size of its file is checked all the same, so
that a manifest that was lost or cut short is noticed although its entries are known.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.catalog.entries import ENTRY_SCHEMA, read_entries
from lakehouse_core.catalog.files import detached, slim
from lakehouse_core.catalog.location import file_size, unreadable
from lakehouse_core.catalog.segments import Run, SegmentStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from lakehouse_core.catalog.avro_reader import AvroReader
    from lakehouse_core.catalog.manifest_list import Manifest

MIB = 2**20
# Manifests are read in portions: decoded, an entry with the bounds of its columns takes some kB.
_PORTION_ENTRIES = 25_000
_PORTION_BYTES = 16 * MIB
_BYTES_PER_ENTRY = 40  # at least, packed; for lists that do not count entries


@dataclass(frozen=True, slots=True)
class _Held:
    """Narrow entries of a table's manifests, manifest after manifest."""

    sort_field: int | None
    runs: Mapping[str, tuple[Run, int]]  # by path: the run and where its rows start
    rows: pa.Table


_NOTHING: Mapping[str, tuple[Run, int]] = {}


class ManifestCache:
    """Live entries of tables; for any number of threads and processes."""

    def __init__(
        self,
        reader: AvroReader,
        folder: Path,
        *,
        memory_bytes: int = 256 * MIB,
        disk_bytes: int = 2_048 * MIB,
    ) -> None:
        self._reader = reader
        self._disk = SegmentStore(folder, max_bytes=disk_bytes)
        self._memory_bytes = memory_bytes
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._lock = Lock()

    def entries(
        self, table_uuid: str, manifests: Sequence[Manifest], sort_field: int | None
    ) -> tuple[pa.Table, list[int]]:
        """Narrow entries (`files.slim`) of all manifests, and how many each has.

        Raises:
            MetadataUnreadableError: a manifest is missing or broken; names it.
        """
        with self._lock:
            wanted = {one.path: _checked_size(one) for one in manifests}
            found = dict(self._from_memory(table_uuid, wanted, sort_field))
            missing = {path: size for path, size in wanted.items() if path not in found}
            if missing:
                found.update(self._from_disk(table_uuid, missing, sort_field))
                missing = {path: size for path, size in missing.items() if path not in found}
            if missing:
                unread = [one for one in manifests if one.path in missing]
                found.update(self._from_manifests(table_uuid, unread, wanted, sort_field))
                self._disk.tidy(table_uuid, wanted)
            return self._keep(table_uuid, [found[one.path] for one in manifests], sort_field)

    def columns(
        self, table_uuid: str, manifests: Sequence[Manifest], names: Sequence[str]
    ) -> tuple[pa.Table, list[int]]:
        """Some columns of ENTRY_SCHEMA of all manifests, and how many entries each has.

        They may be large, so they are not held: whoever asks keeps what is needed of them.

        Raises:
            MetadataUnreadableError: a manifest is missing or broken; names it.
        """
        with self._lock:
            wanted = {one.path: _checked_size(one) for one in manifests}
            found = {
                run.path: (run, rows)
                for run, rows in self._disk.read_columns(table_uuid, wanted, names)
            }
            unread = [one for one in manifests if one.path not in found]
            for portion in _portions(unread):
                runs, entries = self._read(table_uuid, portion, wanted)
                for run, rows in _cut(runs, detached(entries.select(list(names)))):
                    found[run.path] = (run, rows)
        parts = [found[one.path] for one in manifests]
        empty = ENTRY_SCHEMA.empty_table().select(list(names))
        return pa.concat_tables([empty, *(rows for _, rows in parts)]), [r.rows for r, _ in parts]

    def _from_memory(
        self, table_uuid: str, wanted: Mapping[str, int], sort_field: int | None
    ) -> Iterator[tuple[str, tuple[Run, pa.Table]]]:
        held = self._held.get(table_uuid)
        runs = held.runs if held is not None and held.sort_field == sort_field else _NOTHING
        for path, (run, start) in runs.items():
            if held is not None and wanted.get(path) == run.size:
                yield path, (run, held.rows.slice(start, run.rows))

    def _from_disk(
        self, table_uuid: str, missing: Mapping[str, int], sort_field: int | None
    ) -> Iterator[tuple[str, tuple[Run, pa.Table]]]:
        for run, rows in self._disk.read(table_uuid, missing, sort_field):
            yield run.path, (run, rows)

    def _from_manifests(
        self,
        table_uuid: str,
        unread: Sequence[Manifest],
        sizes: Mapping[str, int],
        sort_field: int | None,
    ) -> Iterator[tuple[str, tuple[Run, pa.Table]]]:
        for portion in _portions(unread):
            runs, entries = self._read(table_uuid, portion, sizes)
            narrow = detached(slim(entries, sort_field))
            for run, rows in _cut(runs, narrow):
                yield run.path, (run, rows)

    def _read(
        self, table_uuid: str, portion: Sequence[str], sizes: Mapping[str, int]
    ) -> tuple[list[Run], pa.Table]:
        """Entries of manifests, which from now on are on disk, too."""
        runs: list[Run] = []
        parts = [ENTRY_SCHEMA.empty_table()]
        for counted, entries in read_entries(self._reader, portion):
            runs += [Run(path, sizes[path], rows) for path, rows in counted]
            parts.append(entries)
        entries = pa.concat_tables(parts)
        self._disk.write(table_uuid, runs, entries)
        return runs, entries

    def _keep(
        self, table_uuid: str, found: Sequence[tuple[Run, pa.Table]], sort_field: int | None
    ) -> tuple[pa.Table, list[int]]:
        rows = pa.concat_tables(
            [slim(ENTRY_SCHEMA.empty_table(), sort_field), *(part for _, part in found)]
        ).combine_chunks()
        runs: dict[str, tuple[Run, int]] = {}
        start = 0
        for run, _ in found:
            runs[run.path] = (run, start)
            start += run.rows
        self._held.pop(table_uuid, None)
        self._held[table_uuid] = _Held(sort_field, runs, rows)
        total = sum(held.rows.nbytes for held in self._held.values())
        while self._held and total > self._memory_bytes:
            _, oldest = self._held.popitem(last=False)
            total -= oldest.rows.nbytes
        return rows, [run.rows for run, _ in found]


def _cut(runs: Sequence[Run], rows: pa.Table) -> Iterator[tuple[Run, pa.Table]]:
    """Each run with its rows of the entries of all."""
    start = 0
    for run in runs:
        yield run, rows.slice(start, run.rows)
        start += run.rows


def _checked_size(manifest: Manifest) -> int:
    """The size of the file; one cut at the edge of an Avro block shows in nothing else."""
    size = file_size(manifest.path)
    if size < manifest.length:
        reason = f"it is {size} bytes long and was written with {manifest.length}"
        raise unreadable(manifest.path, reason)
    return size


def _portions(manifests: Sequence[Manifest]) -> Iterator[list[str]]:
    portion: list[str] = []
    entries = size = 0
    for one in manifests:
        count = one.entries if one.entries is not None else one.length // _BYTES_PER_ENTRY
        is_full = entries + count > _PORTION_ENTRIES or size + one.length > _PORTION_BYTES
        if portion and is_full:
            yield portion
            portion, entries, size = [], 0, 0
        portion.append(one.path)
        entries += count
        size += one.length
    if portion:
        yield portion
