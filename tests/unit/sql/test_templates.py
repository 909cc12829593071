"""Statements of five engines: understood, and together with their equals only."""

from __future__ import annotations

import pytest

from benchmarks import templates
from lakehouse_core.sql import Inspector, fingerprint


@pytest.mark.slow
def test_texts_of_a_template_meet_and_no_others() -> None:
    found = templates.run(4, seed=2)
    assert set(found["coverage"]["statements"]) == {
        "athena", "duckdb", "snowflake", "spark", "trino"
    }  # fmt: skip
    assert found["coverage"]["failures"] == []
    assert found["pairs"]["split"] == []
    assert found["pairs"]["mixed_up"] == 0


def same(dialect: str, *texts: str) -> bool:
    found = [Inspector().fingerprint(text, dialect) for text in texts]
    assert [one.error for one in found] == [None] * len(texts)
    return len({one.template_id for one in found}) == 1


def test_athena_tells_its_administration_apart() -> None:
    assert not same("athena", "SHOW PARTITIONS a.b", "SHOW CREATE TABLE a.b")
    assert not same("athena", "MSCK REPAIR TABLE a.b", "MSCK REPAIR TABLE a.c")
    assert fingerprint("SHOW CREATE TABLE a.b", "athena").template == "SHOW CREATE TABLE a.b"


def test_an_alias_in_a_hint_is_an_alias() -> None:
    text = "SELECT /*+ BROADCAST({a}) */ {a}.x, u.y FROM t {a} JOIN u ON {a}.k = u.k"
    assert same("spark", text.format(a="d"), text.format(a="dim_1"))
    assert not same("spark", text.format(a="d"), text.format(a="d").replace("BROADCAST", "MERGE"))


def test_names_of_a_hint_do_not_change_other_names() -> None:
    (use, *_) = Inspector().inspect("SELECT /*+ BROADCAST(b) */ a FROM b", "spark").columns
    assert (use.table, use.column) == ("b", "a")
    template = fingerprint("SELECT /*+ COALESCE(3) */ abc FROM t", "spark").template
    assert template == "SELECT /*+ COALESCE(3) */ abc FROM t"


def test_a_function_may_be_called_window() -> None:
    sql = "SELECT count(*) FROM t GROUP BY window(at, '10 minutes')"
    assert fingerprint(sql, "spark").error is None
    named = "SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY b)"
    assert fingerprint(named, "spark").error is None


def test_strings_without_a_gap_are_one_literal() -> None:
    assert same("spark", "SELECT a FROM t WHERE b = 'it''s'", "SELECT a FROM t WHERE b = 'x'")


def test_parameters_of_a_prepared_statement_are_literals() -> None:
    assert same("trino", "EXECUTE find_it USING 5, 'a'", "EXECUTE find_it USING 6, 'b'")
    assert not same("trino", "EXECUTE IMMEDIATE 'SELECT 1'", "EXECUTE IMMEDIATE 'DELETE FROM t'")


def test_the_number_of_an_interval_is_a_literal() -> None:
    text = "SELECT a FROM t WHERE b > now() - INTERVAL {} DAYS"
    assert same("duckdb", text.format(3), text.format(15))
