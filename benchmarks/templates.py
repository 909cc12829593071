"""Templates: how many statements of a mixed corpus are understood, and whether equals meet.

    python benchmarks/templates.py

Corpus: tests/golden/mixed.sql, statements of Spark, Trino, DuckDB, Snowflake and Athena as they
come in a day, written as templates with markers. Coverage: the share whose fingerprint has no
error, once per statement.

Each template is filled in many times, with other values, lists of other lengths, other alias names,
other layout, comments and case. Two texts belong together when they were made from one template;
they are put together when they have one template id. F1 is that of the pairs. Half of the texts go
through a fresh inspector, half through one that remembers, so both speeds are judged.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from lakehouse_core.sql import Inspector

Text = tuple[str, str]  # dialect, statement

CORPUS = Path(__file__).parents[1] / "tests/golden/mixed.sql"
MARKER = re.compile(r"\{(ints?|num|texts?|day|ts|[abcd])\}")
LIMITS = {"covered_ratio": 0.99, "pair_f1": 0.99}
WORDS = ("open", "DE", "it''s", "a b", "2024-01-01", "%x_", "-- no", "/*", "", "5", "Straße")
# None of the names the corpus writes out; t1 and c2 look like the canonical ones.
ALIASES = ("src", "t1", "orders_1", "r2", "c2", "inner_q", "tot", "cnt_x", "zz9", "base_q", "W1")
GAPS = (" ", "  ", "\n", "\t", "\n    ", " /* c 'x */ ", " -- why not\n")
KEPT_CASE = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.HINT)


def corpus() -> list[Text]:
    blocks = CORPUS.read_text().split("-- dialect: ")[1:]
    return [(dialect, sql.strip()) for dialect, _, sql in (b.partition("\n") for b in blocks)]


def filled_in(sql: str, choice: random.Random) -> str:
    """The statement with a value for every marker."""
    aliases = dict(zip("abcd", choice.sample(ALIASES, 4), strict=True))

    def number() -> str:
        return str(choice.randrange(100_000))

    def text() -> str:
        return f"'{choice.choice(WORDS)}'"

    def value(match: re.Match[str]) -> str:
        day = str(date(2010, 1, 1) + timedelta(days=choice.randrange(10_000)))
        values = {
            "int": number(),
            "num": f"{number()}.{choice.randrange(1, 100)}",
            "text": text(),
            "ints": ", ".join(number() for _ in range(choice.randrange(1, 9))),
            "texts": ", ".join(text() for _ in range(choice.randrange(1, 9))),
            "day": day,
            "ts": f"{day} {choice.randrange(24):02}:{choice.randrange(60):02}:00",
            **aliases,
        }
        return values[match[1]]

    return MARKER.sub(value, sql)


def laid_out(text: Text, choice: random.Random) -> str:
    """The statement with other gaps between its words, and other case where case has no meaning."""
    dialect, sql = text
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    except TokenError:
        return sql
    out: list[str] = []
    position = 0
    for token in tokens:
        if token.start < position or token.token_type == TokenType.HIVE_TOKEN_STREAM:
            continue
        gap, word = sql[position : token.start], sql[token.start : token.end + 1]
        position = token.end + 1
        is_gap = bool(gap) and not gap.strip() and choice.random() < 0.5
        out.append(choice.choice(GAPS) if is_gap else gap)
        is_free = token.token_type not in KEPT_CASE and choice.random() < 0.3
        out.append(choice.choice((word.upper(), word.lower())) if is_free else word)
    return "".join(out) + sql[position:]


def covered(texts: list[Text], choice: random.Random) -> dict[str, Any]:
    inspector = Inspector()
    counts: Counter[str] = Counter()
    failures: list[dict[str, str]] = []
    for dialect, sql in texts:
        found = inspector.fingerprint(filled_in(sql, choice), dialect)
        counts[dialect] += 1
        if found.error is not None:
            failures.append({"dialect": dialect, "sql": sql, "error": found.error})
    return {
        "statements": dict(counts),
        "covered_ratio": 1 - len(failures) / len(texts),
        "failures": failures,
    }


def paired(texts: list[Text], times: int, choice: random.Random) -> dict[str, Any]:
    """Pairs of texts: made from one template, and put under one template id."""
    remembering = Inspector()
    together: Counter[tuple[int, str]] = Counter()
    astray: dict[int, dict[str, str]] = {}
    for label, (dialect, sql) in enumerate(texts):
        for number in range(times):
            text = laid_out((dialect, filled_in(sql, choice)), choice)
            inspector = remembering if number % 2 else Inspector()
            found = inspector.fingerprint(text, dialect)
            together[label, found.template_id] += 1
            astray.setdefault(label, {}).setdefault(found.template_id, found.template)
    labels: Counter[int] = Counter()
    ids: Counter[str] = Counter()
    for (label, template_id), count in together.items():
        labels[label] += count
        ids[template_id] += count
    agreed, belonging, put = (
        sum(count * (count - 1) // 2 for count in counter.values())
        for counter in (together, labels, ids)
    )
    return {
        "texts": sum(labels.values()),
        "pairs_made_from_one_template": belonging,
        "pairs_put_together": put,
        "precision": agreed / put,
        "recall": agreed / belonging,
        "f1": 2 * agreed / (belonging + put),
        "split": [list(found.values()) for found in astray.values() if len(found) > 1],
        "mixed_up": sum(
            1
            for template_id in ids
            if len({label for label, other in together if other == template_id}) > 1
        ),
    }


def run(times: int, seed: int = 11) -> dict[str, Any]:
    choice = random.Random(seed)  # noqa: S311 the same texts in every run
    texts = corpus()
    coverage, pairs = covered(texts, choice), paired(texts, times, choice)
    figures = {"covered_ratio": coverage["covered_ratio"], "pair_f1": pairs["f1"]}
    return {
        "benchmark": "templates",
        "coverage": coverage,
        "pairs": pairs,
        "figures": figures,
        "limits": LIMITS,
        "ok": all(figures[name] >= limit for name, limit in LIMITS.items()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=12, help="texts per template")
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    result = run(given.times)
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
