"""One sweep over one catalog: what changed since the store was last told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from collectors.base import Batch
from collectors.iceberg.mapping import (
    to_commit,
    to_dropped,
    to_lake_table,
    to_unreadable,
    unreadable_letter,
)
from lakehouse_core.catalog.measure import measure
from lakehouse_core.catalog.reader import TableReader
from lakehouse_core.domain.errors import (
    CatalogRefusedError,
    MetadataUnreadableError,
    TableGoneError,
)
from lakehouse_core.domain.table import join_name, split_name
from lakehouse_core.health.amoro import amoro_score
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from collectors.iceberg.config import IcebergSettings
    from collectors.iceberg.known import KnownTable
    from lakehouse_core.catalog.avro_reader import AvroReader
    from lakehouse_core.catalog.measure import Reading
    from lakehouse_core.catalog.port import LakeCatalog
    from lakehouse_core.domain.agent import DeadLetter
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.table import LakeTable, SnapshotCommit, TableMetrics, TableName

_log = structlog.get_logger(__name__)

_MAX_COMMITS = 5_000  # after so many a batch is sent; the commits of one table stay together


@dataclass(slots=True)
class Changes:
    """Rows of tables that changed, until there are enough for a batch."""

    tables: list[LakeTable] = field(default_factory=list)
    metrics: list[TableMetrics] = field(default_factory=list)
    commits: list[SnapshotCommit] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)

    def batches(self) -> Iterator[Batch]:
        """What the rows of `lake_table` stand for first, then these, in a batch of their own."""
        rows: dict[str, Sequence[object]] = {
            "table_metrics": self.metrics,
            "snapshot_commit": self.commits,
        }
        evidence = {name: to_arrow(name, found) for name, found in rows.items() if found}
        if evidence or self.letters:
            yield Batch(rows=evidence, dead_letters=tuple(self.letters))
        if self.tables:
            yield Batch(rows={"lake_table": to_arrow("lake_table", self.tables)})


class CatalogSweep:
    """Compares one catalog with what the store knows of it, again and again."""

    def __init__(
        self, catalog: LakeCatalog, settings: IcebergSettings, avro: AvroReader, clock: Clock
    ) -> None:
        self._catalog = catalog
        self._settings = settings
        self._clock = clock
        self._reader = TableReader(catalog, settings.cache / catalog.name, avro)
        self._verified_at: dict[str, datetime] = {}

    def run(self, known: Mapping[str, KnownTable], *, is_anew: bool) -> Iterator[Batch]:
        """Yield rows of tables that are new, changed, dropped, or can no longer be read.

        Args:
            known: tables by id, of any catalog.
            is_anew: measure all tables, changed or not.

        Raises:
            CatalogError: the catalog does not answer; batches already yielded stand.
        """
        survey = self._catalog.survey()
        listed = survey.tables
        names = {str(table) for table in (*listed, *survey.unreadable)}
        self._verified_at = {one: at for one, at in self._verified_at.items() if one in names}
        changes = Changes()
        for table, location in listed.items():
            before = known.get(str(table))
            if not is_anew and self._is_unchanged(table, location, before):
                continue
            self._look(table, location, before, changes)
            if len(changes.tables) >= self._settings.batch_tables or (
                len(changes.commits) >= _MAX_COMMITS
            ):
                yield from changes.batches()
                changes = Changes()
        for table, reason in survey.unreadable.items():
            before = known.get(str(table))
            self._add_unreadable(table, None, reason, before.table if before else None, changes)
        for namespace, reason in survey.closed.items():
            _log.warning("namespace is closed to us", namespace=join_name(namespace), why=reason)
        changes.tables += [
            to_dropped(one.table, self._clock())
            for table_id, one in known.items()
            if one.table.catalog == self._catalog.name
            and one.table.dropped_at is None
            and table_id not in names
            and not survey.hides(split_name(one.table.namespace))
        ]
        yield from changes.batches()

    def _is_unchanged(self, table: TableName, location: str, before: KnownTable | None) -> bool:
        if before is None or before.table.dropped_at or before.table.error:
            return False
        if before.table.metadata_location != location:
            return False
        now = self._clock()
        last = self._verified_at.get(str(table))
        if last is not None and now - last < self._settings.verify_every:
            return True
        if not self._reader.is_intact(table, location):
            return False
        self._verified_at[str(table)] = now
        return True

    def _look(
        self, table: TableName, location: str, before: KnownTable | None, changes: Changes
    ) -> None:
        known = before.table if before else None
        try:
            reading = self._reader.read(table, location)
        except TableGoneError:
            if known is not None and known.dropped_at is None:
                changes.tables.append(to_dropped(known, self._clock()))
            return
        except (MetadataUnreadableError, CatalogRefusedError) as error:
            self._add_unreadable(table, location, str(error), known, changes)
            return
        self._add(table, reading, before, changes)

    def _add_unreadable(
        self,
        table: TableName,
        location: str | None,
        reason: str,
        known: LakeTable | None,
        changes: Changes,
    ) -> None:
        """Tell it once; `location` is None when the catalog does not say where the table is."""
        location = location or (known.metadata_location if known else None)
        if known is None or (known.error, known.metadata_location) != (reason, location):
            now = self._clock()
            changes.tables.append(to_unreadable(table, location, reason, known, now))
            changes.letters.append(unreadable_letter(str(table), location, reason, now))

    def _add(
        self, table: TableName, reading: Reading, before: KnownTable | None, changes: Changes
    ) -> None:
        now = self._clock()
        table_id = str(table)
        metrics = measure(
            reading,
            small_file_bytes=self._settings.small_file_bytes(table_id),
            collected_at=now,
        )
        changes.metrics.append(replace(metrics, amoro_score=amoro_score(reading.files)))
        since_ms = self._commits_since(reading, before)
        changes.commits += [
            to_commit(table_id, snapshot)
            for snapshot in reading.metadata.snapshots
            if snapshot.timestamp_ms >= since_ms
        ]
        changes.tables.append(to_lake_table(table, reading, now))
        self._verified_at[table_id] = now

    def _commits_since(self, reading: Reading, before: KnownTable | None) -> float:
        """Commits before this moment are in the store: those of the same table we told of."""
        if before is None or before.latest_snapshot_at is None:
            return 0
        if before.table.table_uuid != reading.metadata.table_uuid:
            return 0
        since = before.latest_snapshot_at - self._settings.overlap
        return (since - datetime.fromtimestamp(0, UTC)).total_seconds() * 1000
