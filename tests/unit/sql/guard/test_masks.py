"""What a role sees: the same as if the tables held nothing else, whatever the statement."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_core.sql.guard import Asker, Gate, Known, Policy, Relation, Rule, TableRule

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "secret"
RELATIONS = {
    "lake.demo.customers": Relation(("id", "name", "email", "region", "ssn")),
    "lake.demo.orders": Relation(("id", "customer_id", "total", "email")),
}
POLICY = Policy(
    role="analyst",
    denied_tables=("lake.hr.*",),
    rules=(
        TableRule(
            table="lake.demo.customers",
            denied=frozenset({"ssn"}),
            masks={"email": "substr(email, 1, 2) || '***'"},
            row_filter="region = 'EU'",
        ),
    ),
)
ANA = Asker(user="ana", catalog="lake", namespace=("demo",))
MASKED = (
    "SELECT id, name, substr(email, 1, 2) || '***' AS email, region FROM {} WHERE region = 'EU'"
)


@pytest.fixture(scope="module")
def lake() -> Iterator[duckdb.DuckDBPyConnection]:
    """The lake, and beside it one whose customers are what the role may see."""
    with duckdb.connect() as connection:
        for name in ("lake", "seen"):
            connection.execute(f"ATTACH ':memory:' AS {name}")
            connection.execute(f"CREATE SCHEMA {name}.demo")
        connection.execute(
            "CREATE TABLE lake.demo.customers AS SELECT i AS id, 'n' || i AS name, "
            "'u' || i || '@secret' || i AS email, CASE WHEN i % 3 = 0 THEN 'US' ELSE 'EU' END AS "
            "region, 'secret-ssn-' || i AS ssn FROM range(12) r(i)"
        )
        connection.execute(
            f"CREATE TABLE seen.demo.customers AS {MASKED.format('lake.demo.customers')}"
        )
        for name in ("lake", "seen"):
            connection.execute(
                f"CREATE TABLE {name}.demo.orders AS SELECT i AS id, i % 12 AS customer_id, "  # noqa: S608 fixed names
                "i * 10 AS total, 'o' || i AS email FROM range(30) r(i)"
            )
        yield connection


def guarded(sql: str, gate: Gate | None = None) -> str:
    verdict = (gate or Gate(POLICY, RELATIONS)).check(sql, "duckdb", ANA)
    assert verdict.allowed, verdict.reason
    return verdict.sql


def rows(lake: duckdb.DuckDBPyConnection, sql: str, catalog: str = "lake") -> Counter:
    lake.execute(f"USE {catalog}.demo")
    return Counter(map(repr, lake.execute(sql).fetchall()))


STATEMENTS = (
    "SELECT * FROM lake.demo.customers",
    "SELECT c.* FROM lake.demo.customers c",
    "SELECT customers.email FROM demo.customers",
    "SELECT demo.customers.email, lake.demo.customers.name FROM lake.demo.customers",
    "SELECT customers FROM customers",
    "SELECT email FROM customers WHERE email LIKE '%secret%'",
    "SELECT id FROM customers WHERE email LIKE 'u1%'",
    "SELECT count(*) FROM customers GROUP BY email HAVING max(email) LIKE 'u%'",
    "SELECT max(email), min(email), string_agg(email, ',') FROM customers",
    "SELECT name FROM customers ORDER BY email DESC LIMIT 3",
    "SELECT upper(email) || '!' AS e FROM customers AS x",
    "WITH c AS (SELECT * FROM customers) SELECT * FROM c",
    "WITH customers AS (SELECT * FROM customers) SELECT * FROM customers",
    "WITH a AS (SELECT * FROM customers), customers AS (SELECT 1 AS x) SELECT * FROM a, customers",
    "WITH x AS (SELECT email FROM customers UNION ALL SELECT email FROM orders) SELECT * FROM x",
    "SELECT * FROM (SELECT * FROM (SELECT * FROM customers) a) b",
    "SELECT * FROM customers a JOIN orders o ON o.customer_id = a.id",
    "SELECT * FROM customers JOIN orders USING (id)",
    "SELECT * FROM customers NATURAL JOIN orders",
    "SELECT * FROM customers NATURAL LEFT JOIN orders",
    "SELECT * FROM orders RIGHT JOIN customers USING (email)",
    "SELECT a.email, b.email FROM customers a JOIN customers b ON a.id = b.id",
    "SELECT o.id, (SELECT c.email FROM customers c WHERE c.id = o.customer_id) FROM orders o",
    "SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.email LIKE '%@%')",
    "SELECT o.id FROM orders o WHERE 'u1@secret1' IN (SELECT email FROM customers)",
    "SELECT email FROM customers EXCEPT SELECT email FROM orders",
    "SELECT email FROM customers INTERSECT SELECT email FROM customers",
    "SELECT * FROM orders o, LATERAL (SELECT email FROM customers c WHERE c.id = o.customer_id) l",
    "FROM customers",
    "FROM customers SELECT email WHERE id > 3",
    "SELECT * EXCLUDE (name) FROM customers",
    "SELECT COLUMNS('e.*') FROM customers",
    "SELECT row_number() OVER (PARTITION BY email ORDER BY id) FROM customers",
    "SELECT CASE WHEN email LIKE 'u1@%' THEN 1 ELSE 0 END FROM customers",
    "SELECT list(email) FROM customers",
    "SELECT {'e': email}.e FROM customers",
    'SELECT "email" FROM "LAKE"."Demo"."Customers"',
    "SELECT /* who */ email -- and\n FROM /* x */ customers /* y */ WHERE id = 1",
    "SELECT * FROM (customers c JOIN orders o ON c.id = o.id)",
    "(SELECT * FROM customers) UNION ALL (SELECT * FROM customers)",
    "SELECT (SELECT max(email) FROM customers) AS m",
    "SELECT DISTINCT name FROM customers, orders WHERE customers.id = orders.customer_id",
    "SELECT * FROM customers WHERE (id, email) IN (SELECT id, email FROM customers)",
)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_statement_gives_what_it_gives_where_nothing_else_is(
    lake: duckdb.DuckDBPyConnection, sql: str
) -> None:
    found = rows(lake, guarded(sql))
    elsewhere = sql.replace("lake.demo", "seen.demo").replace('"LAKE"', '"seen"')
    assert found == rows(lake, elsewhere, "seen")
    assert not any(SECRET in row for row in found)


@pytest.mark.parametrize("sql", STATEMENTS[:8])
def test_known_shape_is_masked_like_a_new_one(lake: duckdb.DuckDBPyConnection, sql: str) -> None:
    gate = Gate(POLICY, RELATIONS)
    first = guarded(f"{sql} -- {1}", gate)
    again = guarded(f"/* other */ {sql}", gate)
    assert rows(lake, first) == rows(lake, again)


def test_other_literals_of_a_known_shape_are_the_ones_sent() -> None:
    gate = Gate(POLICY, RELATIONS)
    texts = [
        guarded(f"SELECT email, 'v{n}' AS v FROM customers WHERE id = {n}", gate)  # noqa: S608 fixed
        for n in (1, 27)
    ]
    assert texts[0].replace("'v1'", "'v27'").replace("id = 1", "id = 27") == texts[1]


TABLES = st.sampled_from(["customers", "lake.demo.customers", "demo.customers", "Customers"])
EXPRESSIONS = st.sampled_from(
    ["email", "x.email", "x.*", "*", "upper(email)", "x", "length(email)"]
)
CONDITIONS = st.sampled_from(
    ["true", "email LIKE '%@secret1%'", "x.email > 'u'", "region <> 'EU'", "id IN (0, 1, 2, 3)"]
)
WRAPPERS = st.lists(
    st.sampled_from(
        [
            "SELECT * FROM ({q}) AS w",
            "WITH w AS ({q}) SELECT * FROM w",
            "WITH customers AS ({q}) SELECT * FROM customers",
            "({q}) UNION ALL ({q})",
            "SELECT w.* FROM orders o LEFT JOIN ({q}) AS w ON true",
            "SELECT o.id, w.* FROM orders o, LATERAL ({q}) AS w",
            "({q}) EXCEPT ALL ({q} LIMIT 2)",
            "SELECT count(*), max(w) FROM ({q}) AS w",
        ]
    ),
    max_size=3,
)


@pytest.mark.slow
@given(table=TABLES, item=EXPRESSIONS, condition=CONDITIONS, wrappers=WRAPPERS)
@settings(max_examples=60, deadline=None)
def test_no_secret_comes_out_of_any_statement(
    lake: duckdb.DuckDBPyConnection, table: str, item: str, condition: str, wrappers: list[str]
) -> None:
    sql = f"SELECT {item} FROM {table} AS x WHERE {condition}"  # noqa: S608 what is tested
    for wrapper in wrappers:
        sql = wrapper.format(q=sql)
    verdict = Gate(POLICY, RELATIONS).check(sql, "duckdb", ANA)
    assert verdict.allowed, (sql, verdict.reason)
    assert not any(SECRET in row for row in rows(lake, verdict.sql))


def test_without_the_guard_the_secrets_do_come_out(lake: duckdb.DuckDBPyConnection) -> None:
    assert any(SECRET in row for row in rows(lake, "SELECT * FROM customers"))


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("SELECT ssn FROM customers", Rule.COLUMN_GRANT),
        ("SELECT c.ssn FROM customers c", Rule.COLUMN_GRANT),
        ("SELECT 1 FROM customers WHERE ssn = 'x'", Rule.COLUMN_GRANT),
        ("SELECT * FROM lake.hr.pay", Rule.UNKNOWN_TABLE),
        ("SELECT * FROM nothing", Rule.UNKNOWN_TABLE),
        ("SELECT * FROM customers TABLESAMPLE 10%", Rule.MASK),
        (
            "WITH RECURSIVE customers AS (SELECT * FROM customers) SELECT * FROM customers",
            Rule.MASK,
        ),
    ],
)
def test_what_cannot_be_shown_is_refused(sql: str, rule: Rule) -> None:
    verdict = Gate(POLICY, RELATIONS).check(sql, "duckdb", ANA)
    assert (verdict.allowed, verdict.rule) == (False, rule), verdict


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        ('SELECT * FROM lake.demo."customers$files"', "trino"),
        ('SELECT * FROM lake.demo."customers$partitions"', "trino"),
        ("SELECT * FROM lake.demo.customers.files", "spark"),
        ("SELECT * FROM lake.demo.customers.branch_main", "spark"),
        ("SELECT * FROM lake.demo.customers.tag_x", "spark"),
        ("SELECT * FROM lake.demo.customers VERSION AS OF 1", "spark"),
        ("SELECT * FROM lake.demo.customers FOR VERSION AS OF 1", "trino"),
        ("SUMMARIZE lake.demo.customers", "duckdb"),
    ],
)
def test_the_back_doors_of_a_masked_table_are_shut(sql: str, dialect: str) -> None:
    verdict = Gate(POLICY, RELATIONS).check(sql, dialect, ANA)
    assert not verdict.allowed, verdict.sql


def test_table_is_masked_also_when_its_name_is_cut_short_and_nobody_knows_the_session() -> None:
    policy = Policy(role="analyst", rules=POLICY.rules)
    gate = Gate(policy, RELATIONS, known=Known(is_complete=False))
    verdict = gate.check("SELECT email FROM customers", "trino", Asker())
    assert (verdict.allowed, verdict.rule) == (False, Rule.MASK)  # its columns are not known


def test_row_filter_names_the_user_and_is_not_shared_between_users() -> None:
    rule = TableRule(table="lake.demo.orders", row_filter="email = :user")
    gate = Gate(Policy(role="r", rules=(rule,)), RELATIONS)
    sql = "SELECT * FROM lake.demo.orders"
    texts = {user: gate.check(sql, "trino", Asker(user=user)).sql for user in ("ana", "o'neill")}
    assert "= 'ana'" in texts["ana"]
    assert "= 'o''neill'" in texts["o'neill"]
    assert not gate.check(sql, "trino", Asker()).allowed


def test_user_name_cannot_carry_a_setting_into_spark() -> None:
    rule = TableRule(table="lake.demo.orders", row_filter="email = :user")
    gate = Gate(Policy(role="r", rules=(rule,)), RELATIONS)
    verdict = gate.check("SELECT * FROM lake.demo.orders", "spark", Asker(user="${env:HOME}"))
    assert not verdict.allowed


@pytest.mark.parametrize("dialect", ["trino", "spark", "duckdb", "snowflake", "athena"])
@pytest.mark.parametrize("mask", ["null", "redacted", "hash", "substr(email, 1, 1)"])
def test_every_mask_is_said_in_every_dialect(dialect: str, mask: str) -> None:
    rule = TableRule(table="lake.demo.orders", masks={"email": mask})
    verdict = Gate(Policy(role="r", rules=(rule,)), RELATIONS).check(
        "SELECT email FROM lake.demo.orders", dialect
    )
    assert verdict.allowed, verdict.reason
    assert "AS lakehelm_row" in verdict.sql


# --- views ---------------------------------------------------------------------------------------

VIEWS = {
    **RELATIONS,
    "lake.demo.people": Relation(("id", "email"), "SELECT id, email FROM customers", "duckdb"),
    "lake.demo.europeans": Relation(("id", "email"), "SELECT * FROM lake.demo.people", "trino"),
    "lake.demo.totals": Relation(("total",), "SELECT total FROM lake.demo.orders", "trino"),
    "lake.demo.strange": Relation(("x",), "SELECT upper(email)[1] AS x FROM customers", "duckdb"),
    "lake.demo.endless": Relation(("x",), "SELECT * FROM lake.demo.endless", "duckdb"),
    "lake.demo.broken": Relation(("x",), "SELECT FROM", "duckdb"),
    "lake.demo.foreign": Relation(("x",), "SELECT 1 AS x", "klingon"),
}


@pytest.mark.parametrize("view", ["people", "europeans", "lake.demo.europeans"])
def test_secrets_do_not_come_out_through_views(lake: duckdb.DuckDBPyConnection, view: str) -> None:
    gate = Gate(POLICY, VIEWS)
    found = rows(lake, guarded(f"SELECT * FROM {view} AS v", gate))  # noqa: S608 fixed
    assert found == rows(lake, "SELECT id, email FROM seen.demo.customers")


def test_view_that_shows_nothing_hidden_is_left_to_the_engine() -> None:
    sql = "SELECT * FROM lake.demo.totals"
    assert guarded(sql, Gate(POLICY, VIEWS)) == sql


@pytest.mark.parametrize("view", ["endless", "broken", "foreign"])
def test_view_that_cannot_be_judged_is_refused(view: str) -> None:
    sql = f"SELECT * FROM lake.demo.{view}"  # noqa: S608 fixed names
    verdict = Gate(POLICY, VIEWS).check(sql, "duckdb", ANA)
    assert not verdict.allowed


def test_view_that_cannot_be_said_for_sure_in_the_engines_dialect_is_refused() -> None:
    verdict = Gate(POLICY, VIEWS).check("SELECT * FROM lake.demo.strange", "trino", ANA)
    assert (verdict.allowed, verdict.rule) == (False, Rule.MASK)


def test_mask_of_the_view_itself_is_laid_over_those_of_its_tables() -> None:
    rule = TableRule(table="lake.demo.people", masks={"id": "null"})
    gate = Gate(Policy(role="r", rules=(rule, *POLICY.rules)), VIEWS)
    text = guarded("SELECT * FROM lake.demo.people", gate)
    assert "CASE WHEN 1 = 0" in text
    assert "'***'" in text
