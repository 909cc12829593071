"""The Iceberg source on a REST catalog: what is closed or broken drops and hides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collectors.iceberg.config import IcebergSettings
from collectors.iceberg.source import IcebergSource
from lakehouse_core.catalog.rest import RestLake
from lakehouse_core.config.catalogs import RestCatalog
from lakehouse_core.config.models import HealthConfig
from lakehouse_core.domain.errors import SourceError, SourceUnavailableError, Transient
from tests.factories import NOW
from tests.unit.catalog.lakes import Lake, append_files
from tests.unit.catalog.rest_stand_in import Reply, RestStandIn, problem
from tests.unit.collectors.iceberg.conftest import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from collectors.base import Batch

pytestmark = pytest.mark.slow


class RestWorld:
    """Real tables of a lake, told of by a REST catalog that can be told what to say."""

    def __init__(self, folder: Path) -> None:
        self.server = RestStandIn()
        self.lake = Lake(folder)
        self.store = MemoryStore()
        config = RestCatalog(type="rest", uri=self.server.uri)
        settings = IcebergSettings(cache=folder / "cache", health=HealthConfig())
        catalog = RestLake("lake", config)
        self.source = IcebergSource([catalog], settings, self.store.known, lambda: NOW)
        for name in ("a", "b"):
            append_files(self.lake.create(name), 5)
        for table, location in self.lake.catalog.tables().items():
            self.server.add(table.namespace, table.name, location)

    def pull(self) -> list[Batch]:
        before = len(self.store.batches)
        for batch in self.source.pull(self.store.watermark):
            self.store.apply(batch)
        return [one for one in self.store.batches[before:] if one.rows or one.dead_letters]

    def close(self) -> None:
        self.source.close()
        self.lake.close()
        self.server.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RestWorld]:
    world = RestWorld(tmp_path / "lake")
    yield world
    world.close()


def test_tables_are_read_once_and_dropped_ones_are_marked(world: RestWorld) -> None:
    world.pull()
    assert {row["total_bytes"] for row in world.store.rows("table_metrics")} == {5}
    assert world.pull() == []
    del world.server.tables[("demo",), "b"]
    world.pull()
    assert world.store.table("lake.demo.b")["dropped_at"] == NOW
    assert world.store.table("lake.demo.a")["dropped_at"] is None


def test_a_table_the_server_cannot_load_is_told_once_with_what_was_known(world: RestWorld) -> None:
    world.pull()
    before = world.store.table("lake.demo.b")
    broken = problem(404, "NotFoundException", "File does not exist: x.metadata.json")
    world.server.fault = lambda path, _: broken if path.endswith("/b") else None
    world.pull()
    row = world.store.table("lake.demo.b")
    assert "x.metadata.json" in row["error"]
    assert row["metadata_location"] == before["metadata_location"]
    assert row["dropped_at"] is None
    assert len(world.store.letters) == 1
    assert world.pull() == []
    world.server.fault = None
    world.pull()
    assert world.store.table("lake.demo.b")["error"] is None


def test_a_table_that_was_never_seen_and_cannot_be_loaded(world: RestWorld) -> None:
    world.server.fault = lambda path, _: (
        problem(403, "ForbiddenException", "no grant") if path.endswith("/b") else None
    )
    world.pull()
    row = world.store.table("lake.demo.b")
    assert "no grant" in row["error"]
    assert row["metadata_location"] is None
    assert world.store.table("lake.demo.a")["error"] is None


def test_tables_of_a_namespace_that_was_closed_to_us_are_not_dropped(world: RestWorld) -> None:
    world.server.add(("open",), "c", next(iter(world.lake.catalog.tables().values())))
    world.pull()
    world.server.fault = lambda path, _: (
        problem(403, "ForbiddenException") if path.endswith("/demo/tables") else None
    )
    assert world.pull() == []
    assert world.store.table("lake.demo.a")["dropped_at"] is None


@pytest.mark.parametrize(
    ("reply", "is_transient"),
    [(problem(401, "NotAuthorizedException"), False), (problem(500, "X"), True)],
)
def test_a_refusal_is_not_tried_again_soon(
    world: RestWorld, reply: Reply, is_transient: bool
) -> None:
    world.pull()
    world.server.fault = lambda _path, _headers: reply
    with pytest.raises(SourceError) as caught:
        world.pull()
    assert isinstance(caught.value, SourceUnavailableError) is is_transient
    assert isinstance(caught.value, Transient) is is_transient
    assert world.store.table("lake.demo.a")["dropped_at"] is None
