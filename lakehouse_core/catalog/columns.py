"""Columns of tables, for whoever resolves names in SQL."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from lakehouse_core.catalog.metadata import read_metadata
from lakehouse_core.domain.table import TableName

if TYPE_CHECKING:
    from lakehouse_core.catalog.port import LakeCatalog


class TableColumns:
    """Column name → Iceberg type of a table; call it with a table id.

        columns = TableColumns(catalog)
        columns("lake.demo.events")  # {"id": "long", "at": "timestamptz", …}

    The catalog is asked each time; a metadata file, which never changes, is read once.
    """

    def __init__(self, catalog: LakeCatalog, *, max_tables: int = 1_000) -> None:
        self._catalog = catalog
        self._max_tables = max_tables
        self._by_location: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._lock = Lock()

    def __call__(self, table_id: str) -> dict[str, str]:
        """The columns of the table as it is now, in their order.

        Raises:
            TableGoneError: the catalog has no such table.
            MetadataUnreadableError: its metadata file is missing or broken.
            CatalogUnavailableError: the catalog does not answer.
        """
        location = self._catalog.metadata_location(TableName.parse(table_id))
        with self._lock:
            found = self._by_location.get(location)
        if found is None:
            metadata = read_metadata(location)
            found = {field.name: field.type for field in metadata.fields if field.is_column}
        with self._lock:
            self._by_location[location] = found
            self._by_location.move_to_end(location)
            while len(self._by_location) > self._max_tables:
                self._by_location.popitem(last=False)
        return dict(found)
