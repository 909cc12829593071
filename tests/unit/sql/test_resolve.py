"""Which table a column belongs to: schema, proof, convention, and staying open."""

from __future__ import annotations

import pytest

from lakehouse_core.sql import ColumnUse, Inspector, Schema, inspect
from lakehouse_core.sql.convention import owners

JOIN = "SELECT x, y FROM a JOIN b ON a.id = b.id WHERE z = 1"
SCHEMA = {"a": ["id", "x"], "b": ["id", "y", "z"]}


def pairs(sql: str, **options: object) -> set[tuple[str, str]]:
    found = Inspector().inspect(sql, "duckdb", **options)  # type: ignore[arg-type]
    return {(use.table, use.column) for use in found.columns}


def test_schema_settles_unqualified_columns() -> None:
    assert pairs(JOIN) == {("", "x"), ("", "y"), ("", "z"), ("a", "id"), ("b", "id")}
    assert pairs(JOIN, schema=SCHEMA) == {
        ("a", "x"),
        ("b", "y"),
        ("b", "z"),
        ("a", "id"),
        ("b", "id"),
    }


def test_schema_of_one_table_settles_by_elimination() -> None:
    found = pairs(JOIN, schema={"a": ["id", "x"]})
    assert found >= {("a", "x"), ("b", "y"), ("b", "z")}


def test_schema_may_give_types() -> None:
    assert ("a", "x") in pairs(JOIN, schema={"a": {"id": "INT", "x": "INT"}, "b": {"id": "INT"}})


def test_schema_finds_the_outer_table_of_a_subquery() -> None:
    sql = "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE y = x)"
    assert pairs(sql, schema=SCHEMA) == {("a", "id"), ("a", "x"), ("b", "y")}


def test_schema_expands_a_star() -> None:
    assert pairs("SELECT * FROM a", schema=SCHEMA) == {("a", "id"), ("a", "x")}


def test_schema_prefers_a_column_to_an_alias() -> None:
    sql = "SELECT upper(x) AS id, count(*) FROM a GROUP BY id"
    roles = {(use.column, use.role) for use in inspect(sql, "duckdb", schema=SCHEMA).columns}
    assert roles == {("x", "project"), ("id", "group")}


def test_alias_stands_where_no_column_can() -> None:
    sql = "SELECT x + 1 AS more FROM a WHERE more > 3"
    found = inspect(sql, "duckdb", schema=SCHEMA).columns
    assert found == (ColumnUse("a", "x", "filter_range"), ColumnUse("a", "x", "project"))


@pytest.mark.parametrize("name", ["lake.s.a", "s.a", "a", "LAKE.S.A"])
def test_schema_finds_tables_by_the_end_of_their_name(name: str) -> None:
    schema = Schema({name: ["x"], "lake.s.b": ["y"]})
    sql = "SELECT x, y FROM lake.s.a CROSS JOIN s.b"
    assert pairs(sql, schema=schema) == {("lake.s.a", "x"), ("s.b", "y")}


def test_ambiguous_name_is_not_looked_up() -> None:
    schema = Schema({"r.a": ["x"], "s.a": ["y"]})
    assert schema.columns(("a",)) is None
    assert schema.columns(("s", "a")) == ("y",)


def test_session_completes_table_names() -> None:
    found = inspect(
        "SELECT a.x, b.y, c.z FROM a, s.b, other.r.c",
        "trino",
        default_catalog="lake",
        default_namespace=("demo",),
    )
    assert found.tables == ("lake.demo.a", "lake.s.b", "other.r.c")
    assert found.columns[0] == ColumnUse("lake.demo.a", "x", "project")


def test_catalog_alone_does_not_complete_a_bare_name() -> None:
    found = inspect("SELECT 1 FROM a, s.b", "trino", default_catalog="lake")
    assert found.tables == ("a", "lake.s.b")


def test_session_and_schema_are_part_of_what_is_remembered() -> None:
    inspector = Inspector()
    sql = "SELECT x FROM a CROSS JOIN b"
    asked: list[dict[str, object]] = [
        {},
        {"default_namespace": ("demo",)},
        {"schema": {"a": ["x"], "b": ["y"]}},
        {"schema": {"a": ["y"], "b": ["x"]}},
    ]
    first = [inspector.inspect(sql, "trino", **options) for options in asked]  # type: ignore[arg-type]
    again = [inspector.inspect(sql, "trino", **options) for options in asked]  # type: ignore[arg-type]
    assert first == again
    assert len({(found.tables, found.columns) for found in first}) == 4
    assert len({found.template_id for found in first}) == 1


@pytest.mark.parametrize(
    ("names", "tables", "expected"),
    [
        (["c_name", "o_total"], ["customer", "orders"], {"c": "customer", "o": "orders"}),
        (
            ["ss_qty", "s_name", "sr_qty"],
            ["store_sales", "store", "store_returns"],
            {"ss": "store_sales", "s": "store", "sr": "store_returns"},
        ),
        (["ps_qty", "p_name"], ["partsupp", "part"], {"ps": "partsupp", "p": "part"}),
        (
            ["ws_qty", "web_site_sk", "web_name"],
            ["web_sales", "web_site"],
            {"ws": "web_sales", "web": "web_site"},
        ),
        (["c_name", "total"], ["customer", "orders"], {}),  # a name without a prefix
        (["x_name", "o_total"], ["customer", "orders"], {}),  # a prefix of no table
        (["o_total", "o_name"], ["orders", "offers"], {}),  # a prefix of two tables
        (["user_id", "order_id"], ["users", "orders"], {}),  # foreign keys
        (["a_x", "b_y", "c_z"], ["apples", "bananas"], {}),  # more prefixes than tables
    ],
)
def test_prefix_convention_explains_everything_or_nothing(
    names: list[str], tables: list[str], expected: dict[str, str]
) -> None:
    found = owners(names, [(table,) for table in tables], {})
    assert {prefix: table[0] for prefix, table in found.items()} == expected


def test_proof_overrules_an_abbreviation() -> None:
    tables = [("orders",), ("offers",)]
    assert owners(["o_total", "f_x"], tables, {"o_total": {("offers",)}}) == {}
    proven = {"o_total": {("offers",)}, "x_id": {("orders",)}}
    assert owners(["o_total", "x_id"], tables, proven) == {"o": ("offers",), "x": ("orders",)}
