"""Results as tables with types, as CSV, and the place of an error."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from lakehouse_core.views.results import numeric, result_csv, to_table
from lakehouse_core.views.statements import Column, Problem, pointed


def test_values_get_the_type_their_column_names() -> None:
    columns = [
        Column("n", "bigint"),
        Column("d", "decimal(10,2)"),
        Column("t", "timestamp(9)"),
        Column("day", "date"),
        Column("a", "array(integer)"),
        Column("x", "double"),
    ]
    row = [1, "12.50", "2026-11-17 08:00:00.123456789", "2026-11-17", [1, 2], "NaN"]
    table = to_table(columns, [row, [None] * 6])
    kinds = [pa.int64(), pa.decimal128(10, 2), pa.timestamp("us"), pa.date32(), pa.string()]
    assert table.schema.types[:5] == kinds
    assert table["c1"][0].as_py() == Decimal("12.50")
    assert table["c2"][0].as_py().microsecond == 123_456
    assert table["c4"][0].as_py() == "[1, 2]"
    assert table.slice(1).to_pylist()[0] == dict.fromkeys([f"c{n}" for n in range(6)])
    assert numeric(columns) == (0, 1, 5)


def test_a_value_that_does_not_fit_makes_its_column_text() -> None:
    table = to_table([Column("d", "date")], [["+12026-01-01"], ["2026-01-01"]])
    assert table["c0"].to_pylist() == ["+12026-01-01", "2026-01-01"]


def test_two_columns_of_one_name_and_formulas_survive_a_download() -> None:
    columns = [Column("a", "varchar"), Column("a", "varchar")]
    assert result_csv(columns, [["=1+1", None]]) == "a,a_2\n'=1+1,\n"
    assert result_csv(columns, []) == "a,a_2\n"


def test_an_error_points_at_its_line() -> None:
    problem = Problem(name="X", message="", line=2, column=3)
    assert pointed("SELECT\n  1x", problem) == "line 2:   1x\n          ^"
    assert pointed("SELECT", problem) is None
