"""What a statement would read, from bounds that are in memory: the router's `ScanEstimator`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.catalog.estimate import pruned
from lakehouse_core.routing.request import ScanEstimate
from lakehouse_core.sql.cache import Cache
from lakehouse_core.sql.inspector import default_inspector
from lakehouse_core.sql.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.catalog.estimate_tables import BoundsMemory, TableBounds
    from lakehouse_core.routing.request import Request, StatementFacts
    from lakehouse_core.sql.inspector import Inspector

_SCHEMAS = 10_000
_TEXTS = 4_096
_LONGEST_TEXT = 16 * 1024


class LakeScanEstimator:
    """Estimates scans; asks no catalog and no disk, so it may lag behind the newest commit."""

    def __init__(self, bounds: BoundsMemory, inspector: Inspector | None = None) -> None:
        self._bounds = bounds
        self._inspector = inspector or default_inspector()
        self._schemas: dict[tuple[tuple[str, int], ...], Schema] = {}
        # Guard, strategy and record ask about the same text within a moment.
        self._texts: Cache[tuple[object, ...], ScanEstimate] = Cache(_TEXTS)

    def estimate(self, request: Request, facts: StatementFacts) -> ScanEstimate:
        """Files and bytes of the whole statement; none when a part of it is not known."""
        if not facts.tables:
            return ScanEstimate(basis=facts.error or "it reads no table")
        held = {table: self._bounds.get(table) for table in facts.tables}
        absent = [table for table, one in held.items() if one is None]
        if absent:
            return ScanEstimate(basis=f"the files of {absent[0]} are not in memory")
        if len(request.sql) > _LONGEST_TEXT:
            return self._estimated(request, facts, held)
        snapshots = tuple(one.metadata_location for one in held.values() if one is not None)
        key = (request.sql, request.dialect, request.catalog, request.schema, snapshots)
        known = self._texts.get(key)
        if known is None:
            known = self._estimated(request, facts, held)
            self._texts.put(key, known)
        return known

    def _estimated(
        self, request: Request, facts: StatementFacts, held: Mapping[str, TableBounds | None]
    ) -> ScanEstimate:
        scans = self._inspector.scans(
            request.sql,
            request.dialect,
            default_catalog=request.catalog,
            default_namespace=(request.schema,) if request.schema else (),
            schema=self._schema(facts.tables),
        )
        if scans is None:
            return ScanEstimate(basis="it reads a table as it once was, or was not understood")
        files = size = total = 0
        for scan in scans:
            one = held.get(scan.table)
            if one is None:
                return ScanEstimate(basis=f"the files of {scan.table} are not in memory")
            found = pruned(one.data, scan.condition)
            files += found.files + one.delete_files
            size += found.bytes + one.delete_bytes
            total += found.total_files
        return ScanEstimate(files=files, bytes=size, basis=f"bounds of {total} files")

    def _schema(self, tables: tuple[str, ...]) -> Schema:
        """The columns of a statement's tables, so that unqualified names find theirs."""
        held = [(table, self._bounds.get(table)) for table in tables]
        key = tuple((table, one.schema_key) for table, one in held if one is not None)
        known = self._schemas.get(key)
        if known is None:
            if len(self._schemas) >= _SCHEMAS:
                self._schemas.clear()
            known = Schema({table: one.names for table, one in held if one is not None})
            self._schemas[key] = known
        return known
