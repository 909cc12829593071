"""Conditions with their literals: the same for the same meaning in any dialect, hot or cold."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakehouse_core.sql import Inspector, Predicate
from lakehouse_core.sql.predicate import MAX_VALUES
from lakehouse_core.sql.render import quoted

WHERE = "SELECT a FROM t WHERE {}"
MERGE = (
    "MERGE INTO t USING u ON t.k = u.k AND t.a = 1 AND u.b = 2 WHEN MATCHED AND t.c = 3 THEN DELETE"
)
GENERATED = (
    "SELECT x, count(*) FROM t WHERE a > {number} AND b = {text} AND c IN ({texts}) "
    "AND d < DATE '{year}' AND e NOT IN ({numbers}) "
    "AND f >= DATE '{day}' - INTERVAL '{days} {unit}' GROUP BY 1"
)
DAY = "d >= date:2024-01-08"
CASES = [
    # One meaning, many spellings.
    ("trino", "d >= DATE '2024-01-08'", DAY),
    ("trino", "CAST('2024-01-08' AS DATE) <= d", DAY),
    ("trino", "NOT d < date('2024-01-08')", DAY),
    ("trino", "d >= DATE '2024-01-01' + INTERVAL '7' DAY", DAY),
    ("trino", "d >= date_add('day', 7, DATE '2024-01-01')", DAY),
    ("trino", "d >= from_iso8601_date('2024-01-08')", DAY),
    ("athena", "d >= date '2024-02-08' - interval '1' month", DAY),
    ("spark", "d >= to_date('2024-01-08')", DAY),
    ("spark", "d >= date_add('2024-01-01', 7)", DAY),
    ("spark", "d >= date_sub(DATE'2024-01-15', 7)", DAY),
    ("spark", "d >= make_date(2024, 1, 8)", DAY),
    ("spark", "d >= add_months('2023-12-08', 1)", DAY),
    ("duckdb", "d >= '2024-01-08'::date", DAY),
    ("duckdb", "d >= '2024-01-01'::date + INTERVAL 7 DAYS", DAY),
    ("duckdb", "d >= '2024-01-01'::date + INTERVAL '1 week'", DAY),
    ("duckdb", "d >= DATE '2024-01-01' + 7", DAY),
    ("duckdb", "d >= INTERVAL (7) DAY + DATE '2024-01-01'", DAY),
    ("duckdb", "d >= DATE '2024-01-15' + INTERVAL -7 DAY", DAY),
    ("snowflake", "d >= dateadd(day, -7, '2024-01-15'::date)", DAY),
    ("snowflake", "d >= to_date('2024-01-08')", DAY),
    # Types.
    ("trino", "d = 24", "d = number:24"),
    ("trino", "d = -024.500", "d = number:-24.5"),
    ("trino", "d = 1.5e3", "d = number:1500"),
    ("duckdb", "d = .5", "d = number:0.5"),
    ("spark", "d = 10L", "d = number:10"),
    ("spark", "d = 2 * 3 + 1", "d = number:7"),
    ("trino", "d = CAST('7' AS BIGINT)", "d = number:7"),
    ("trino", "d = 'it''s'", "d = text:it's"),
    ("spark", 'd = "x"', "d = text:x"),
    ("trino", "d = TRUE", "d = boolean:true"),
    ("trino", "d = NULL", "d = null"),
    ("trino", "d > TIMESTAMP '2024-01-01 02:00:00'", "d > timestamp:2024-01-01T02:00:00.000000"),
    (
        "trino",
        "d > TIMESTAMP '2024-01-01 02:00:00.5 +02:00'",
        "d > timestamp:2024-01-01T00:00:00.500000Z",
    ),
    (
        "snowflake",
        "d > '2024-01-01 00:00:00 UTC'::timestamp_tz",
        "d > timestamp:2024-01-01T00:00:00.000000Z",
    ),
    (
        "duckdb",
        "d > TIMESTAMP '2024-01-01' - INTERVAL 90 MINUTES",
        "d > timestamp:2023-12-31T22:30:00.000000",
    ),
    # Operators.
    ("trino", "5 < d", "d > number:5"),
    ("trino", "d <> 5", "not d = number:5"),
    ("trino", "NOT d <> 5", "d = number:5"),
    ("trino", "NOT (d >= 5)", "d < number:5"),
    ("spark", "d <=> 5", "d <=> number:5"),
    ("trino", "d IS DISTINCT FROM 5", "not d <=> number:5"),
    ("trino", "d IS NULL", "d is_null null"),
    ("trino", "d IS NOT NULL", "not d is_null null"),
    ("trino", "d BETWEEN 1 AND 2", "d between number:1 number:2"),
    ("trino", "d NOT BETWEEN 1 AND 2", "not d between number:1 number:2"),
    ("trino", "5 BETWEEN d AND e", "d <= number:5; e >= number:5"),
    ("trino", "d LIKE 'x%'", "d like text:x%"),
    ("trino", "d NOT LIKE 'x%'", "not d like text:x%"),
    ("trino", "d LIKE 'x!%' ESCAPE '!'", "d like unknown"),
    ("trino", "d IN (3, -1, 2, 2)", "d in number:-1 number:2 number:3"),
    ("trino", "d IN (-1, 2)", "d in number:-1 number:2"),
    ("trino", "d NOT IN ('b', 'a')", "not d in text:a text:b"),
    ("trino", "d IN (NULL, 2, TRUE)", "d in boolean:true null number:2"),
    ("trino", "d IN (DATE '2024-1-1', DATE '2024-1-2')", "d in date:2024-01-01 date:2024-01-02"),
    ("trino", "d AND NOT e", "d = boolean:true; e = boolean:false"),
    # Wrapped columns.
    ("trino", "CAST(d AS DATE) = DATE '2024-01-01'", "d{CAST AS DATE} = date:2024-01-01"),
    ("spark", "date(d) = '2024-01-01'", "d{CAST AS DATE} = text:2024-01-01"),
    ("trino", "year(d) = 2024", "d{YEAR} = number:2024"),
    ("trino", "EXTRACT(YEAR FROM d) = 2024", "d{YEAR} = number:2024"),
    ("trino", "lower(d) = 'x'", "d{LOWER} = text:x"),
    ("trino", "d + e > 5", "d{EXPRESSION} > number:5; e{EXPRESSION} > number:5"),
    ("trino", "d % 2 = 0", "d{EXPRESSION} = number:0"),
    # What only the engine knows.
    ("trino", "d = ?", "d = unknown"),
    ("duckdb", "d = $1", "d = unknown"),
    ("spark", "d = :name", "d = unknown"),
    ("trino", "d > current_date - INTERVAL '7' DAY", "d > unknown"),
    ("trino", "d = (SELECT max(x) FROM u)", "d = unknown"),
    ("trino", "d IN (SELECT x FROM u)", "d in unknown"),
    ("trino", "d < e", "d < unknown; e > unknown"),
    ("trino", "d = DATE '2024-13-45'", "d = unknown"),
    ("trino", "d = X'ab'", "d = unknown"),
]


def shown(predicate: Predicate) -> str:
    values = " ".join(
        value.kind if value.text is None else f"{value.kind}:{value.text}"
        for value in predicate.values
    )
    function = f"{{{predicate.function}}}" if predicate.function else ""
    sign = "not " if predicate.is_negated else ""
    return f"{sign}{predicate.column.lower()}{function} {predicate.operator} {values}"


def read(sql: str, dialect: str = "trino", inspector: Inspector | None = None) -> list[Predicate]:
    found = (inspector or Inspector()).inspect(sql, dialect, literals=True)
    assert found.error is None, found.error
    assert found.predicates is not None
    return list(found.predicates)


@pytest.mark.parametrize(("dialect", "condition", "expected"), CASES)
def test_a_condition_has_one_form_in_any_dialect(
    dialect: str, condition: str, expected: str
) -> None:
    inspector = Inspector()
    sql = WHERE.format(condition)
    for _ in ("cold", "hot"):
        found = read(sql, dialect, inspector)
        own = sorted(shown(p) for p in found if p.table.lower() == "t")
        assert "; ".join(own) == expected
        assert all(p.is_conjunct for p in found)


def test_literals_are_only_there_when_asked_for() -> None:
    sql = "SELECT a FROM t WHERE b = 5"
    assert Inspector().inspect(sql, "trino").predicates is None
    assert Inspector().inspect("SELECT", "trino", literals=True).predicates == ()
    assert Inspector().inspect("SELECT 1", "klingon", literals=True).predicates == ()


NUMBERS = st.integers(-(10**12), 10**12)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00\\"), max_size=12)
DAYS = st.dates(date(1, 1, 2), date(9998, 12, 31))


@st.composite
def statements(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A statement of one template, and what its predicates must show."""
    number, text, day, days = draw(NUMBERS), draw(TEXTS), draw(DAYS), draw(st.integers(0, 300))
    items = draw(st.lists(NUMBERS, min_size=1, max_size=5))
    listed = draw(st.lists(TEXTS, min_size=1, max_size=5))
    unit = draw(st.sampled_from(["day", "week"]))
    sql = GENERATED.format(
        number=number,
        text=quoted(text),
        texts=", ".join(map(quoted, listed)),
        year=f"{day:%Y}",
        numbers=", ".join(map(str, items)),
        day=day.isoformat(),
        days=days,
        unit=unit,
    )
    start = _moved(day, -days * (7 if unit == "week" else 1))
    return sql, [
        f"a > number:{number}",
        f"b = text:{text}",
        "c in " + " ".join(f"text:{item}" for item in sorted(set(listed))),
        "d < unknown",
        "not e in " + " ".join(f"number:{item}" for item in sorted(set(items))),
        f"f >= date:{start.isoformat()}" if start else "f >= unknown",
    ]


