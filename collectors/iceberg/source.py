"""The Iceberg source: tables that changed are read, the others only looked at.

The store itself is the state: a table is left alone while its metadata location is the one in
`lake_table`. That row is sent after the metrics and commits it stands for, in a batch of its own;
a crash in between makes the next sweep read the table again, which changes nothing.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from collectors.base import Batch, SourceCapabilities
from collectors.iceberg.config import iceberg_settings
from collectors.iceberg.known import known_tables
from collectors.iceberg.mapping import SOURCE
from collectors.iceberg.sweep import CatalogSweep
from lakehouse_core.catalog.avro_reader import AvroReader
from lakehouse_core.catalog.loader import open_catalog
from lakehouse_core.domain.agent import Watermark
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import (
    CatalogError,
    CatalogRefusedError,
    SourceError,
    SourceUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from collectors.iceberg.config import IcebergSettings
    from collectors.iceberg.known import KnownTable
    from lakehouse_core.catalog.port import LakeCatalog
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

_VERSION = 2  # a higher one makes the next sweep read every table again


class IcebergSource:
    """The `iceberg` source over all configured catalogs."""

    name = SOURCE
    capabilities = SourceCapabilities(
        tables=("lake_table", "table_metrics", "snapshot_commit"),
        freshness_lag=timedelta(0),
        overlap=timedelta(0),
    )

    def __init__(
        self,
        catalogs: Sequence[LakeCatalog],
        settings: IcebergSettings,
        known: Callable[[], Mapping[str, KnownTable]],
        clock: Clock = utc_now,
    ) -> None:
        self._avro = AvroReader()
        self._catalogs = catalogs
        self._sweeps = [CatalogSweep(one, settings, self._avro, clock) for one in catalogs]
        self._settings = settings
        self._known = known
        self._clock = clock

    def pull(self, since: Watermark | None) -> Iterator[Batch]:
        """Yield what changed in any catalog since the store was last told; see `Source.pull`."""
        position = json.dumps({"v": _VERSION, "small_file_bytes": self._settings.fingerprint()})
        is_anew = since is not None and since.position != position
        known = self._known()
        newest = [one.latest_snapshot_at for one in known.values() if one.latest_snapshot_at]
        problems: list[CatalogError] = []
        for sweep in self._sweeps:
            try:
                for batch in sweep.run(known, is_anew=is_anew):
                    newest += _commit_times(batch)
                    yield batch
            except CatalogError as error:
                problems.append(error)
        if problems:
            told = "; ".join(map(str, problems))
            # Trying again soon helps against silence, not against a refusal.
            is_refused = all(isinstance(one, CatalogRefusedError) for one in problems)
            raise SourceError(told) if is_refused else SourceUnavailableError(told)
        event_at = max(newest, default=None)
        yield Batch(
            watermark=Watermark(
                source=self.name, position=position, event_at=event_at, updated_at=self._clock()
            )
        )

    def close(self) -> None:
        """Release DuckDB and the catalogs' connections; the source may be used again."""
        self._avro.close()
        for catalog in self._catalogs:
            catalog.close()


def iceberg_source(config: Config, store: TelemetryStore, clock: Clock = utc_now) -> IcebergSource:
    """The source for a configuration; `store` is asked at each pull what it knows."""
    catalogs = [open_catalog(name, one) for name, one in config.catalogs.items()]
    return IcebergSource(catalogs, iceberg_settings(config), lambda: known_tables(store), clock)


def _commit_times(batch: Batch) -> list[datetime]:
    commits = batch.rows.get("snapshot_commit")
    return [] if commits is None else commits.column("committed_at").to_pylist()
