"""The two corpora of the guards: what must be refused, and what must pass."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import lru_cache

import sqlglot

from tests.unit.sql import tpc
from tests.unit.sql.golden import FOLDER

DIALECTS = ("trino", "spark", "snowflake", "postgres")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, and why it is there."""

    dialect: str
    sql: str
    why: str = ""


@lru_cache(maxsize=1)
def hostile() -> tuple[Statement, ...]:
    """Every statement of golden/guards/hostile.jsonl."""
    lines = (FOLDER / "guards" / "hostile.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(Statement(**json.loads(line)) for line in lines)


@lru_cache(maxsize=1)
def harmless() -> tuple[Statement, ...]:
    """Hand-written ones, TPC-H and TPC-DS in five dialects, and generated ones."""
    return (*written(), *benchmarks(), *(generated(seed) for seed in range(600)))


def written() -> tuple[Statement, ...]:
    """The statements of golden/guards/harmless.sql."""
    blocks = (FOLDER / "guards" / "harmless.sql").read_text(encoding="utf-8").split("-- dialect: ")
    found = (block.partition("\n") for block in blocks[1:])
    return tuple(Statement(dialect, sql.strip(), "written") for dialect, _, sql in found)


def benchmarks() -> tuple[Statement, ...]:
    """TPC-H and TPC-DS as DuckDB has them, and in other dialects."""
    texts = [(name, text) for name in ("tpch", "tpcds") for text in tpc.texts(name)]
    native = [Statement("duckdb", text, name) for name, text in texts]
    others = [
        Statement(dialect, sqlglot.transpile(text, read="duckdb", write=dialect)[0], name)
        for name, text in texts
        for dialect in DIALECTS
    ]
    return (*native, *others)


_VALUES = {
    "trino": (
        "upper({c})",
        "coalesce({c}, 'none')",
        "date_trunc('month', {t})",
        "cast({n} AS double) / 3",
        "json_extract_scalar({c}, '$.a')",
        "regexp_replace({c}, 'x', 'y')",
        "if({n} > 5, 'big', 'small')",
        "element_at(split({c}, '-'), 1)",
    ),
    "spark": (
        "upper({c})",
        "nvl({c}, 'none')",
        "date_format({t}, 'yyyy-MM')",
        "cast({n} AS double) / 3",
        "get_json_object({c}, '$.a')",
        "regexp_replace({c}, 'x', 'y')",
        "if({n} > 5, 'big', 'small')",
        "split({c}, '-')[0]",
    ),
    "duckdb": (
        "upper({c})",
        "ifnull({c}, 'none')",
        "strftime({t}, '%Y-%m')",
        "{n}::double / 3",
        "json_extract_string({c}, '$.a')",
        "regexp_replace({c}, 'x', 'y', 'g')",
        "CASE WHEN {n} > 5 THEN 'big' ELSE 'small' END",
        "string_split({c}, '-')[1]",
    ),
}
_AGGREGATES = ("count(*)", "sum({n})", "avg({n})", "max({t})", "count(DISTINCT {c})", "min({n})")
_FILTERS = (
    "{c} = 'x'",
    "{c} IN ('a', 'b', 'c')",
    "{n} BETWEEN 1 AND 100",
    "{t} >= TIMESTAMP '2026-01-01 00:00:00'",
    "{c} LIKE '%drop%'",
    "{n} > (SELECT avg(amount) FROM lake.demo.sales)",
    "{c} IS NOT NULL",
    "EXISTS (SELECT 1 FROM lake.demo.orders o WHERE o.id = s.id)",
)


def generated(seed: int) -> Statement:
    """A statement as a dashboard would send it."""
    choice = random.Random(seed)  # noqa: S311 a corpus, not a secret
    dialect = choice.choice(list(_VALUES))
    names = {"c": "s.kind", "n": "s.amount", "t": "s.sold_at"}
    keys = [text.format(**names) for text in choice.sample(_VALUES[dialect], choice.randint(1, 3))]
    sums = [text.format(**names) for text in choice.sample(_AGGREGATES, choice.randint(1, 3))]
    filters = [text.format(**names) for text in choice.sample(_FILTERS, choice.randint(0, 4))]
    source = "lake.demo.sales s"
    if choice.random() < 0.4:
        source += " LEFT JOIN lake.demo.customers c ON c.id = s.customer_id"
    items = [f"{text} AS k{number}" for number, text in enumerate(keys)]
    items += [f"{text} AS v{number}" for number, text in enumerate(sums)]
    where = f" WHERE {' AND '.join(filters)}" if filters else ""
    query = f"SELECT {', '.join(items)} FROM {source}{where} GROUP BY {', '.join(keys)}"  # noqa: S608 text for a parser
    shapes = (
        "{q}",
        "{q} ORDER BY v0 DESC LIMIT 100",
        "WITH q AS ({q}) SELECT * FROM q WHERE v0 > 10",
        "SELECT k0, rank() OVER (ORDER BY v0 DESC) AS place FROM ({q}) AS q",
        "{q} UNION ALL {q}",
        "/* report {seed} */ {q} -- end",
    )
    return Statement(dialect, choice.choice(shapes).format(q=query, seed=seed), "generated")
