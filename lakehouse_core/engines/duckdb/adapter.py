"""The DuckDB engine: each query reads the tables as they are in the catalog at that moment.

    engine = DuckDBAdapter(EngineId("duckdb"), config.engines["duckdb"], config.catalogs["lake"])
    engine.execute(Statement(sql="SELECT count(*) FROM demo.events", user="ana")).rows

A table name (`lake.demo.events` or `demo.events`) becomes `iceberg_scan` of the table's current
metadata file. Only reading statements are accepted; DuckDB itself may touch nothing but the
warehouse. Every query, also a failed or cancelled one, is a line of the journal.
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import structlog

from lakehouse_core.catalog import current_metadata_location, open_catalog
from lakehouse_core.catalog.location import local_path
from lakehouse_core.catalog.metadata import read_metadata
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.engine import EngineCapabilities, EngineProbe, ObservedState
from lakehouse_core.domain.errors import (
    CatalogError,
    CatalogRefusedError,
    CatalogUnavailableError,
    ConfigError,
    EngineError,
    EngineUnavailableError,
    LakehouseError,
    QueryCancelledError,
    QueryFailedError,
    TableGoneError,
)
from lakehouse_core.domain.table import TableName
from lakehouse_core.engines.base import Cost, Result, RowStream, gather
from lakehouse_core.engines.duckdb.functions import parse_listing
from lakehouse_core.engines.duckdb.instance import Instance, InstanceSettings
from lakehouse_core.engines.duckdb.journal import Journal
from lakehouse_core.engines.duckdb.pool import Pool, Ticket
from lakehouse_core.engines.duckdb.record import DIALECT, QueryRecord
from lakehouse_core.sql.places import place_of, word_at
from lakehouse_core.sql.scans import parse_scan, quote_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.config.catalogs import CatalogConfig
    from lakehouse_core.config.models import DuckDBEngine
    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.engines.base import Statement
    from lakehouse_core.engines.duckdb.instance import Measures, Slot
    from lakehouse_core.sql.scans import Scan

CAPABILITIES = EngineCapabilities(
    dialect=DIALECT, can_write=False, can_cancel=True, reports_bytes=True, has_own_history=False
)
_MARK = re.compile(r"\n(?P<head>LINE \d+: )(?P<line>.*)\n(?P<before> *)\^")
STREAM_ROWS = 61_440  # thirty of DuckDB's vectors: a few megabytes of most results

_log = structlog.get_logger(__name__)


class DuckDBAdapter:
    """An `Engine`; safe to use from many threads."""

    capabilities = CAPABILITIES

    def __init__(
        self,
        engine_id: EngineId,
        engine: DuckDBEngine,
        catalog: CatalogConfig,
        clock: Clock = utc_now,
    ) -> None:
        self.engine_id = engine_id
        self._catalog = open_catalog(engine.catalog, catalog)
        self._clock = clock
        self._journal = Journal(engine.journal, clock)
        settings = InstanceSettings(
            memory_limit_bytes=engine.memory_limit,
            threads=engine.threads,
            slots=engine.max_running,
            warehouse=_folder(engine.catalog, catalog),
        )
        self._pool = Pool(lambda: Instance(settings))
        # A metadata file never changes once it is written.
        self._snapshot_id = lru_cache(maxsize=256)(_snapshot_id)

    def execute(self, statement: Statement) -> Result:
        """See `Engine.execute`."""
        with self.stream(statement) as stream:
            return gather(stream)

    @contextmanager
    def stream(self, statement: Statement) -> Iterator[RowStream]:
        """See `Engine.stream`; holds one of the engine's slots until it is left."""
        record = QueryRecord(self.engine_id, statement, self._clock)
        try:
            with self._opened(statement, record) as stream:
                yield stream
        except EngineError as error:
            error.query_id = record.query_id
            error.position = _place(error.__cause__, statement.sql)
            record.error = error
            raise
        finally:
            self._journal.write(record.to_event())

    def probe(self) -> EngineProbe:
        """See `Engine.probe`; other processes' queries are not seen, so none are counted."""
        started = time.perf_counter()
        observed = ObservedState.HEALTHY
        detail: str | None = None
        try:
            self._catalog.namespaces()
            self._pool.instance().ping()
        except (LakehouseError, duckdb.Error) as error:
            observed, detail = ObservedState.UNHEALTHY, str(error)
        return EngineProbe(
            engine_id=self.engine_id,
            probed_at=self._clock(),
            observed=observed,
            detail=detail,
            version=duckdb.__version__,
            latency_ms=(time.perf_counter() - started) * 1_000,
        )

    def cancel(self, query_id: str) -> bool:
        """See `Engine.cancel`."""
        return self._pool.cancel(query_id)

    def close(self) -> None:
        """See `Engine.close`; running queries are cancelled."""
        self._pool.close()
        self._catalog.close()

    @contextmanager
    def _opened(self, statement: Statement, record: QueryRecord) -> Iterator[RowStream]:
        try:
            statement.sql.encode()
        except UnicodeEncodeError as error:
            raise QueryFailedError(
                f"The statement has half a character at position {error.start + 1}",
                code="INVALID_TEXT",
            ) from error
        scan = parse_listing(statement.sql) or parse_scan(
            statement.sql, dialect=DIALECT, catalog=self._catalog.name
        )
        names = {record.query_id} | ({statement.gateway_id} if statement.gateway_id else set())
        ticket = Ticket(frozenset(names))
        with self._pool.slot(ticket) as slot:
            record.started_at = self._clock()
            sql, record.snapshot_ids = self._resolve(scan)
            cost = Cost(snapshot_ids=record.snapshot_ids)
            with self._failures(ticket, slot), self._pool.running(ticket, slot):
                reader = slot.stream(sql, STREAM_ROWS)
                batches = self._batches(reader, slot, record, cost)
                yield RowStream(
                    query_id=record.query_id, schema=reader.schema, batches=batches, cost=cost
                )

    @staticmethod
    def _batches(
        reader: pa.RecordBatchReader, slot: Slot, record: QueryRecord, cost: Cost
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in reader:
            rows += batch.num_rows
            yield batch
        record.rows_returned = rows
        record.measures = measures = _measure(slot)
        if measures is not None:
            cost.cpu_ms, cost.planning_ms = measures.cpu_ms, measures.planning_ms
            cost.bytes_scanned = measures.bytes_scanned

    def _resolve(self, scan: Scan) -> tuple[str, tuple[int, ...]]:
        """The statement on the tables' present metadata files, and the snapshots it will read."""
        try:
            locations = {table: self._locate(table) for table in scan.tables}
            snapshots = [self._snapshot_id(location) for location in locations.values()]
            paths = {table: str(local_path(where)) for table, where in locations.items()}
        except TableGoneError as error:
            raise QueryFailedError(str(error), code="TABLE_NOT_FOUND") from error
        except CatalogUnavailableError as error:
            raise EngineUnavailableError(str(error), code="CATALOG_UNAVAILABLE") from error
        except CatalogRefusedError as error:
            raise QueryFailedError(str(error), code="CATALOG_REFUSED") from error
        except CatalogError as error:
            raise QueryFailedError(str(error), code="TABLE_UNREADABLE") from error
        sources = {
            table: f"iceberg_scan({quote_text(path, DIALECT)})" for table, path in paths.items()
        }
        return scan.render(sources), tuple(s for s in snapshots if s is not None)

    def _locate(self, table: TableName) -> str:
        try:
            return current_metadata_location(self._catalog, table)
        except TableGoneError:
            # DuckDB's names have no case, the catalog's do; lake tables are written in lower case.
            folded = TableName(
                table.catalog, tuple(n.lower() for n in table.namespace), table.name.lower()
            )
            if folded == table:
                raise
            return current_metadata_location(self._catalog, folded)

    @contextmanager
    def _failures(self, ticket: Ticket, slot: Slot) -> Iterator[None]:
        """Make errors of ours of DuckDB's; those met while fetching come in Arrow's clothes."""
        try:
            yield
        except duckdb.InterruptException as error:
            raise QueryCancelledError("The query was cancelled", code="INTERRUPTED") from error
        except (duckdb.FatalException, duckdb.InternalException) as error:
            # DuckDB refuses all further work of this instance.
            self._pool.retire(slot)
            raise EngineUnavailableError(
                f"DuckDB failed and was restarted: {_message(error)}", code=type(error).__name__
            ) from error
        except duckdb.Error as error:
            raise QueryFailedError(_message(error), code=type(error).__name__) from error
        except (pa.ArrowException, OSError) as error:
            if ticket.is_cancelled:
                raise QueryCancelledError("The query was cancelled", code="INTERRUPTED") from error
            kind = str(error).partition(" Error:")[0].strip().replace(" ", "")
            raise QueryFailedError(_message(error), code=f"{kind}Exception") from error


def _folder(name: str, catalog: CatalogConfig) -> Path:
    """The folder DuckDB may read.

    Raises:
        ConfigError: the catalog has none on this machine.
    """
    if catalog.folder is None:
        raise ConfigError(
            f"DuckDB reads tables from files of this machine only: set "
            f"catalogs.{name}.warehouse_folder to the folder that holds them"
        )
    return catalog.folder


def _measure(slot: Slot) -> Measures | None:
    """What the query cost; a query that has its rows does not fail for want of this."""
    try:
        return slot.measure()
    except duckdb.Error as error:
        _log.warning("query not measured", error=str(error))
        return None


def _snapshot_id(location: str) -> int | None:
    current = read_metadata(location).current
    return current.snapshot_id if current else None


def _place(error: BaseException | None, sql: str) -> tuple[int, int] | None:
    """Where in the statement DuckDB's mark is; it marks the text with the files in it."""
    found = _MARK.search(str(error))
    if found is None:
        return None
    return place_of(word_at(found["line"], len(found["before"]) - len(found["head"])), sql)


def _message(error: Exception) -> str:
    """DuckDB's words without its quote of the statement, which is not the one the user wrote."""
    return str(error).partition("\nLINE ")[0].strip()
