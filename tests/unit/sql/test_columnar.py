"""Columns of texts: every row is right or carries its error, and no row stops its batch."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.sql import columnar, inspect
from lakehouse_core.sql.columnar import inspect_batches, inspect_texts

GOOD = "SELECT a FROM t WHERE b = 5"
BAD = {
    "empty": b"",
    "not UTF-8": b"SELECT \xff\xfe FROM \xc3\x28",
    "NUL": b"SELECT a\x00b FROM t",
    "deep": b"SELECT " + b"(" * 50_000 + b"1" + b")" * 50_000,
    "long": b"SELECT a FROM t WHERE b IN (" + b"1," * 2_600_000 + b"1)",
    "open": b"SELECT 'a",
    "nonsense": b"selec a from",
    "several": b"SELECT 1; SELECT 2",
}


DIALECTS = ("trino", "spark", "duckdb", "snowflake", "athena")
PIECES = st.sampled_from(
    [
        *("SELECT a FROM t WHERE ", "b", "=", "IN (", ")", ",", "'x'", "5", "-", "DATE '2024-1-1'"),
        *("INTERVAL '3' DAY", "NULL", "AND", "OR", "NOT", "BETWEEN", "LIKE", "IS", "CAST(", "AS"),
        *("DATE", "::", "?", "(SELECT", "u.c", "x'ab'", "$1", "'", "\ud800", "1e9", "FROM u", "+"),
    ]
)
SCRAPS = st.lists(PIECES, max_size=14).map(
    lambda words: " ".join(words).encode("utf-8", "surrogatepass")
)


def batch(texts: list[bytes | None], dialect: str | None = "trino") -> pa.Table:
    return pa.table(
        {
            "text_id": [str(number) for number in range(len(texts))],
            "sql_text": pa.array(texts, pa.binary()),
            "dialect": pa.array([dialect] * len(texts), pa.string()),
            "default_catalog": ["lake"] * len(texts),
            "default_namespace": [["demo"]] * len(texts),
        }
    )


def test_the_schemas_are_the_exported_ones() -> None:
    for texts in ([], [GOOD.encode()], [None]):
        found = inspect_texts(batch(texts))
        assert found.texts.schema == columnar.TEXTS
        assert found.usage.schema == columnar.USAGE
        assert found.predicates.schema == columnar.PREDICATES
        for nested in inspect_batches(iter(batch(texts).to_batches())):
            assert nested.schema == columnar.NESTED


def test_rows_say_what_inspect_says_of_each_text() -> None:
    found = inspect_texts(batch([GOOD.encode(), b"DELETE FROM s.u WHERE x IN (1, 2)"]))
    for row, sql in zip(
        found.texts.to_pylist(), (GOOD, "DELETE FROM s.u WHERE x IN (1, 2)"), strict=True
    ):
        alone = inspect(sql, "trino", default_catalog="lake", default_namespace=("demo",))
        assert row["template_id"] == alone.template_id
        assert row["template"] == alone.template
        assert row["statement_kind"] == alone.kind.value
        assert tuple(row["tables"]) == alone.tables
        assert (row["error"], row["reason"]) == (None, None)
    used = {tuple(row.values())[2:] for row in found.usage.to_pylist() if row["text_id"] == "0"}
    assert used == {("lake.demo.t", "a", "project"), ("lake.demo.t", "b", "filter_eq")}


def test_predicates_carry_their_literals() -> None:
    sql = "SELECT a FROM t WHERE b IN (10, 9, NULL) AND c >= DATE '2024-01-01' AND d = ?"
    found = inspect_texts(batch([sql.encode()])).predicates
    rows = {row["column_name"]: row for row in found.to_pylist()}
    assert rows["b"]["literals"] == [None, "9", "10"]
    assert (rows["b"]["min_literal"], rows["b"]["max_literal"]) == ("9", "10")
    assert (rows["b"]["literal_kind"], rows["b"]["has_null"]) == ("number", True)
    assert (rows["b"]["operator"], rows["b"]["literal_count"]) == ("in", 3)
    assert (rows["c"]["literal_kind"], rows["c"]["literals"]) == ("date", ["2024-01-01"])
    assert (rows["d"]["literal_kind"], rows["d"]["literals"]) == ("unknown", [None])
    assert {row["table_name"] for row in rows.values()} == {"lake.demo.t"}


def test_nested_and_flat_say_the_same() -> None:
    texts = batch([GOOD.encode(), b"SELECT 1", b"SELECT x FROM u WHERE y BETWEEN 1 AND 2"])
    flat = inspect_texts(texts)
    nested = pa.Table.from_batches(inspect_batches(iter(texts.to_batches()))).to_pylist()
    for column, table in (("usage", flat.usage), ("predicates", flat.predicates)):
        owned = [
            {"text_id": row["text_id"], "template_id": row["template_id"], **item}
            for row in nested
            for item in row[column]
        ]
        assert owned == table.to_pylist()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_carries_its_error_and_leaves_the_others_alone(name: str) -> None:
    found = inspect_texts(batch([GOOD.encode(), BAD[name], GOOD.encode()]))
    first, bad, last = found.texts.to_pylist()
    assert first["template_id"] == last["template_id"]
    assert first["error"] is None
    assert bad["template_id"]
    is_understood = name == "NUL"  # a replacement character is a name like any other
    assert (bad["error"] is None) == (bad["reason"] is None) == is_understood
    assert set(found.usage.column("text_id").to_pylist()) >= {"0", "2"}


@given(st.lists(st.binary(max_size=80) | SCRAPS, max_size=5), st.sampled_from(DIALECTS))
def test_any_bytes_give_one_row_each(texts: list[bytes], dialect: str) -> None:
    found = inspect_texts(batch([*texts, GOOD.encode()], dialect))
    assert found.texts.num_rows == len(texts) + 1
    assert found.texts.column("template_id").null_count == 0
    rows = found.texts.to_pylist()
    assert all((row["error"] is None) == (row["reason"] is None) for row in rows)
    assert rows[-1]["error"] is None


def test_missing_text_and_dialect_are_errors_of_their_row() -> None:
    assert inspect_texts(batch([None])).texts.to_pylist()[0]["reason"] == "empty"
    unknown = inspect_texts(batch([b"SELECT 1"], None)).texts.to_pylist()[0]
    assert unknown["reason"] == "unknown_dialect"


def test_a_namespace_may_be_a_text_or_missing() -> None:
    given = {"text_id": ["0"], "sql_text": ["SELECT 1 FROM t"], "dialect": ["duckdb"]}
    dotted = inspect_texts(pa.table({**given, "default_namespace": ["sales.eu"]}))
    assert dotted.texts.column("tables").to_pylist() == [["sales.eu.t"]]
    assert inspect_texts(pa.table(given)).texts.column("tables").to_pylist() == [["t"]]


def test_can_be_shipped_to_executors() -> None:
    assert pickle.loads(pickle.dumps(inspect_batches)) is inspect_batches  # noqa: S301 our own
