"""A lake to write to, behind each kind of catalog."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.catalog import open_catalog
from lakehouse_core.config.catalogs import SqliteCatalog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.catalog import Catalog

    from lakehouse_core.catalog import LakeCatalog
    from lakehouse_core.config.catalogs import CatalogConfig
    from tests.rest_catalog import RestServer


@dataclass(frozen=True)
class World:
    """An empty catalog named `lake` and its files."""

    config: CatalogConfig
    catalog: LakeCatalog
    iceberg: Catalog
    root: Path


def sqlite_world(folder: Path) -> Iterator[World]:
    """The catalog on an SQLite file."""
    config = SqliteCatalog(type="sqlite", path=folder / "catalog.db", warehouse=folder / "w")
    yield from _opened(config, folder)


def rest_world(folder: Path, server: RestServer) -> Iterator[World]:
    """Iceberg's REST server, emptied."""
    shutil.rmtree(server.warehouse)
    server.warehouse.mkdir()
    server.forget_all()
    yield from _opened(server.config, folder)


def _opened(config: CatalogConfig, folder: Path) -> Iterator[World]:
    with closing(open_catalog("lake", config)) as catalog, closing(catalog.iceberg()) as iceberg:
        iceberg.create_namespace("demo")
        yield World(config, catalog, iceberg, folder)
