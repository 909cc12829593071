"""Translation: what is sure, what is doubtful, what fails; names, hooks, bad input."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.sql.translate import Outcome, Setting, Translator, diff, hook, translate


def outcome(sql: str, source: str = "trino", target: str = "duckdb", **setting: Any) -> Outcome:
    return translate(sql, source, target, Setting(**setting)).outcome


def test_text_of_the_same_dialect_stays_as_it_is() -> None:
    sql = "select  A /* x */ from T -- y"
    found = translate(sql, "trino", "trino")
    assert (found.sql, found.outcome, found.reason) == (sql, Outcome.IDENTICAL, "")


def test_order_of_nulls_is_written_out() -> None:
    found = translate("SELECT a FROM t ORDER BY a", "trino", "spark")
    assert (found.sql, found.outcome) == (
        "SELECT a FROM t ORDER BY a NULLS LAST",
        Outcome.TRANSLATED,
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a / b FROM t",
        "SELECT avg(a) FROM t",
        "SELECT approx_distinct(a) FROM t",
        "SELECT date_diff('day', a, b) FROM t",
        "SELECT day_of_week(a) FROM t",
        "SELECT extract(week FROM a) FROM t",
        "SELECT regexp_extract(a, 'x') FROM t",
        "SELECT regexp_like(a, '(?i)x') FROM t",
        "SELECT xs[1] FROM t",
        "SELECT element_at(xs, 1) FROM t",
        "SELECT substr(a, 0) FROM t",
        "SELECT substr(a, b) FROM t",
        "SELECT CAST(a AS bigint) FROM t",
        "SELECT CAST(a AS varchar) FROM t",
        "SELECT concat(a, b) FROM t",
        "SELECT greatest(a, b) FROM t",
        "SELECT json_extract_scalar(a, '$.x') FROM t",
        "SELECT a AT TIME ZONE 'UTC' FROM t",
        "SELECT my_function(a) FROM t",
        "SELECT a FROM t TABLESAMPLE BERNOULLI (10)",
        "SELECT a FROM t FOR VERSION AS OF 1",
        "SELECT array_agg(a) FROM t",
        "SELECT a + INTERVAL '1' DAY FROM t",
        "SELECT date_trunc('month', a) FROM t",
        "SELECT sqrt(a), ln(a) FROM t",
        "SELECT 1 FROM t WHERE a IN (SELECT b + INTERVAL '1' DAY FROM u)",
        "SELECT CAST(a AS boolean) FROM t",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        "INSERT INTO t SELECT 1",
    ],
)
def test_what_may_mean_something_else_is_doubtful_and_says_why(sql: str) -> None:
    found = translate(sql, "trino", "duckdb")
    assert found.outcome is Outcome.DOUBTFUL
    assert found.reason
    assert found.sql


@pytest.mark.parametrize(
    ("sql", "source", "target"),
    [
        ("SELECT a FROM t WHERE a LIKE 'x\\_y'", "trino", "spark"),
        ("SELECT * EXCLUDE (a) FROM t", "duckdb", "trino"),
        ("SELECT a AS k, count(*) FROM t GROUP BY k", "duckdb", "trino"),
        ("SELECT a, count(*) FROM t GROUP BY ALL", "duckdb", "trino"),
        ("SELECT sum(a) AS s FROM t HAVING s > 1", "duckdb", "trino"),
        ("SELECT a + 1 AS b, b + 1 AS c FROM t", "spark", "trino"),
        ("SELECT a || 'x' FROM t", "duckdb", "trino"),
        ("SELECT count(DISTINCT a, b) FROM t", "spark", "trino"),
        ("SELECT DISTINCT ON (a) a, b FROM t", "duckdb", "trino"),
        ("SELECT * FROM a ASOF JOIN b USING (ts)", "duckdb", "spark"),
        ("SELECT collect_list(a) FROM t", "spark", "duckdb"),
        ("SELECT a, count(*) FROM t GROUP BY ROLLUP (a)", "trino", "spark"),
        ("SELECT a, count(*) FROM t GROUP BY CUBE (a)", "spark", "duckdb"),
        ("SELECT a, count(*) FROM t GROUP BY GROUPING SETS ((a), ())", "duckdb", "spark"),
    ],
)
def test_what_the_target_lacks_is_not_called_translated(sql: str, source: str, target: str) -> None:
    assert translate(sql, source, target).outcome in (Outcome.DOUBTFUL, Outcome.FAILED)


def test_a_total_over_no_rows_is_a_row_on_engines_other_than_spark() -> None:
    found = translate("SELECT a, count(*) FROM t GROUP BY ROLLUP (a)", "trino", "duckdb")
    assert found.outcome is Outcome.TRANSLATED


def test_known_types_take_the_doubt_away() -> None:
    types = {"t": {"a": "double", "n": "bigint", "d": "decimal(10,2)", "s": "varchar"}}
    assert outcome("SELECT a / 2, avg(n), CAST(s AS varchar) FROM t", types=types) == "translated"
    assert outcome("SELECT n / 2 FROM t", types=types) == "doubtful"  # 1 / 2 is 0 or 0.5
    assert outcome("SELECT avg(d) FROM t", types=types) == "doubtful"
    assert outcome("SELECT n / 2 FROM t", "spark", "duckdb", types=types) == "translated"


def test_column_that_two_tables_type_differently_is_of_no_known_type() -> None:
    types = {"t": {"a": "double"}, "u": {"a": "bigint"}}
    assert outcome("SELECT avg(x.a / 2) FROM t x", types=types) == "doubtful"


# --- names ---------------------------------------------------------------------------------------


def test_names_are_completed_and_catalogs_renamed_but_not_ctes() -> None:
    setting = Setting(catalogs={"iceberg": "lake"}, catalog="iceberg", schema="demo")
    sql = "WITH t AS (SELECT a FROM u) SELECT t.a, iceberg.demo.v.b FROM t, iceberg.demo.v, demo.w"
    found = translate(sql, "trino", "duckdb", setting)
    assert found.outcome is Outcome.TRANSLATED
    assert found.sql == (
        "WITH t AS (SELECT a FROM lake.demo.u) SELECT t.a, lake.demo.v.b "
        "FROM t, lake.demo.v, lake.demo.w"
    )


def test_new_name_of_a_table_is_below_its_catalog_for_spark() -> None:
    sql = 'ALTER TABLE "lake"."demo"."t__tmp" RENAME TO "lake"."demo"."t"'
    assert translate(sql, "trino", "spark").sql.endswith(" RENAME TO `demo`.`t`")
    elsewhere = sql.replace('TO "lake"', 'TO "other"')  # Spark itself refuses to move it there
    assert "other" in translate(elsewhere, "trino", "spark").sql


def test_catalog_is_renamed_within_one_dialect() -> None:
    found = translate(
        "SELECT a FROM ICEBERG.demo.t", "trino", "trino", Setting(catalogs={"iceberg": "lake"})
    )
    assert (found.sql, found.outcome) == ("SELECT a FROM lake.demo.t", Outcome.TRANSLATED)


def test_name_that_needs_quotes_is_data() -> None:
    evil = 'x"; DROP TABLE y --'
    found = translate("SELECT a FROM t", "trino", "spark", Setting(catalog="lake", schema=evil))
    (table,) = list(__import__("sqlglot").parse_one(found.sql, read="spark").find_all(exp.Table))
    assert table.db == evil


# --- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "SELECT",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        "SELECT 'open",
        "CALL x.y()",
        "SHOW TABLES",
        "SELECT " + "(" * 500 + "1" + ")" * 500,
        "SELECT '\ud800'",
        "x" * 3_000_000,
    ],
)
def test_what_cannot_be_translated_fails_with_a_reason(sql: str) -> None:
    found = translate(sql, "trino", "spark")
    assert found.outcome is Outcome.FAILED
    assert found.reason
    assert found.sql == sql


def test_unknown_dialect_fails_and_names_the_nearest() -> None:
    assert "'trino'" in translate("SELECT 1", "trin", "spark").reason


def test_strict_fails_where_best_effort_leaves_a_doubt() -> None:
    sql = "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a) FROM t"
    strict = translate(sql, "snowflake", "trino")
    relaxed = translate(sql, "snowflake", "trino", Setting(mode="best_effort"))
    assert strict.outcome in (Outcome.FAILED, Outcome.DOUBTFUL)
    assert relaxed.outcome is Outcome.DOUBTFUL


# --- hooks ---------------------------------------------------------------------------------------


def _rename(ast: Any, src: str, dst: str) -> None:
    for table in ast.find_all(exp.Table):
        table.set("this", exp.to_identifier(f"{table.name}_{src}_{dst}"))


def _comment(sql: str, src: str, dst: str) -> str:
    return f"/* {src} to {dst} */ {sql}"


def test_hooks_of_both_forms_are_run_in_order() -> None:
    setting = Setting(hooks=(hook(_rename), hook(_comment)))
    found = translate("SELECT a FROM t", "trino", "spark", setting)
    assert found.sql == "/* trino to spark */ SELECT a FROM t_trino_spark"


def test_hooks_run_also_when_both_dialects_are_the_same() -> None:
    found = translate("SELECT a FROM t", "trino", "trino", Setting(hooks=(hook(_comment),)))
    assert found.sql == "/* trino to trino */ SELECT a FROM t"


def _raises(sql: str, src: str, dst: str) -> str:
    raise KeyError(sql + src + dst)


def _forgets(sql: str, src: str, dst: str) -> Any:
    del sql, src, dst


@pytest.mark.parametrize("function", [_raises, _forgets])
def test_hook_that_fails_fails_the_translation(function: Any) -> None:
    found = translate("SELECT a FROM t", "trino", "spark", Setting(hooks=(hook(function),)))
    assert found.outcome is Outcome.FAILED
    assert function.__name__ in found.reason


def test_hook_of_no_known_form_is_a_mistake_in_the_configuration() -> None:
    with pytest.raises(ConfigError, match="transform"):
        hook(lambda a, b: a)  # type: ignore[misc]


def test_diff_shows_the_lines_that_changed() -> None:
    assert "+SELECT a FROM t ORDER BY a NULLS LAST" in diff(
        "SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a NULLS LAST"
    )


def test_translator_remembers_by_session() -> None:
    translator = Translator()
    texts = [
        translator.translate("SELECT a FROM t", "trino", "spark", catalog="lake", schema=schema).sql
        for schema in ("x", "y", "x")
    ]
    assert texts == ["SELECT a FROM lake.x.t", "SELECT a FROM lake.y.t", "SELECT a FROM lake.x.t"]


@pytest.mark.parametrize("options", ["", " (TYPE LOGICAL)", " (TYPE DISTRIBUTED, FORMAT TEXT)"])
def test_what_is_explained_is_translated_like_the_statement_itself(options: str) -> None:
    inner = "SELECT a FROM t ORDER BY a"
    found = translate(f"EXPLAIN{options} {inner};", "trino", "spark")
    itself = translate(inner, "trino", "spark")
    assert (found.sql, found.outcome) == (f"EXPLAIN {itself.sql}", Outcome.TRANSLATED)
    doubtful = translate("explain /* x */ SELECT a / b FROM t", "trino", "duckdb")
    assert doubtful.outcome is Outcome.DOUBTFUL
    assert doubtful.sql.startswith("EXPLAIN SELECT a / ")
    assert doubtful.reason


@pytest.mark.parametrize(
    "sql",
    [
        "EXPLAIN ANALYZE SELECT a FROM t",
        "EXPLAIN (TYPE VALIDATE) SELECT a FROM t",
        "EXPLAIN (FORMAT JSON) SELECT a FROM t",
        "EXPLAIN",
        "EXPLAIN SHOW TABLES",
        "EXPLAIN EXPLAIN SELECT 1",
    ],
)
def test_what_others_do_not_explain_alike_fails(sql: str) -> None:
    assert translate(sql, "trino", "duckdb").outcome is Outcome.FAILED


def test_an_explanation_keeps_its_options_where_only_a_catalog_is_renamed() -> None:
    sql = "EXPLAIN (TYPE IO) SELECT a FROM lake.demo.t"
    found = translate(sql, "trino", "trino", Setting(catalogs={"lake": "iceberg"}))
    assert found.sql == "EXPLAIN (TYPE IO) SELECT a FROM iceberg.demo.t"
