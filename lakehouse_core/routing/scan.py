"""Scans estimated from tables as they are this moment: for a command, too slow for a decision."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from lakehouse_core.catalog.avro_reader import AvroReader
from lakehouse_core.catalog.estimate_tables import BoundsMemory
from lakehouse_core.catalog.reader import TableReader
from lakehouse_core.domain.errors import CatalogError
from lakehouse_core.domain.table import TableName
from lakehouse_core.routing.features_scan import LakeScanEstimator
from lakehouse_core.routing.request import ScanEstimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.catalog.port import LakeCatalog
    from lakehouse_core.routing.request import Request, StatementFacts


class FreshScanEstimator:
    """Reads the manifests of a statement's tables, then estimates; a `ScanEstimator`."""

    def __init__(self, catalogs: Mapping[str, LakeCatalog]) -> None:
        self._catalogs = catalogs

    def estimate(self, request: Request, facts: StatementFacts) -> ScanEstimate:
        """Files and bytes; `basis` says why when a table cannot be read."""
        memory = BoundsMemory()
        avro = AvroReader()
        try:
            # The collectors' own copies of manifests are another process's business.
            with TemporaryDirectory(prefix="lakehelm-scan-") as folder:
                for table in facts.tables:
                    name = TableName.parse(table)
                    catalog = self._catalogs.get(name.catalog)
                    if catalog is None:
                        return ScanEstimate(basis=f"{table} is in no catalog of ours")
                    reader = TableReader(catalog, Path(folder, name.catalog), avro)
                    memory.keep(table, reader.bounds(reader.read(name)))
        except (CatalogError, ValueError) as error:
            return ScanEstimate(basis=str(error))
        finally:
            avro.close()
        return LakeScanEstimator(memory).estimate(request, facts)
