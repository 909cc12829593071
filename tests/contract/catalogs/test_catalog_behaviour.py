"""What every catalog does alike: names, locations, tables that change or go while they are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakehouse_core.catalog import current_metadata_location
from lakehouse_core.catalog.location import local_path
from lakehouse_core.catalog.measure import measure
from lakehouse_core.catalog.metadata import read_metadata
from lakehouse_core.catalog.reader import TableReader
from lakehouse_core.domain.errors import CatalogError, MetadataUnreadableError, TableGoneError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.domain.table import MIB, TableName
from lakehouse_core.engines.base import Statement
from lakehouse_core.engines.duckdb.adapter import DuckDBAdapter
from tests.factories import NOW
from tests.unit.catalog.lakes import AVRO, SCHEMA, append_files

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tests.contract.catalogs.worlds import World

# Iceberg's server (Jetty) refuses a slash and a percent sign in a path, however they are written.
ODD_NAMES = [
    "a b",
    "ünïcode 表",
    'quo"te',
    "it's",
    "semi;--drop",
    "a.b",
    "[1]*",
    "{x}",
    "k=v",
    "1+1",
]


def name_of(name: str = "t", *namespace: str) -> TableName:
    return TableName("lake", namespace or ("demo",), name)


def create(world: World, name: str = "t") -> Table:
    return world.iceberg.create_table(("demo", name), SCHEMA)


def reader(world: World) -> TableReader:
    return TableReader(world.catalog, world.root / "cache", AVRO)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_tables_with_odd_names_are_listed_found_and_read(world: World, name: str) -> None:
    append_files(create(world, name), 5)
    table = name_of(name)
    location = world.catalog.tables()[table]
    assert current_metadata_location(world.catalog, str(table)) == location
    reading = reader(world).read(table)
    metrics = measure(reading, small_file_bytes=MIB, collected_at=NOW)
    assert metrics.total_bytes == 5


def test_nested_namespaces(world: World) -> None:
    for namespace in (("a",), ("a", "b"), ("a", "b", "c")):
        world.iceberg.create_namespace(namespace)
    world.iceberg.create_table(("a", "b", "c", "deep"), SCHEMA)
    assert world.catalog.namespaces() == [("a",), ("a", "b"), ("a", "b", "c"), ("demo",)]
    assert list(world.catalog.tables()) == [name_of("deep", "a", "b", "c")]
    assert current_metadata_location(world.catalog, "lake.a.b.c.deep").endswith(".metadata.json")


def test_the_tables_of_one_namespace(world: World) -> None:
    world.iceberg.create_namespace("other")
    create(world)
    world.iceberg.create_table(("other", "t"), SCHEMA)
    assert list(world.catalog.tables(("other",))) == [name_of("t", "other")]
    assert world.catalog.tables(("nobody",)) == {}
    survey = world.catalog.survey()
    assert sorted(survey.tables) == [name_of(), name_of("t", "other")]
    assert not survey.unreadable
    assert not survey.closed


def test_an_empty_catalog(world: World) -> None:
    assert world.catalog.namespaces() == [("demo",)]
    assert world.catalog.tables() == {}


def test_the_location_is_the_present_one_after_each_commit(world: World) -> None:
    table = create(world)
    seen = {world.catalog.metadata_location(name_of())}
    for _ in range(3):
        append_files(table, 1)
        location = world.catalog.metadata_location(name_of())
        assert location == table.metadata_location == world.catalog.tables()[name_of()]
        assert read_metadata(location).current is not None
        seen.add(location)
    assert len(seen) == 4


def test_a_dropped_table_is_gone(world: World) -> None:
    create(world)
    world.catalog.tables()
    world.iceberg.drop_table("demo.t")
    assert world.catalog.tables() == {}
    with pytest.raises(TableGoneError, match=r"lake\.demo\.t"):
        world.catalog.metadata_location(name_of())


def test_a_table_dropped_between_listing_and_reading_is_gone(world: World) -> None:
    append_files(create(world), 5)
    location = world.catalog.tables()[name_of()]
    world.iceberg.drop_table("demo.t")
    local_path(location).unlink()
    with pytest.raises(TableGoneError, match=r"lake\.demo\.t"):
        reader(world).read(name_of(), location)


def test_a_table_made_anew_under_its_name_is_another_one(world: World) -> None:
    first = create(world)
    before = world.catalog.metadata_location(name_of())
    world.iceberg.drop_table("demo.t")
    create(world)
    after = world.catalog.metadata_location(name_of())
    assert after != before
    assert read_metadata(after).table_uuid != str(first.metadata.table_uuid)


def test_a_renamed_table_is_found_under_its_new_name_only(world: World) -> None:
    create(world)
    location = world.catalog.metadata_location(name_of())
    world.iceberg.rename_table("demo.t", "demo.u")
    assert world.catalog.tables() == {name_of("u"): location}


def test_metadata_lost_behind_the_catalog_does_not_hide_other_tables(world: World) -> None:
    create(world)
    create(world, "whole")
    victim = local_path(world.catalog.metadata_location(name_of()))
    victim.unlink()
    survey = world.catalog.survey()
    assert name_of("whole") in survey.tables
    if name_of() in survey.unreadable:  # a server that reads the file itself
        assert victim.name in survey.unreadable[name_of()]
        with pytest.raises(CatalogError, match=victim.name):
            world.catalog.metadata_location(name_of())
    else:
        with pytest.raises(MetadataUnreadableError, match=victim.name):
            reader(world).read(name_of(), survey.tables[name_of()])


@pytest.mark.duckdb
def test_duckdb_reads_each_commit_at_once(world: World) -> None:
    from lakehouse_core.config.models import DuckDBEngine  # noqa: PLC0415 only here

    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    table = world.iceberg.create_table(("demo", "numbers"), rows.schema)
    settings = DuckDBEngine(type="duckdb", catalog="lake", journal=world.root / "journal")
    engine = DuckDBAdapter(EngineId("duckdb"), settings, world.config)
    try:
        for commit in range(1, 3):
            table.append(rows)
            result = engine.execute(
                Statement(sql="SELECT sum(id) AS n FROM demo.numbers", user="ana")
            )
            assert result.rows.to_pylist() == [{"n": 6 * commit}]
    finally:
        engine.close()
    assert Path(local_path(table.location())).is_relative_to(world.config.folder or "")
