"""The SQLite catalog: views, other catalogs in the file, faults; the rest is in the contract."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.catalog import open_catalog
from lakehouse_core.catalog.sqlite import SqliteLake
from lakehouse_core.config.catalogs import SqliteCatalog
from lakehouse_core.domain.errors import CatalogError, CatalogUnavailableError, TableGoneError
from tests.unit.catalog.lakes import name_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.catalog.lakes import Lake


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


def test_what_a_killed_writer_left_half_done_is_rolled_back_by_the_next_reader(lake: Lake) -> None:
    lake.create()
    connection = sqlite3.connect(lake.path)
    connection.execute("PRAGMA cache_size = 1")  # changes go to the file before they are committed
    connection.execute("DELETE FROM iceberg_tables")
    insert = "INSERT INTO iceberg_tables VALUES ('lake', 'demo', ?, ?, NULL, 'TABLE')"
    connection.executemany(insert, ((f"t{n}", "x" * 3_000) for n in range(100)))
    killed = {one: one.read_bytes() for one in lake.path.parent.glob("catalog.db*")}
    connection.rollback()
    connection.close()
    for path, content in killed.items():
        path.write_bytes(content)
    journal = lake.path.with_name("catalog.db-journal")
    assert journal.exists()
    assert list(lake.catalog.tables()) == [name_of()]
    assert not journal.exists()
