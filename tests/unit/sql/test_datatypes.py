"""Type names as engines spell them."""

from __future__ import annotations

import pytest

from lakehouse_core.sql.datatypes import TEXT, ColumnType, parse_type

BIGINT = ColumnType("int64")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bigint", BIGINT),
        ("integer", ColumnType("int32")),
        ("real", ColumnType("float32")),
        ("decimal(12,2)", ColumnType("decimal", (12, 2))),
        ("timestamp(6)", ColumnType("timestamp", (6,))),
        ("timestamp(3) with time zone", ColumnType("timestamptz", (3,))),
        ("varchar(25)", TEXT),
        ("array(bigint)", ColumnType("list", fields=(("field0", BIGINT),))),
        ("map(varchar, bigint)", ColumnType("map", fields=(("field0", TEXT), ("field1", BIGINT)))),
        ("row(a bigint, b varchar)", ColumnType("struct", fields=(("a", BIGINT), ("b", TEXT)))),
        ("row(bigint)", ColumnType("struct", fields=(("field0", BIGINT),))),
        ("varbinary", ColumnType("binary")),
    ],
)
def test_types_are_read_with_what_they_hold(text: str, expected: ColumnType) -> None:
    held = parse_type(text, "trino")

    assert (held.family, held.fields) == (expected.family, expected.fields)
    if expected.parameters:
        assert held.parameters == expected.parameters


@pytest.mark.parametrize("text", ["ipaddress", "HyperLogLog", "interval day to second", "~"])
def test_a_type_nobody_knows_is_text(text: str) -> None:
    assert parse_type(text, "trino").family == "text"
