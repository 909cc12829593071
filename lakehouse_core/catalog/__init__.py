"""The lake's catalog: names, metadata files, manifests read once, structural metrics."""

from lakehouse_core.catalog.columns import TableColumns
from lakehouse_core.catalog.loader import current_metadata_location, open_catalog
from lakehouse_core.catalog.port import LakeCatalog

__all__ = ["LakeCatalog", "TableColumns", "current_metadata_location", "open_catalog"]
