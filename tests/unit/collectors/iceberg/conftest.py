"""A lake to sweep and a store in memory that keeps rows as the real one does: by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collectors.iceberg.config import IcebergSettings
from collectors.iceberg.known import KnownTable
from collectors.iceberg.source import IcebergSource
from lakehouse_core.config.models import HealthConfig
from lakehouse_core.domain.table import LakeTable
from lakehouse_core.store.tables import TABLES
from tests.factories import NOW
from tests.unit.catalog.lakes import Lake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from collectors.base import Batch
    from lakehouse_core.domain.agent import DeadLetter, Watermark

Key = tuple[Any, ...]


class MemoryStore:
    """Applies batches, and answers what the source asks."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Key, dict[str, Any]]] = {name: {} for name in TABLES}
        self.letters: dict[str, DeadLetter] = {}
        self.watermark: Watermark | None = None
        self.batches: list[Batch] = []

    def apply(self, batch: Batch) -> None:
        self.batches.append(batch)
        for name, rows in batch.rows.items():
            for row in rows.to_pylist():
                key = tuple(row[column] for column in TABLES[name].key)
                self.tables[name][key] = row
        self.letters.update({letter.letter_id: letter for letter in batch.dead_letters})
        self.watermark = batch.watermark or self.watermark

    def known(self) -> dict[str, KnownTable]:
        metrics = self.tables["table_metrics"]
        return {
            row["table_id"]: KnownTable(
                LakeTable(**row),
                metrics.get((row["table_id"], row["current_snapshot_id"] or 0), {}).get(
                    "latest_snapshot_at"
                ),
            )
            for row in self.tables["lake_table"].values()
        }

    def rows(self, table: str) -> list[dict[str, Any]]:
        return list(self.tables[table].values())

    def table(self, table_id: str) -> dict[str, Any]:
        return self.tables["lake_table"][(table_id,)]


class World:
    """A lake, its source and the store it fills; the clock stands until it is moved."""

    def __init__(self, lake: Lake, health: HealthConfig | None = None) -> None:
        self.lake = lake
        self.now = NOW
        self.store = MemoryStore()
        self.health = health or HealthConfig()
        self.source = self.new_source()

    def new_source(self) -> IcebergSource:
        settings = IcebergSettings(
            cache=self.lake.root / "cache", health=self.health, batch_tables=3
        )
        return IcebergSource([self.lake.catalog], settings, self.store.known, lambda: self.now)

    def pull(self) -> list[Batch]:
        """One run of the collect agent; gives the batches that held rows or letters."""
        before = len(self.store.batches)
        for batch in self.source.pull(self.store.watermark):
            self.store.apply(batch)
        new = self.store.batches[before:]
        return [batch for batch in new if batch.rows or batch.dead_letters]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    lake = Lake(tmp_path / "lake")
    world = World(lake)
    yield world
    world.source.close()
    lake.close()
