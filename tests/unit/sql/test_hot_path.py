"""The hot path gives the answer a full parse would give, whatever it was fed before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.errors import TokenError

from lakehouse_core.sql import Inspector
from lakehouse_core.sql.cache import Cache
from lakehouse_core.sql.dialect import dialect_named
from lakehouse_core.sql.lex import end_of, lex
from lakehouse_core.sql.mask import MASK, shorten_lists
from tests.unit.sql.corpus import STATEMENTS
from tests.unit.sql.mutation import mutate

if TYPE_CHECKING:
    from random import Random

DIALECTS = ("trino", "spark", "duckdb", "snowflake", "postgres", "athena", "mysql", "bigquery")
# What literals, names, comments and operators are made of, so that they meet in odd ways.
SNIPPETS = st.sampled_from(
    [
        *("'", "''", '"', "`", "\\", "--", "/*", "*/", "/*+", "//", "\n", " ", "#", "$", "$$", "@"),
        *("{", ";", "(", ")", ",", "=", "-", ":1", "?", "NULL", "a", "t.1", "SELECT ", " FROM t"),
        *("1", "1.5", ".5", "1e3", "1e3+1", "2L", "0x1F", "1_000", "x'1F'", "e'\\''", "r'\\'"),
        *(" IN (1, 2)", " IN (-1, NULL)", " VALUES (1, 2), (3, 4)", " WHERE a = ", " LIMIT 5"),
        *("INTERVAL '1 day'", " ORDER BY 1"),
    ]
)
LISTED = "SELECT a FROM t WHERE b = {n} AND c IN ({items}) /* trace {n} */ LIMIT {n}"
COLUMN = "SELECT x{n} FROM t WHERE a = 1"


@pytest.mark.slow
@given(
    st.sampled_from(STATEMENTS),
    st.randoms(use_true_random=False),
    st.integers(1, 4),
)
def test_warm_answer_is_the_cold_answer(
    statement: tuple[str, str], random: Random, before: int
) -> None:
    dialect, sql = statement
    warm = Inspector()
    for _ in range(before):
        warm.inspect(mutate(sql, dialect, random), dialect)
    text = mutate(sql, dialect, random)
    assert warm.inspect(text, dialect) == Inspector().inspect(text, dialect)


@given(st.sampled_from(DIALECTS), st.lists(SNIPPETS, max_size=12), st.lists(SNIPPETS, max_size=12))
def test_texts_with_one_key_have_one_template(
    dialect: str, first: list[str], second: list[str]
) -> None:
    warm = Inspector()
    for text in ("".join(first), "SELECT " + "".join(second), "".join(first + second)):
        assert warm.fingerprint(text, dialect) == Inspector().fingerprint(text, dialect)


@given(st.sampled_from(DIALECTS), st.lists(SNIPPETS, max_size=12))
def test_scan_agrees_with_the_tokens_or_gives_up(dialect: str, snippets: list[str]) -> None:
    """A key may stand for a text only when both lexers see the same literals in it."""
    text = "SELECT " + "".join(snippets)
    language = dialect_named(dialect)
    key = language.masker.full_key(text)
    if key is None:
        return
    mask = language.masker.mask(text, key)
    assert key.count(MASK) == len(mask.literals) == len(mask.ends)
    try:
        tokens = lex(text, language).literals
    except TokenError:
        return
    if mask.ends == tuple(end_of(token) for token in tokens):
        assert [
            text[: end_of(token) + 1].endswith(m)
            for token, m in zip(tokens, mask.literals, strict=True)
        ] == [True] * len(tokens)


def test_known_template_with_new_literals_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    inspector = Inspector()
    texts = [LISTED.format(n=n, items=", ".join(str(item) for item in range(n))) for n in (2, 3, 7)]
    known = inspector.inspect(texts[0], "trino")

    def refuse(*_: object) -> None:
        pytest.fail("a known template was parsed again")

    monkeypatch.setattr("lakehouse_core.sql.inspector.analyse", refuse)
    assert [inspector.inspect(text, "trino") for text in texts[1:]] == [known, known]


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("a IN (\0, \0,\0) AND b", "a IN (\0) AND b"),
        ("a in(\0,\0)", "a in(\0)"),
        ("a NOT IN (\0, -\0, NULL)", "a NOT IN (\0)"),
        ("min (\0, \0)", "min (\0, \0)"),
        ("f(\0, \0)", "f(\0, \0)"),
        ("a IN (\0, b)", "a IN (\0, b)"),
        (" VALUES (\0, \0), (\0, \0)", " VALUES (\0, \0)"),
        (" VALUES (\0, \0), (\0)", " VALUES (\0, \0), (\0)"),
    ],
)
def test_only_lists_of_literals_are_shortened(full: str, short: str) -> None:
    assert shorten_lists(full) == short


@pytest.mark.parametrize(
    ("dialect", "text", "key"),
    [
        ("trino", "SELECT 'it''s' -- x\n, 1.5e3", "SELECT \0  \n, \0"),
        ("trino", "SELECT \"a'b\", 'c\"d'", 'SELECT "a\'b", \0'),
        ("trino", "SELECT /* 'x */ a1, t2.c3, 4", "SELECT   a1, t2.c3, \0"),
        ("trino", "SELECT '\\', 1", "SELECT \0, \0"),
        ("spark", "SELECT '\\', 1", None),
        ("spark", 'SELECT "a", `b 1`, 10L', "SELECT \0, `b 1`, \0L"),
        ("trino", "SELECT 10L", "SELECT 10L"),
        ("spark", "SELECT /*+ X(1) */ 2", "SELECT /*+ X(1) */ \0"),
        ("duckdb", "SELECT $$it's$$, 1", None),
        ("duckdb", "SELECT /* a /* b */ c */ 1", None),
        ("snowflake", "SELECT 1 // it's\n, 2", "SELECT \0  \n, \0"),
        ("trino", 'SELECT a FROM "t$files" WHERE b = 1', 'SELECT a FROM "t$files" WHERE b = \0'),
        ("trino", "SELECT .5, a.5", "SELECT .\0, a.5"),
        ("trino", "SELECT 'open", None),
        ("trino", "SELECT /* open", None),
        ("trino", "SELECT '\0'", None),
        ("mysql", "SELECT 1", None),
    ],
)
def test_key_of_the_hot_path(dialect: str, text: str, key: str | None) -> None:
    assert dialect_named(dialect).masker.full_key(text) == key


def test_cache_forgets_the_oldest_and_stays_small() -> None:
    cache: Cache[int, int] = Cache(10)
    for number in range(25):
        cache.put(number, number)
        assert cache.get(number) == number
        assert len(cache) <= 10
    assert cache.get(0) is None


def test_bounded_inspector_still_answers() -> None:
    small = Inspector(cached=2)
    texts = [COLUMN.format(n=n) for n in range(10)] * 2
    assert [small.inspect(text, "trino") for text in texts] == [
        Inspector().inspect(text, "trino") for text in texts
    ]
