"""Columns of tables for name resolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from lakehouse_core.catalog import TableColumns
from lakehouse_core.domain.errors import TableGoneError

if TYPE_CHECKING:
    from tests.unit.catalog.lakes import Lake

NESTED = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "price", DecimalType(9, 2)),
    NestedField(3, "tags", ListType(4, StringType())),
    NestedField(5, "seen", MapType(6, StringType(), 7, LongType())),
    NestedField(8, "home", StructType(NestedField(9, "city", StringType()))),
)


def test_columns_come_in_order_with_icebergs_types(lake: Lake) -> None:
    lake.iceberg.create_table("demo.n", NESTED)
    assert list(TableColumns(lake.catalog)("lake.demo.n").items()) == [
        ("id", "long"),
        ("price", "decimal(9, 2)"),
        ("tags", "list<string>"),
        ("seen", "map<string, long>"),
        ("home", "struct<city: string>"),
    ]


def test_a_column_added_later_is_there_at_once(lake: Lake) -> None:
    columns = TableColumns(lake.catalog)
    table = lake.create()
    assert "added" not in columns("lake.demo.t")
    with table.update_schema() as update:
        update.add_column("added", LongType())
    assert columns("lake.demo.t")["added"] == "long"


def test_more_tables_than_are_remembered(lake: Lake) -> None:
    columns = TableColumns(lake.catalog, max_tables=2)
    for number in range(4):
        lake.create(f"t{number}")
    for _ in range(2):
        for number in range(4):
            assert list(columns(f"lake.demo.t{number}")) == ["id", "region", "at"]


def test_what_the_caller_does_to_the_answer_stays_with_the_caller(lake: Lake) -> None:
    lake.create()
    columns = TableColumns(lake.catalog)
    columns("lake.demo.t").clear()
    assert columns("lake.demo.t")


def test_a_table_that_is_not_there(lake: Lake) -> None:
    with pytest.raises(TableGoneError):
        TableColumns(lake.catalog)("lake.demo.nothing")