def _moved(day: date, days: int) -> date | None:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None


SHARED = Inspector()


@given(statements())
def test_known_templates_give_the_values_of_each_text(given: tuple[str, list[str]]) -> None:
    sql, expected = given
    dialect = "duckdb"
    if any(word in sql.lower() for word in ("://", "password", "pwd", "secret", "token")):
        return
    for inspector in (SHARED, Inspector()):
        assert [shown(p) for p in read(sql, dialect, inspector)] == expected


@given(st.lists(st.sampled_from(["1", "-2", "NULL", "TRUE", "'a'", "3.50"]), min_size=1))
@example(["5", "NULL"])
@example(["NULL"])
def test_lists_of_any_length_and_mixture_read_alike_hot_and_cold(items: list[str]) -> None:
    warm = Inspector()
    for first in ("5", "5, NULL", "-5, 6", "5, 6, 7", "NULL, 5"):
        read(WHERE.format(f"b IN ({first}) AND c = 'z'"), inspector=warm)
    sql = WHERE.format(f"b IN ({', '.join(items)}) AND c = 'y'")
    hot, cold = read(sql, inspector=warm), read(sql)
    assert hot == cold
    assert hot[0].count == len(items)
    assert shown(hot[1]) == "c = text:y"


def test_a_long_list_is_bounded_and_keeps_its_ends() -> None:
    items = ", ".join(str(number) for number in range(5_000, 0, -1))
    (found,) = read(WHERE.format(f"b IN ({items})"))
    texts = [value.text for value in found.values]
    assert (found.count, len(texts), found.is_complete) == (5_000, MAX_VALUES, False)
    assert (texts[0], texts[-1]) == ("1", "5000")
    (other,) = read(WHERE.format(f"b IN ({items})"))
    assert other == found


