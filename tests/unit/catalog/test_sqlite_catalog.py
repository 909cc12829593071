"""The SQLite catalog: names, views, the present location, faults."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.catalog import current_metadata_location, open_catalog
from lakehouse_core.catalog.sqlite import SqliteLake
from lakehouse_core.config.catalogs import SqliteCatalog
from lakehouse_core.domain.errors import CatalogError, CatalogUnavailableError, TableGoneError
from lakehouse_core.domain.table import TableName
from tests.unit.catalog.lakes import SCHEMA, append_files, measured, name_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.catalog.lakes import Lake

ODD_NAMES = ["a b", "ünïcode 表", 'quo"te', "it's", "semi;--drop", "a.b", "[1]*", "{x}", "k=v"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_tables_with_odd_names_are_listed_found_and_read(lake: Lake, name: str) -> None:
    append_files(lake.iceberg.create_table(("demo", name), SCHEMA), 5)
    table = TableName("lake", ("demo",), name)
    location = lake.catalog.tables()[table]
    assert current_metadata_location(lake.catalog, str(table)) == location
    assert measured(lake, table).total_bytes == 5


def test_nested_namespaces(lake: Lake) -> None:
    for namespace in ("a", "a.b", "a.b.c"):
        lake.iceberg.create_namespace(namespace)
    lake.iceberg.create_table("a.b.c.deep", SCHEMA)
    assert lake.catalog.namespaces() == [("a",), ("a", "b"), ("a", "b", "c"), ("demo",)]
    assert list(lake.catalog.tables()) == [TableName("lake", ("a", "b", "c"), "deep")]
    assert current_metadata_location(lake.catalog, "lake.a.b.c.deep").endswith(".metadata.json")


def test_the_location_is_the_present_one_after_each_commit(lake: Lake) -> None:
    table = lake.create()
    seen = {lake.catalog.metadata_location(name_of())}
    for _ in range(3):
        append_files(table, 1)
        location = lake.catalog.metadata_location(name_of())
        assert location == table.metadata_location
        seen.add(location)
    assert len(seen) == 4


def test_a_catalog_file_that_was_replaced_is_seen(lake: Lake, tmp_path: Path) -> None:
    lake.create()
    assert lake.catalog.tables()
    other = SqliteLake("lake", tmp_path / "other.db", tmp_path / "w")
    other.iceberg()
    (tmp_path / "other.db").replace(lake.path)
    assert lake.catalog.tables() == {}


def test_views_and_tables_of_another_catalog_are_not_tables_of_ours(lake: Lake) -> None:
    insert = "INSERT INTO iceberg_tables VALUES (?, 'demo', ?, 'file:/x', NULL, ?)"
    lake.execute(insert, "lake", "view", "VIEW")
    lake.execute(insert, "other", "table", "TABLE")
    lake.execute(insert, "lake", "old", None)
    assert [str(table) for table in lake.catalog.tables()] == ["lake.demo.old"]
    with pytest.raises(TableGoneError, match=r"lake\.demo\.view"):
        lake.catalog.metadata_location(name_of("view"))


def test_the_first_schema_of_the_jdbc_catalog_is_read_too(lake: Lake) -> None:
    lake.create()
    lake.execute("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    assert list(lake.catalog.tables()) == [name_of()]


def test_a_dropped_table_is_gone(lake: Lake) -> None:
    lake.create()
    lake.iceberg.drop_table("demo.t")
    with pytest.raises(TableGoneError, match=r"lake\.demo\.t"):
        lake.catalog.metadata_location(name_of())


def test_a_catalog_that_is_not_there_yet_says_what_to_do(tmp_path: Path) -> None:
    config = SqliteCatalog(type="sqlite", path=tmp_path / "no.db", warehouse=tmp_path)
    with pytest.raises(CatalogUnavailableError, match=r"no\.db does not exist.*lakehelm up"):
        open_catalog("lake", config).tables()
    assert not (tmp_path / "no.db").exists()


def test_a_file_without_the_catalogs_tables_does_not_answer_yet(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(CatalogUnavailableError, match="iceberg_tables"):
        SqliteLake("lake", path, tmp_path).tables()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("hello, this is not a database" * 100)
    with pytest.raises(CatalogError, match=r"text\.db"):
        SqliteLake("lake", path, tmp_path).tables()


def test_a_writer_in_the_middle_of_a_commit_does_not_stop_readers(lake: Lake) -> None:
    lake.create()
    connection = sqlite3.connect(lake.path)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM iceberg_tables")
    assert list(lake.catalog.tables()) == [name_of()]
    connection.rollback()
    connection.close()
