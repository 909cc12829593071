"""A lake that the Iceberg source reads: real catalog and metadata, data files only in name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collectors.iceberg.config import IcebergSettings
from collectors.iceberg.known import known_tables
from collectors.iceberg.source import IcebergSource
from lakehouse_core.config.models import HealthConfig
from tests.factories import NOW
from tests.unit.catalog.lakes import File, HandMade, Lake, Manifest, append_files

if TYPE_CHECKING:
    from pathlib import Path

    from collectors.base import Source
    from lakehouse_core.store.owner import OwnerStore

FILES = 2


class IcebergWorld:
    """Tables that tests commit to, spoil and take away."""

    def __init__(self, folder: Path, store: OwnerStore) -> None:
        self.lake = Lake(folder / "lake")
        self.place = str(self.lake.path)
        self._store = store
        self._sources: list[IcebergSource] = []

    def source(self) -> Source:
        """A new source on this lake, with small batches."""
        settings = IcebergSettings(
            cache=self.lake.root / "cache", health=HealthConfig(), batch_tables=3
        )
        known = lambda: known_tables(self._store)  # noqa: E731 as the product passes it
        made = IcebergSource([self.lake.catalog], settings, known, lambda: NOW)
        self._sources.append(made)
        return made

    def commit(self, number: int) -> str:
        """A table gets a commit of two files; made when it is not there; returns its id."""
        name = ("demo", f"t{number}")
        there = self.lake.iceberg.table_exists(name)
        table = self.lake.iceberg.load_table(name) if there else self.lake.create(name[1])
        append_files(table, *(1_000,) * FILES)
        return f"lake.demo.t{number}"

    def spoil(self) -> None:
        """A table appears whose metadata cannot be read."""
        made = HandMade(self.lake, name="broken")
        made.commit(Manifest((File(),)))
        max(made.folder.rglob("*.metadata.json")).unlink()

    def vanish(self) -> None:
        """The catalog is not there any more."""
        self.lake.path.rename(self.lake.path.with_suffix(".away"))

    def close(self) -> None:
        """Release connections."""
        for source in self._sources:
            source.close()
        self.lake.close()