def test_a_long_text_is_cut() -> None:
    (found,) = read(WHERE.format(f"b = '{'x' * 10_000}'"))
    assert found.values[0].text == "x" * 256
    assert not found.is_complete


@pytest.mark.parametrize(
    ("sql", "pruning", "idle"),
    [
        ("SELECT 1 FROM t WHERE a = 1 AND (b = 2 OR c = 3)", "a", "b c"),
        ("SELECT 1 FROM t WHERE NOT (a = 1 OR b = 2)", "a b", ""),
        ("SELECT 1 FROM t WHERE NOT (a = 1 AND b = 2)", "", "a b"),
        ("SELECT 1 FROM t JOIN u ON t.k = u.k AND t.a = 1 AND u.b = 2", "a b", ""),
        ("SELECT 1 FROM t LEFT JOIN u ON t.k = u.k AND t.a = 1 AND u.b = 2", "b", "a"),
        ("SELECT 1 FROM t RIGHT JOIN u ON t.k = u.k AND t.a = 1 AND u.b = 2", "a", "b"),
        ("SELECT 1 FROM t FULL JOIN u ON t.k = u.k AND t.a = 1 AND u.b = 2", "", "a b"),
        ("SELECT 1 FROM t LEFT JOIN u ON t.k = u.k WHERE u.a IS NULL AND u.b = 2", "b", "a"),
        ("SELECT 1 FROM t LEFT JOIN u ON t.k = u.k WHERE coalesce(u.a, 1) = 1", "", "a"),
        ("SELECT a FROM t GROUP BY a HAVING a > 1", "", "a"),
        ("SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.b = 1 AND t.a = 2)", "b", "a"),
        ("SELECT x FROM (SELECT a AS x FROM t) WHERE x = 1", "a", ""),
        ("SELECT a FROM (SELECT * FROM t) q WHERE q.a = 1", "a", ""),
        ("SELECT x FROM (SELECT a AS x FROM t LIMIT 5) WHERE x = 1", "", "a"),
        (
            "SELECT x FROM (SELECT a AS x, row_number() OVER (ORDER BY b) AS n FROM t) WHERE x = 1",
            "",
            "a",
        ),
        ("SELECT 1 FROM u WHERE k NOT IN (SELECT k FROM t WHERE a = 1)", "a", "k"),
        ("DELETE FROM t WHERE a = 1", "a", ""),
        (
            MERGE,
            "a",
            "b c",
        ),
    ],
)
def test_only_conditions_that_spare_reading_are_conjuncts(
    sql: str, pruning: str, idle: str
) -> None:
    found = read(sql)
    known = [p for p in found if p.values[0].kind != "unknown"]
    assert " ".join(sorted(p.column for p in known if p.is_conjunct)) == pruning
    rest = sorted(p.column for p in found if not p.is_conjunct or p not in known)
    assert " ".join(rest) == idle


