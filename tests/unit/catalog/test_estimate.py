"""No file that holds an answer is ever left out, whatever the statement."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
)

from lakehouse_core.catalog.estimate import FileBounds, pruned, surviving
from lakehouse_core.catalog.estimate_axis import Axis, axis_of_bounds, axis_of_values
from lakehouse_core.sql import Inspector
from lakehouse_core.sql.condition import ColumnTest, Every

INSPECTOR = Inspector()
FILES = 12
TYPES: dict[str, tuple[PrimitiveType, str]] = {
    "i": (LongType(), "BIGINT"),
    "d": (DateType(), "DATE"),
    "ts": (TimestampType(), "TIMESTAMP"),
    "s": (StringType(), "VARCHAR"),
    "f": (DoubleType(), "DOUBLE"),
    "n": (DecimalType(9, 2), "DECIMAL(9, 2)"),
    "b": (BooleanType(), "BOOLEAN"),
}
VALUES: dict[str, list[str]] = {
    "i": ["0", "5", "-7", "12", "5.5", "'9'"],
    "d": ["DATE '2026-01-03'", "'2026-01-05'", "DATE '2026-01-01' + INTERVAL 4 DAY"],
    "ts": ["TIMESTAMP '2026-01-03 12:00:00'", "'2026-01-04'", "DATE '2026-01-02'"],
    "s": ["'b'", "'abc'", "'z'", "''", "'é'"],
    "f": ["0.5", "1", "-2.25", "CAST(3 AS DOUBLE)"],
    "n": ["1.25", "0.1", "-3", "2.005"],
    "b": ["TRUE", "FALSE"],
}


def row_of(rng: np.random.Generator, center: int) -> dict[str, Any]:
    """A row; rows of a file lie near each other, as in a real table."""
    near = center + int(rng.integers(-3, 4))
    row: dict[str, Any] = {
        "i": near,
        "d": date(2026, 1, 1 + near % 9),
        "ts": datetime(2026, 1, 1 + near % 9, int(rng.integers(24))),  # noqa: DTZ001 as the column
        "s": ["a", "abc", "abd", "b", "bé", "é", "z", ""][near % 8],
        "f": near / 4,
        "n": (Decimal(near) / 4).quantize(Decimal("0.01")),
        "b": near % 2 == 0,
    }
    return {name: None if rng.random() < 0.15 else value for name, value in row.items()}


def table_of(seed: int) -> tuple[pa.Table, FileBounds]:
    rng = np.random.default_rng(seed)
    files: list[list[dict[str, Any]]] = []
    for _ in range(FILES):
        center = int(rng.integers(-8, 14))
        rows = [row_of(rng, center) for _ in range(int(rng.integers(1, 6)))]
        if rng.random() < 0.2:
            empty = str(rng.choice(list(TYPES)))
            rows = [{**row, empty: None} for row in rows]
        files.append(rows)
    plain = [{"file": number, **row} for number, rows in enumerate(files) for row in rows]
    schema = pa.schema(
        [
            ("file", pa.int64()),
            ("i", pa.int64()),
            ("d", pa.date32()),
            ("ts", pa.timestamp("us")),
            ("s", pa.string()),
            ("f", pa.float64()),
            ("n", pa.decimal128(9, 2)),
            ("b", pa.bool_()),
        ]
    )
    return pa.Table.from_pylist(plain, schema), bounds_of(files)


def bounds_of(files: list[list[dict[str, Any]]]) -> FileBounds:
    axes = {name: (axis_of(kind, name, files),) for name, (kind, _) in TYPES.items()}
    sizes = np.arange(1, len(files) + 1, dtype=np.int64) * 100
    return FileBounds(sizes, np.array([len(rows) for rows in files]), axes)


def axis_of(kind: PrimitiveType, name: str, files: list[list[dict[str, Any]]]) -> Axis:
    lower, upper, nulls, values = [], [], [], []
    for rows in files:
        present = [row[name] for row in rows if row[name] is not None]
        present = sorted(present, key=str.encode) if name == "s" else sorted(present)
        lower.append(to_bytes(kind, present[0]) if present else None)
        upper.append(to_bytes(kind, present[-1]) if present else None)
        nulls.append(len(rows) - len(present))
        values.append(len(rows))
    found = axis_of_bounds(
        str(kind),
        pa.array(lower, pa.binary()),
        pa.array(upper, pa.binary()),
        pa.array(nulls),
        pa.array(values),
    )
    assert found is not None
    return found


@st.composite
def predicates(draw: st.DrawFn, depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        left, right = draw(predicates(depth - 1)), draw(predicates(depth - 1))
        joined = f"({left} {draw(st.sampled_from(['AND', 'OR']))} {right})"
        return f"NOT {joined}" if draw(st.integers(0, 3)) == 0 else joined
    column = draw(st.sampled_from(list(TYPES)))
    value = st.sampled_from(VALUES[column])
    form = draw(st.integers(0, 8))
    if form == 0:
        return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if form == 1:
        return (
            f"{column} {draw(st.sampled_from(['', 'NOT ']))}BETWEEN {draw(value)} AND {draw(value)}"
        )
    if form == 2:
        several = ", ".join(draw(st.lists(value, min_size=1, max_size=4)))
        return f"{column} {draw(st.sampled_from(['', 'NOT ']))}IN ({several})"
    if form == 3 and column == "s":
        pattern = draw(st.sampled_from(["a%", "ab_", "%c", "abc", "é%", ""]))
        return f"s {draw(st.sampled_from(['', 'NOT ']))}LIKE '{pattern}'"
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM"]))
    flip = operator != "IS NOT DISTINCT FROM" and draw(st.booleans())
    return f"{draw(value)} {operator} {column}" if flip else f"{column} {operator} {draw(value)}"


@cache
def kept_table(seed: int) -> tuple[duckdb.DuckDBPyConnection, FileBounds]:
    rows, bounds = table_of(seed)
    connection = duckdb.connect()
    connection.register("arrow_rows", rows)
    connection.execute("CREATE TABLE rows AS SELECT * FROM arrow_rows")
    return connection, bounds


@pytest.mark.slow
@settings(max_examples=120)
@given(seed=st.integers(0, 5), predicate=predicates())
def test_no_file_with_a_matching_row_is_left_out(seed: int, predicate: str) -> None:
    connection, bounds = kept_table(seed)
    sql = f"SELECT DISTINCT file FROM rows WHERE {predicate}"  # noqa: S608 made above
    scans = INSPECTOR.scans(sql, "duckdb")
    assert scans is not None
    assert [scan.table for scan in scans] == ["rows"]
    may = surviving(bounds, scans[0].condition)
    needed = {row[0] for row in connection.execute(sql).fetchall()}
    kept = set(range(FILES)) if may is None else set(np.flatnonzero(may).tolist())
    assert needed <= kept


def ranges(*limits: tuple[Any, Any], type_name: str = "long", **more: Any) -> FileBounds:
    axis = axis_of_values(
        type_name, [low for low, _ in limits], [high for _, high in limits], **more
    )
    count = len(limits)
    return FileBounds(np.full(count, 10), np.full(count, 1), {"c": (axis,)})


def files_for(bounds: FileBounds, condition: str) -> list[int]:
    scans = INSPECTOR.scans(f"SELECT * FROM t WHERE {condition}", "trino")  # noqa: S608 a test's
    assert scans is not None
    may = surviving(bounds, scans[0].condition)
    every = np.ones(len(bounds.sizes), bool)
    return np.flatnonzero(every if may is None else may).tolist()


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("c = 5", [0]),
        ("c < 10", [0]),
        ("c <= 10", [0, 1]),
        ("c >= 19.5", [2]),
        ("c BETWEEN 8 AND 12", [0, 1]),
        ("c IN (1, 25)", [0, 2]),
        ("NOT (c < 10 OR c > 19)", [1]),
        ("c = 5 OR c = 25", [0, 2]),
        ("c = 5 OR other = 1", [0, 1, 2]),
        ("c = 5 AND other = 1", [0]),
        ("c <> 5", [0, 1, 2]),
        ("abs(c) = 5", [0, 1, 2]),
        ("c = (SELECT max(x) FROM u)", [0, 1, 2]),
        ("c = NULL", []),
        ("5 > c", [0]),
    ],
)
def test_bounds_rule_out_what_they_can(condition: str, files: list[int]) -> None:
    assert files_for(ranges((0, 9), (10, 19), (20, 29)), condition) == files


def test_what_a_file_does_not_say_keeps_it() -> None:
    bounds = ranges((0, 9), (None, 3), (20, None), (None, None))
    assert files_for(bounds, "c = 50") == [2, 3]
    assert files_for(bounds, "c < -1") == [1, 3]


def test_a_number_that_is_no_number_is_no_bound() -> None:
    bounds = ranges((float("nan"), 1.0), (0.0, float("nan")), type_name="double")
    assert files_for(bounds, "c > 5") == [1]
    assert files_for(bounds, "c < -5") == [0]


def test_a_time_without_zone_may_mean_any_zone() -> None:
    def at(day: int, hour: int) -> int:
        return int(datetime(2026, 1, day, hour, tzinfo=UTC).timestamp()) * 1_000_000

    bounds = ranges(
        (at(1, 0), at(1, 23)), (at(2, 1), at(2, 23)), (at(5, 0), at(5, 1)), type_name="timestamptz"
    )
    assert files_for(bounds, "c >= TIMESTAMP '2026-01-02 00:00:00'") == [0, 1, 2]
    assert files_for(bounds, "c >= TIMESTAMP '2026-01-02 00:00:00 UTC'") == [1, 2]


def test_the_value_of_a_partition_rules_out_inequality() -> None:
    bounds = ranges((1, 1), (2, 2), is_exact=True)
    assert files_for(bounds, "c <> 1") == [1]
    assert files_for(bounds, "c NOT IN (1, 2)") == []


@pytest.mark.parametrize(
    ("sql", "conditions"),
    [
        # Each reading has its own condition.
        ("SELECT 1 FROM t a JOIN t b ON a.k = b.k WHERE a.x = 1", [True, False]),
        # An outer join keeps the left side whatever its condition says.
        ("SELECT 1 FROM t a LEFT JOIN u b ON a.k = b.k AND a.x = 1 AND b.y = 2", [False, True]),
        ("SELECT 1 FROM t a LEFT JOIN u b ON a.k = b.k WHERE b.y IS NULL", [False, False]),
        # A CTE that is read twice is not narrowed by one reader.
        ("WITH c AS (SELECT x FROM t) SELECT 1 FROM c WHERE x = 1", [True]),
        ("WITH c AS (SELECT x FROM t) SELECT 1 FROM c a, c b WHERE a.x = 1", [False]),
        ("WITH c AS (SELECT * FROM t) SELECT 1 FROM c a, c b WHERE a.x = 1", [False]),
        # A limit or a window works on all rows before the condition does.
        ("SELECT 1 FROM (SELECT x FROM t LIMIT 5) s WHERE s.x = 1", [False]),
        ("SELECT 1 FROM (SELECT DISTINCT ON (k) k, x FROM t) s WHERE s.x = 1", [False]),
        ("SELECT 1 FROM (SELECT x, max(y) m FROM t GROUP BY x) s WHERE s.x = 1", [True]),
        ("SELECT 1 FROM (SELECT x, max(y) m FROM t GROUP BY x) s WHERE s.m = 1", [False]),
        ("SELECT x FROM t GROUP BY x HAVING x = 1", [False]),
        ("SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.y = 3 AND t.x = 1)", [False, True]),
    ],
)
def test_a_condition_narrows_only_the_reading_it_is_about(sql: str, conditions: list[bool]) -> None:
    schema = {"t": ["k", "x", "y"], "u": ["k", "y"]}
    scans = INSPECTOR.scans(sql, "duckdb", schema=schema)
    assert scans is not None
    assert sorted(scan.condition != Every() for scan in scans) == sorted(conditions)
    assert {scan.table for scan in scans} <= {"t", "u"}


def test_a_table_as_it_once_was_is_not_estimated() -> None:
    sql = "SELECT * FROM t FOR VERSION AS OF 17 WHERE x = 1"
    assert INSPECTOR.scans(sql, "trino") is None


def test_a_known_template_gives_the_values_of_the_new_text() -> None:
    inspector = Inspector()
    first = inspector.scans("SELECT * FROM t WHERE c IN (1, 2) AND d < DATE '2026-01-01'", "trino")
    second = inspector.scans(
        "SELECT * FROM t WHERE c IN (7, 8, 9) AND d < DATE '2027-02-03'", "trino"
    )
    assert first is not None
    assert second is not None
    assert second[0].condition == Every(
        (
            ColumnTest("c", "in", (Decimal(7), Decimal(8), Decimal(9))),
            ColumnTest("d", "<", (date(2027, 2, 3),)),
        )
    )


def test_files_bytes_and_rows_are_counted() -> None:
    found = pruned(ranges((0, 9), (10, 19), (20, 29)), ColumnTest("C", ">", (Decimal(9),)))
    assert (found.files, found.bytes, found.rows, found.total_files) == (2, 20, 2, 3)
    assert found.selectivity == pytest.approx(2 / 3)
