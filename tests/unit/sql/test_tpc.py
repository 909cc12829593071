"""All TPC-H and TPC-DS queries in three dialects, against DuckDB's own binder."""

from __future__ import annotations

import re

import pytest
import sqlglot

from lakehouse_core.sql import Inspection, Inspector
from tests.unit.sql.golden import FOLDER
from tests.unit.sql.tpc import Benchmark, Query, load

pytestmark = pytest.mark.duckdb

DIALECTS = ("duckdb", "trino", "spark")


@pytest.fixture(scope="module")
def tpch() -> Benchmark:
    return load("tpch")


@pytest.fixture(scope="module")
def tpcds() -> Benchmark:
    return load("tpcds")


def inspected(query: Query, dialect: str, schema: dict[str, list[str]] | None) -> Inspection:
    sql = query.sql
    if dialect != "duckdb":
        (sql,) = sqlglot.transpile(query.sql, read="duckdb", write=dialect)
    return Inspector().inspect(sql, dialect, schema=schema)


def wrong(benchmark: Benchmark, dialect: str, schema: dict[str, list[str]] | None) -> list[str]:
    """What differs from the oracle, one line per query."""
    lines = []
    for number, query in enumerate(benchmark.queries, 1):
        found = inspected(query, dialect, schema)
        columns = {(use.table, use.column) for use in found.columns}
        if found.error or set(found.tables) != query.tables or columns != query.columns:
            lines.append(
                f"{number}: {found.error} tables {set(found.tables) ^ query.tables} "
                f"columns {columns ^ query.columns}"
            )
    return lines


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("with_schema", [True, False])
def test_tpch_tables_and_columns_are_the_binders(
    tpch: Benchmark, dialect: str, *, with_schema: bool
) -> None:
    assert len(tpch.queries) == 22
    assert wrong(tpch, dialect, tpch.schema if with_schema else None) == []


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("with_schema", [True, False])
def test_tpcds_tables_and_columns_are_the_binders(
    tpcds: Benchmark, dialect: str, *, with_schema: bool
) -> None:
    assert len(tpcds.queries) == 99
    assert wrong(tpcds, dialect, tpcds.schema if with_schema else None) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tpch_roles_are_the_golden_ones(tpch: Benchmark, dialect: str) -> None:
    lines = (FOLDER / "tpch_roles.txt").read_text().splitlines()
    golden = [line for line in lines if not line.startswith("#")]
    found: dict[tuple[int, str], list[str]] = {}
    for number, query in enumerate(tpch.queries, 1):
        for use in inspected(query, dialect, None).columns:
            found.setdefault((number, f"{use.table}.{use.column}"), []).append(use.role)
    shown = [f"{number} {name}: {', '.join(roles)}" for (number, name), roles in found.items()]
    assert shown == golden


def test_literals_and_layout_of_tpc_queries_do_not_matter(
    tpch: Benchmark, tpcds: Benchmark
) -> None:
    """Another value for every number and date that is no position."""
    inspector = Inspector()
    for query in (*tpch.queries, *tpcds.queries):
        changed = re.sub(r"'(\d{4})-(\d\d)-(\d\d)'", "'2031-04-05'", query.sql)
        changed = re.sub(r"(?<=[=<>] )\d+(?=\s)", "77", changed).replace("\n", "\n\t")
        first = inspector.inspect(query.sql, "duckdb")
        assert inspector.inspect(changed, "duckdb") == first
        assert Inspector().inspect(changed, "duckdb") == first


def renamed(sql: str, real: set[str]) -> str:
    """The query with another name for every alias, CTE and column of an alias list."""
    tree = sqlglot.parse_one(sql, read="duckdb")
    named = [node.args.get("alias") for node in tree.find_all(sqlglot.exp.Alias)]
    for alias in tree.find_all(sqlglot.exp.TableAlias):
        named += [alias.this, *alias.columns]
    aliases = sorted({node.name.lower() for node in named if node is not None} - real)
    names = {alias: f"renamed_{number}" for number, alias in enumerate(reversed(aliases))}
    out, position = [], 0
    for token in sqlglot.tokenize(sql, read="duckdb"):
        if token.token_type.name != "STRING" and token.text.lower() in names:
            out += [sql[position : token.start], names[token.text.lower()]]
            position = token.end + 1
    return "".join(out) + sql[position:]


def test_alias_names_of_tpc_queries_do_not_matter(tpch: Benchmark, tpcds: Benchmark) -> None:
    changed = 0
    for benchmark in (tpch, tpcds):
        real = {*benchmark.schema, *(c for columns in benchmark.schema.values() for c in columns)}
        for query in benchmark.queries:
            other = renamed(query.sql, real)
            changed += other != query.sql
            found = Inspector().inspect(other, "duckdb")
            assert found == Inspector().inspect(query.sql, "duckdb")
    assert changed > 90


def test_every_query_has_its_own_template(tpch: Benchmark, tpcds: Benchmark) -> None:
    inspector = Inspector()
    queries = (*tpch.queries, *tpcds.queries)
    ids = {inspector.fingerprint(query.sql, "duckdb").template_id for query in queries}
    assert len(ids) == len(queries)