@pytest.mark.parametrize(
    "value",
    [
        "1e99999999",
        "-1e-99999999",
        "9" * 100,
        "1e300 * 1e300",
        "DATE '2024-01-01' + INTERVAL '99999999999999999999' DAY",
        "DATE '2024-01-01' + INTERVAL '1e99999999' DAY",
        "DATE '2024-01-01' + INTERVAL '1' DAY * 1e99999999",
        "DATE '9999-12-31' + INTERVAL '1' DAY",
        "DATE '0001-01-01' - INTERVAL '1' MONTH",
        "date_add('century', 1, DATE '2024-01-01')",
        "make_date(1e300, 1, 1)",
        "TIMESTAMP '2024-01-01 99:99:99'",
        "CAST('١٢' AS DATE)",
    ],
)
def test_values_beyond_reason_are_unknown(value: str) -> None:
    (found,) = read(WHERE.format(f"b = {value}"))
    assert found.values[0].kind == "unknown"


def test_alternatives_share_their_group() -> None:
    found = read("SELECT 1 FROM t WHERE (a = 1 OR b = 2) AND (c = 3 OR d = 4) AND e = 5")
    groups = {p.column: p.or_group for p in found}
    assert groups["a"] == groups["b"] != groups["c"] == groups["d"]
    assert groups["e"] is None


@pytest.mark.parametrize(
    "condition",
    [
        "password = 'hunter2'",
        "user_token IN ('hunter2', 'hunter3')",
        "api_key BETWEEN 'hunter2' AND 'hunter3'",
        "lower(client_secret) = 'hunter2'",
        "url = 'jdbc:db://user:hunter2@host/'",
        "options LIKE 'password=hunter2;%'",
    ],
)
def test_secrets_are_not_handed_out(condition: str) -> None:
    sql = WHERE.format(condition)
    inspector = Inspector()
    for _ in ("cold", "hot"):
        (found,) = read(sql, inspector=inspector)
        assert "hunter" not in repr(found)
        assert {value.kind for value in found.values} == {"unknown"}


def test_surrogate_keys_are_no_secrets() -> None:
    (found,) = read("SELECT a FROM t WHERE customer_key = 7")
    assert shown(found) == "customer_key = number:7"


def test_a_renamed_column_keeps_its_values() -> None:
    found = read(
        "WITH w AS (SELECT k AS x, v FROM s.t UNION ALL SELECT j, v FROM s.u) "
        "SELECT v FROM w WHERE x = 5"
    )
    assert {(p.table, p.column, shown(p)) for p in found} == {
        ("s.t", "k", "k = number:5"),
        ("s.u", "j", "j = number:5"),
    }
