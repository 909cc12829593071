# ruff: noqa: S608 texts for a parser
"""The gate: limits, required filters, functions by configuration, writers, memory, bad input."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_core.sql.guard import Asker, Gate, Known, Policy, Relation, Rule, TableRule, Verdict

WRITER = Policy(role="engineer", statements=frozenset({"read", "write", "define"}))


def check(sql: str, dialect: str = "trino", **policy: Any) -> Verdict:
    return Gate(Policy(role="analyst", **policy)).check(sql, dialect)


# --- row limit -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "sent"),
    [
        ("SELECT a FROM t", "SELECT a FROM t\nLIMIT 10"),
        ("SELECT a FROM t;", "SELECT a FROM t\nLIMIT 10;"),
        ("SELECT a FROM t -- no; limit", "SELECT a FROM t\nLIMIT 10 -- no; limit"),
        ("SELECT a FROM t LIMIT 5", "SELECT a FROM t LIMIT 5"),
        ("SELECT a FROM t LIMIT 500 -- x", "SELECT a FROM t LIMIT 10 -- x"),
        ("SELECT a FROM t LIMIT 99999999999999999999", "SELECT a FROM t LIMIT 10"),
        ("SELECT a FROM t FETCH FIRST 50 ROWS ONLY", "SELECT a FROM t FETCH FIRST 10 ROWS ONLY"),
        ("(SELECT a FROM t LIMIT 50)", "(SELECT a FROM t LIMIT 50)\nLIMIT 10"),
        ("SELECT 1 UNION SELECT 2", "SELECT 1 UNION SELECT 2\nLIMIT 10"),
        ("VALUES (1), (2), (3)", "VALUES (1), (2), (3)\nLIMIT 10"),
        ("SELECT a FROM t WHERE a IN (1, 2, 3)", "SELECT a FROM t WHERE a IN (1, 2, 3)\nLIMIT 10"),
        (
            "SELECT a FROM t OFFSET 5",
            "SELECT * FROM (SELECT a FROM t OFFSET 5\n) AS lakehelm_rows LIMIT 10",
        ),
        ("EXPLAIN SELECT a FROM t", "EXPLAIN SELECT a FROM t"),
        ("SHOW TABLES", "SHOW TABLES"),
    ],
)
def test_result_is_cut_to_the_row_limit(sql: str, sent: str) -> None:
    gate = Gate(Policy(role="analyst", max_rows=10))
    assert gate.check(sql, "trino").sql == sent


@given(wanted=st.lists(st.integers(0, 40), min_size=2, max_size=4))
@settings(deadline=None)
def test_known_shape_is_cut_like_a_new_one(wanted: list[int]) -> None:
    gate = Gate(Policy(role="analyst", max_rows=20))
    for limit in wanted:
        sent = gate.check(f"SELECT a FROM t WHERE b = {limit} LIMIT {limit}", "trino").sql
        assert sent == f"SELECT a FROM t WHERE b = {limit} LIMIT {min(limit, 20)}"


# --- byte limit ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("estimated", "allowed"), [(99, True), (100, True), (101, False)])
def test_statement_that_would_read_too_much_is_refused(estimated: int, allowed: bool) -> None:
    gate = Gate(Policy(role="analyst", max_bytes=100))
    verdict = gate.check("SELECT a FROM t", "trino", estimated_bytes=estimated)
    assert verdict.allowed is allowed
    assert allowed or verdict.rule == Rule.BYTE_LIMIT


def test_statement_nobody_has_estimated_is_refused_where_bytes_are_limited() -> None:
    assert check("SELECT a FROM t", max_bytes=100).rule == Rule.BYTE_LIMIT


def test_what_reads_no_rows_needs_no_estimate() -> None:
    gate = Gate(Policy(role="analyst", max_bytes=100))
    for sql in ("SHOW TABLES", "DESCRIBE lake.demo.t", "EXPLAIN SELECT a FROM lake.demo.t"):
        for _ in range(2):  # new, then known
            assert gate.check(sql, "trino").allowed


# --- required filter -----------------------------------------------------------------------------

FILTERED = (TableRule(table="lake.demo.events", required_filter=("day", "hour")),)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM lake.demo.events WHERE day = DATE '2026-01-01'",
        "SELECT a FROM lake.demo.events e WHERE e.day > DATE '2026-01-01' AND b = 1",
        "SELECT a FROM lake.demo.events WHERE hour IN (1, 2, 3)",
        "SELECT a FROM t JOIN lake.demo.events e ON e.id = t.id AND e.day = current_date",
        "WITH e AS (SELECT * FROM lake.demo.events WHERE day >= DATE '2026-01-01') SELECT * FROM e",
        "SELECT a FROM lake.demo.other",
    ],
)
def test_filtered_table_may_be_read(sql: str) -> None:
    assert check(sql, rules=FILTERED).allowed


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM lake.demo.events",
        "SELECT a FROM lake.demo.events WHERE b = 1",
        "SELECT a FROM lake.demo.events WHERE day = day",
        "SELECT a FROM lake.demo.events WHERE day IS NOT NULL",
        "SELECT a FROM lake.demo.events WHERE day = 1 OR b = 2",
        "SELECT a FROM lake.demo.events WHERE NOT (day = 1)",
        "SELECT a FROM lake.demo.events e JOIN t ON t.id = e.id WHERE t.day = 1",
        "SELECT a FROM lake.demo.events e JOIN t ON t.id = e.id WHERE day = 1",
        "SELECT a FROM t LEFT JOIN lake.demo.events e ON e.day = 1",
        "SELECT * FROM lake.demo.events a JOIN lake.demo.events b ON a.id = b.id WHERE a.day = 1",
        "SELECT a FROM lake.demo.events WHERE day IN (SELECT day FROM t)",
        "SELECT (SELECT max(a) FROM lake.demo.events) FROM t WHERE day = 1",
        "SELECT a FROM events WHERE b = 1",
    ],
)
def test_table_without_its_filter_is_refused(sql: str) -> None:
    verdict = check(sql, rules=FILTERED)
    assert verdict.rule == Rule.REQUIRED_FILTER
    assert "day or hour" in verdict.reason


# --- functions -----------------------------------------------------------------------------------


def test_functions_are_forbidden_and_allowed_by_configuration() -> None:
    assert check("SELECT sha256(a), my_udf(b) FROM t").rule == Rule.FUNCTION
    assert check("SELECT my_udf(b) FROM t", functions=frozenset({"my_udf"})).allowed
    forbidden = frozenset({"md5", "approx_distinct", "regexp_like"})
    for sql in ("md5(a)", '"MD5" /* x */ (a)', "approx_distinct(a)", "REGEXP_LIKE(a, 'x')"):
        verdict = check(f"SELECT {sql} FROM t", forbidden_functions=forbidden)
        assert (verdict.allowed, verdict.rule) == (False, Rule.FUNCTION), sql


# --- grants --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "allowed"),
    [
        ("SELECT * FROM lake.demo.t", True),
        ("SELECT * FROM Lake.DEMO.T", True),
        ("SELECT * FROM lake.demo.secret_plans", False),
        ("SELECT * FROM lake.hr.pay", False),
        ("SELECT * FROM other.demo.t", False),
        ("SELECT * FROM t", False),
        ("SELECT * FROM lake.demo.t WHERE a IN (SELECT b FROM lake.hr.pay)", False),
        ("WITH t AS (SELECT * FROM lake.hr.pay) SELECT * FROM t", False),
        ("DESCRIBE lake.hr.pay", False),
        ("DESCRIBE lake.demo.t", True),
        ("SHOW COLUMNS FROM lake.hr.pay", False),
        ('SELECT * FROM lake.hr."pay$files"', False),
    ],
)
def test_tables_are_granted_by_pattern(sql: str, allowed: bool) -> None:
    verdict = check(sql, tables=("lake.demo.*",), denied_tables=("*.secret_*",))
    assert verdict.allowed is allowed, verdict
    assert allowed or verdict.rule == Rule.TABLE_GRANT


def test_session_completes_names_before_they_are_looked_up() -> None:
    gate = Gate(Policy(role="r", tables=("lake.demo.*",)), {"lake.demo.t": Relation(("a",))})
    demo = Asker(catalog="lake", namespace=("demo",))
    assert gate.check("SELECT a FROM t", "trino", demo).allowed
    assert gate.check("SELECT a FROM demo.t", "trino", Asker(catalog="lake")).allowed
    assert not gate.check("SELECT a FROM t", "trino").allowed
    assert not gate.check("SELECT a FROM u", "trino", demo).allowed
    assert not gate.check(
        "SELECT a FROM t", "trino", Asker(catalog="lake", namespace=("x",))
    ).allowed


def test_file_formats_and_system_tables_are_not_hidden_by_a_session_or_another_dialect() -> None:
    gate = Gate(Policy(role="r"))
    session = Asker(catalog="lake", namespace=("demo",))
    assert gate.check("SELECT * FROM parquet.data", "trino", session).allowed
    assert gate.check("SELECT * FROM parquet.data", "spark", session).rule == Rule.FILE
    assert gate.check("SELECT * FROM pg_tables", "duckdb", session).rule == Rule.SYSTEM_TABLE


# --- writers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO lake.demo.t SELECT a FROM lake.demo.u",
        "DELETE FROM lake.demo.t WHERE a = 1",
        "UPDATE lake.demo.t SET a = 1 WHERE b = 2",
        "MERGE INTO lake.demo.t USING lake.demo.u ON t.id = u.id WHEN MATCHED THEN DELETE",
        "CREATE TABLE lake.demo.x AS SELECT 1 AS a",
        "DROP TABLE IF EXISTS lake.demo.x",
        "CREATE TABLE lake.demo.x (a bigint NOT NULL, b varchar)",
        "CREATE TABLE lake.demo.x WITH (format = 'PARQUET') AS SELECT 1 AS a",
        "CREATE OR REPLACE VIEW lake.demo.v SECURITY DEFINER AS SELECT 1 AS a",
        "CREATE SCHEMA IF NOT EXISTS lake.dbt",
        "DROP SCHEMA lake.dbt",
        "ALTER TABLE lake.demo.x RENAME TO lake.demo.y",
        "ALTER TABLE lake.demo.x ADD COLUMN z bigint",
        "ALTER TABLE lake.demo.x RENAME COLUMN z TO y",
        "COMMENT ON TABLE lake.demo.x IS 'why'",
    ],
)
def test_role_that_writes_may_write(sql: str) -> None:
    assert Gate(WRITER).check(sql, "trino").allowed
    assert check(sql).rule == Rule.READ_ONLY


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        ("CREATE TABLE x USING text LOCATION '/etc'", "spark"),
        ("CREATE TABLE x USING csv OPTIONS (path '/etc/passwd')", "spark"),
        ("CREATE FUNCTION f() RETURNS bigint RETURN 1", "trino"),
        ("CREATE MACRO f(x) AS x", "duckdb"),
        ("INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT 1", "spark"),
        ("INSERT INTO lake.demo.t SELECT * FROM text.`/etc/passwd`", "spark"),
        ("COPY lake.demo.t TO '/tmp/x'", "duckdb"),
        ("CALL lake.system.rollback_to_snapshot('demo', 't', 1)", "trino"),
        ("CREATE TABLE lake.demo.x (a bigint) WITH (location = 's3://elsewhere')", "trino"),
        ("ALTER TABLE lake.demo.t SET PROPERTIES x = 1", "trino"),
        ("ALTER TABLE lake.demo.t SET LOCATION '/etc'", "spark"),
        ("CREATE TABLE lake.demo.x USING parquet AS SELECT 1 AS a", "spark"),
        ("CREATE INDEX i ON lake.demo.t (a)", "duckdb"),
        ("DROP FUNCTION f", "spark"),
        ("ALTER TABLE lake.demo.t EXECUTE optimize", "trino"),
        ("INSERT INTO lake.demo.t SELECT getenv('HOME')", "duckdb"),
    ],
)
def test_role_that_writes_may_still_not_reach_out(sql: str, dialect: str) -> None:
    assert not Gate(WRITER).check(sql, dialect).allowed


def test_what_is_defined_need_not_exist_but_must_be_granted() -> None:
    policy = Policy(
        role="e", statements=frozenset({"read", "define"}), tables=("lake.dbt*", "lake.demo.*")
    )
    gate = Gate(policy, {}, known=Known(catalogs=frozenset({"lake"})))
    assert gate.check("CREATE TABLE lake.dbt.x AS SELECT 1 AS a", "trino").allowed
    assert gate.check("CREATE SCHEMA lake.dbt", "trino").allowed
    assert gate.check("ALTER TABLE lake.dbt.x RENAME TO lake.dbt.y", "trino").allowed
    for sql in (
        "CREATE TABLE lake.hr.x AS SELECT 1 AS a",
        "CREATE SCHEMA lake.hr",
        "DROP SCHEMA lake.hr",
        "ALTER TABLE lake.dbt.x RENAME TO lake.hr.y",
    ):
        assert gate.check(sql, "trino").rule == Rule.TABLE_GRANT, sql


def test_table_of_another_catalog_is_refused() -> None:
    gate = Gate(Policy(role="r"), known=Known(catalogs=frozenset({"lake"})))
    assert gate.check("SELECT * FROM lake.demo.t", "trino").allowed
    assert gate.check("SELECT * FROM pg.public.users", "trino").rule == Rule.UNKNOWN_TABLE


def test_table_that_hides_something_is_not_written_and_is_read_masked() -> None:
    rule = TableRule(table="lake.demo.c", masks={"email": "redacted"})
    policy = Policy(role="e", statements=frozenset({"read", "write"}), rules=(rule,))
    gate = Gate(policy, {"lake.demo.c": Relation(("email",)), "lake.demo.t": Relation(("a",))})
    assert gate.check("DELETE FROM lake.demo.c WHERE email = 'x'", "trino").rule == Rule.MASK
    assert gate.check("UPDATE lake.demo.c SET email = 'x'", "trino").rule == Rule.MASK
    copied = gate.check("INSERT INTO lake.demo.t SELECT email FROM lake.demo.c", "trino")
    assert "'***' AS \"email\"" in copied.sql


# --- memory --------------------------------------------------------------------------------------


def test_answer_is_remembered_by_shape_but_never_over_dialects_sessions_or_hidden_text() -> None:
    gate = Gate(Policy(role="r", tables=("lake.demo.*",)))
    shape = "SELECT a FROM t WHERE b = {}"
    for number in range(3):
        demo = Asker(catalog="lake", namespace=("demo",))
        assert gate.check(shape.format(number), "trino", demo).allowed
        assert not gate.check(shape.format(number), "trino", Asker("x", "lake", ("hr",))).allowed
    spark = "SELECT a FROM lake.demo.t WHERE b = '{}'"
    assert gate.check(spark.format("x"), "spark").allowed
    assert not gate.check(spark.format("${env:HOME}"), "spark").allowed
    assert not gate.check(spark.format("\x00"), "spark").allowed


def test_statement_after_a_known_one_is_not_taken_for_it() -> None:
    gate = Gate(Policy(role="r"))
    assert gate.check("SELECT a FROM t WHERE b = 'x'", "trino").allowed
    for tail in ("; DROP TABLE t", " UNION SELECT * FROM system.runtime.queries", " OR evil(1)"):
        assert not gate.check(f"SELECT a FROM t WHERE b = 'x'{tail}", "trino").allowed
        assert not gate.check(f"SELECT a FROM t WHERE b = 'x''{tail}", "trino").allowed


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "x" * 3_000_000,
        pytest.param(
            "SELECT " + ", ".join(f"c{i}" for i in range(60_000)) + " FROM t",
            marks=pytest.mark.slow,
        ),
        "SELECT " + "ARRAY[" * 50 + "1" + "]" * 50,
        "SELECT " + "CASE WHEN a THEN " * 300 + "1" + " END" * 300,
        "\ud800",
        "SELECT '\udfff'",
        "\x00",
        "'" * 10_001,
    ],
)
@pytest.mark.parametrize("dialect", ["trino", "spark"])
def test_monstrous_text_is_refused_and_does_no_harm(sql: str, dialect: str) -> None:
    verdict = check(sql, dialect)
    assert not verdict.allowed
    assert verdict.reason


@pytest.mark.slow
def test_long_list_of_literals_passes() -> None:
    assert check("SELECT a FROM t WHERE b IN (" + ", ".join(map(str, range(120_000))) + ")").allowed


@pytest.mark.slow
@given(text=st.text(max_size=200), dialect=st.sampled_from(["trino", "spark", "duckdb", "athena"]))
@settings(deadline=None, max_examples=150)
def test_any_text_gets_a_verdict(text: str, dialect: str) -> None:
    verdict = check(text, dialect)
    assert verdict.allowed or verdict.rule is not None


def test_unknown_dialect_is_refused() -> None:
    assert check("SELECT 1", "oracel").rule == Rule.UNKNOWN_DIALECT


def test_names_with_quotes_and_dashes_are_data() -> None:
    names = ["a'b", 'a"b', "a;b", "a--b", "a\nb"]
    for name, dialect in itertools.product(names, ["trino", "spark", "duckdb"]):
        quote = "`" if dialect == "spark" else '"'
        written = quote + name.replace(quote, quote * 2) + quote
        rule = TableRule(table="lake.demo.*", masks={name: "redacted"})
        relations = {f"lake.demo.{name.lower()}": Relation(("id", name))}
        gate = Gate(Policy(role="r", rules=(rule,)), relations)
        verdict = gate.check(f"SELECT * FROM lake.demo.{written}", dialect)
        assert verdict.allowed, (name, verdict.reason)
        assert verdict.sql.count(f"'***' AS {written}") == 1
