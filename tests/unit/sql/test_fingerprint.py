"""Properties of the fingerprint: what it must not see, and what it must."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.domain.query import StatementKind
from lakehouse_core.sql import Inspector
from tests.unit.sql.corpus import STATEMENTS
from tests.unit.sql.mutation import mutate

if TYPE_CHECKING:
    from random import Random

NAMES = st.from_regex(r"[a-z][a-z_]{0,6}x", fullmatch=True)  # ends in x: never a keyword
SOURCE = (
    "WITH {cte} AS (SELECT o_custkey AS {key}, sum(o_totalprice) AS {total} FROM orders "
    "WHERE o_orderdate > DATE '{day}' GROUP BY o_custkey) "
    "SELECT {c}.c_name AS {name}, {x}.{total} FROM customer {c} JOIN {cte} AS {x} "
    "ON {c}.c_custkey = {x}.{key} WHERE {total} > {n} ORDER BY {name}, {x}.{total} DESC"
)

IN_LIST = "SELECT a FROM t WHERE b {operator} ({items}) AND c = 1"
ROWS = "INSERT INTO t VALUES {rows}"
INTERVAL = "SELECT a FROM t WHERE b > INTERVAL '{text}'"


def template(sql: str, dialect: str = "trino") -> str:
    return Inspector().fingerprint(sql, dialect).template


@given(st.sampled_from(STATEMENTS), st.randoms(use_true_random=False))
def test_literals_layout_comments_and_case_do_not_matter(
    statement: tuple[str, str], random: Random
) -> None:
    dialect, sql = statement
    changed = mutate(sql, dialect, random)
    assert template(changed, dialect) == template(sql, dialect)


@pytest.mark.slow
@given(
    st.lists(NAMES, min_size=6, max_size=6, unique=True),
    st.lists(NAMES, min_size=6, max_size=6, unique=True),
)
def test_alias_names_do_not_matter(first: list[str], second: list[str]) -> None:
    def text(names: list[str]) -> str:
        roles = dict(zip(("cte", "key", "total", "c", "x", "name"), names, strict=True))
        return SOURCE.format(**roles, day="2024-01-01", n=len(names[0]))

    assert template(text(first)) == template(text(second))


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from(["IN", "NOT IN"]))
def test_length_of_in_lists_does_not_matter(first: int, second: int, operator: str) -> None:
    def text(length: int) -> str:
        items = ", ".join(f"'{i}'" if i % 2 else f"-{i}" for i in range(length))
        return IN_LIST.format(operator=operator, items=items)

    assert template(text(first)) == template(text(second))


@given(st.integers(1, 30), st.integers(1, 30))
def test_number_of_rows_does_not_matter(first: int, second: int) -> None:
    def text(length: int) -> str:
        return ROWS.format(rows=",".join(f"({i}, 'x', NULL)" for i in range(length)))

    assert template(text(first)) == template(text(second))


BASE = "SELECT a, sum(b) FROM s.t JOIN u ON t.k = u.k WHERE c = 1 AND d > 2 GROUP BY a ORDER BY a"


@pytest.mark.parametrize(
    "other",
    [
        BASE.replace("s.t", "r.t"),
        BASE.replace(" u ", " v ").replace("u.k", "v.k"),
        BASE.replace("sum(b)", "sum(e)"),
        BASE.replace("sum(b)", "avg(b)"),
        BASE.replace("c = 1", "c <> 1"),
        BASE.replace("d > 2", "d >= 2"),
        BASE.replace("d > 2", "d + 1 > 2"),
        BASE.replace(" AND d", " OR d"),
        BASE.replace("JOIN", "LEFT JOIN"),
        BASE.replace("c = 1", "e = 1"),
        BASE.replace("c = 1", "c IS NULL"),
        BASE.replace("c = 1", "c IN (1)"),
        BASE.replace("ORDER BY a", "ORDER BY a DESC"),
        BASE.replace("ORDER BY a", "ORDER BY 2"),
        BASE.replace("GROUP BY a", "GROUP BY k"),
        BASE.replace("SELECT", "SELECT DISTINCT"),
        BASE + " LIMIT 1",
        f"EXPLAIN {BASE}",
    ],
)
def test_tables_columns_and_operators_matter(other: str) -> None:
    assert template(other) != template(BASE)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SELECT a FROM t FOR VERSION AS OF 1", "SELECT a FROM t FOR VERSION AS OF 2"),
        ("SELECT a, b FROM t ORDER BY 1", "SELECT a, b FROM t ORDER BY 2"),
        (
            "SELECT a FROM t WHERE b > INTERVAL '1' DAY",
            "SELECT a FROM t WHERE b > INTERVAL '1' HOUR",
        ),
        ("EXECUTE IMMEDIATE 'SELECT 1'", "EXECUTE IMMEDIATE 'DROP TABLE t'"),
        ("SELECT * FROM TABLE(f('a'))", "SELECT * FROM TABLE(f('b'))"),
        ('SELECT a FROM t WHERE "x y" = 1', 'SELECT a FROM t WHERE "x z" = 1'),
    ],
)
def test_literals_with_meaning_matter(first: str, second: str) -> None:
    inspector = Inspector()  # shared, so that the hot path would be caught mixing them up
    found = [inspector.fingerprint(sql, "trino").template for sql in (first, second, first)]
    assert found[0] == found[2] != found[1]


def test_interval_strings_differ_by_unit_not_by_number() -> None:
    days, more_days, hours = (
        template(INTERVAL.format(text=text), "duckdb") for text in ("3 days", "14 days", "3 hours")
    )
    assert days == more_days != hours


def test_template_is_the_same_in_every_dialect_that_writes_it_the_same() -> None:
    sql = "SELECT a.x AS y FROM s.a JOIN b ON a.k = b.k WHERE z = 5"
    ids = {
        Inspector().fingerprint(sql, dialect).template_id
        for dialect in ("trino", "spark", "duckdb", "snowflake", "athena")
    }
    assert len(ids) == 1


def test_dialect_decides_what_a_quote_means() -> None:
    sql = 'SELECT a FROM t WHERE b = "x"'
    assert template(sql, "spark") == "SELECT a FROM t WHERE b = ?"
    assert template(sql, "trino") == "SELECT a FROM t WHERE b = x"


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT 1", StatementKind.SELECT),
        ("WITH a AS (SELECT 1) SELECT * FROM a", StatementKind.SELECT),
        ("(SELECT 1) UNION SELECT 2", StatementKind.SELECT),
        ("VALUES (1)", StatementKind.SELECT),
        ("INSERT INTO t SELECT 1", StatementKind.INSERT),
        ("UPDATE t SET a = 1", StatementKind.UPDATE),
        ("DELETE FROM t", StatementKind.DELETE),
        ("TRUNCATE TABLE t", StatementKind.DELETE),
        (
            "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
            StatementKind.MERGE,
        ),
        ("CREATE TABLE t (a INT)", StatementKind.CREATE),
        ("CREATE VIEW v AS SELECT 1", StatementKind.CREATE),
        ("ALTER TABLE t ADD COLUMN a INT", StatementKind.ALTER),
        ("ALTER TABLE t EXECUTE optimize", StatementKind.ALTER),
        ("DROP TABLE t", StatementKind.DROP),
        ("CALL lake.system.f(1)", StatementKind.CALL),
        ("EXECUTE IMMEDIATE 'x'", StatementKind.CALL),
        ("EXPLAIN ANALYZE SELECT 1", StatementKind.EXPLAIN),
        ("DESCRIBE t", StatementKind.DESCRIBE),
        ("SHOW TABLES", StatementKind.DESCRIBE),
        ("SET SESSION a = 1", StatementKind.SESSION),
        ("USE lake.demo", StatementKind.SESSION),
        ("START TRANSACTION", StatementKind.SESSION),
        ("PREPARE p FROM SELECT 1", StatementKind.SESSION),
        ("GRANT SELECT ON t TO u", StatementKind.OTHER),
    ],
)
def test_kind_of_statement(sql: str, kind: StatementKind) -> None:
    found = Inspector().fingerprint(sql, "trino")
    assert (found.kind, found.error) == (kind, None)
