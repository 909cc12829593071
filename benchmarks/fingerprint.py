"""Fingerprint: texts per second of one core, known and new, and a stream against analysing each.

    python benchmarks/fingerprint.py --json

Known: a template seen before, with literals never seen before. New: a template never seen before,
so a full parse. Stream: events over repeated templates, inspected with and without memory. Times
are CPU seconds of this process (it has one thread), best round of each: what one core can do.
Corpora: short BI statements (tests/golden/corpus.sql), TPC-H, TPC-DS.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlglot.parser
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

from lakehouse_core.duck import connect
from lakehouse_core.sql import Inspector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Text = tuple[str, str]  # dialect, statement

ROOT = Path(__file__).parents[1]
QUERIES = {
    "tpch": "SELECT query FROM tpch_queries() ORDER BY query_nr",
    "tpcds": "SELECT query FROM tpcds_queries() ORDER BY query_nr",
}
LIMITS = {"known_texts_per_second": 20_000, "new_texts_per_second": 1_500, "stream_ratio": 0.1}
# Literals here are positions or names, and a parse is right.
NOT_FREE = ("GROUP BY", "ORDER BY", ",", "(", ".", "{", "INTERVAL", "TIMESTAMP", "AS OF")


def corpora() -> dict[str, list[Text]]:
    blocks = (ROOT / "tests/golden/corpus.sql").read_text().split("-- dialect: ")[1:]
    found: dict[str, list[Text]] = {
        "bi": [(dialect, sql.strip()) for dialect, _, sql in (b.partition("\n") for b in blocks)]
    }
    with connect(extensions=tuple(QUERIES)) as connection:
        for name, query in QUERIES.items():
            found[name] = [("duckdb", row[0]) for row in connection.execute(query).fetchall()]
    return found


def with_new_literals(text: Text, number: int) -> Text:
    """The same statement with other values."""
    dialect, sql = text
    out, position, before = [], 0, ""
    for token in Dialect.get_or_raise(dialect).tokenize(sql):
        if token.start >= position and before not in NOT_FREE:
            is_string = token.token_type == TokenType.STRING and sql[token.start] == "'"
            if is_string or token.token_type == TokenType.NUMBER:
                value = f"'v{number}'" if is_string else str(number)
                source = sql[token.start : token.end + 1]
                is_plain = is_string or source.replace(".", "").isdecimal()
                out += [sql[position : token.start], value if is_plain else source]
                position = token.end + 1
        before = token.text.upper()
    return dialect, "".join(out) + sql[position:]


def with_new_template(text: Text, number: int) -> Text:
    """The same statement with one more column, so that nobody has seen its template."""
    dialect, sql = text
    index = sql.upper().find("SELECT ")
    if index < 0:
        return dialect, sql.replace("WHERE ", f"WHERE extra_{number} = 1 AND ", 1)
    return dialect, f"{sql[: index + 6]} extra_{number},{sql[index + 6 :]}"


def per_second(texts: Sequence[Text], call: Callable[[str, str], object]) -> float:
    """Texts per CPU second, one pass."""
    gc.collect()
    started = time.process_time()
    for dialect, sql in texts:
        call(sql, dialect)
    return len(texts) / (time.process_time() - started)


def known(texts: Sequence[Text], rounds: int) -> float:
    inspector = Inspector()
    for dialect, sql in texts:
        inspector.inspect(sql, dialect)
    best = 0.0
    for number in range(1, rounds + 1):
        values = range(number * 100, number * 100 + 5)
        fresh = [with_new_literals(text, value) for text in texts for value in values]
        best = max(best, per_second(fresh, inspector.inspect))
    return best


def new(texts: Sequence[Text], rounds: int, *, usage: bool = False) -> float:
    best = 0.0
    numbers = itertools.count()
    for _ in range(rounds):
        inspector = Inspector()
        call = inspector.inspect if usage else inspector.fingerprint
        fresh = [with_new_template(text, next(numbers)) for text in texts]
        best = max(best, per_second(fresh, call))
    return best


def parsed(texts: Sequence[Text], rounds: int) -> float:
    """What sqlglot's tokens and tree alone cost: the floor of a new text."""

    def parse(sql: str, dialect: str) -> object:
        return Dialect.get_or_raise(dialect).parse(sql)

    return max(per_second(texts, parse) for _ in range(rounds))


def stream(texts: Sequence[Text], events: int, rounds: int) -> dict[str, float]:
    """Events over repeated templates: with memory, and analysing each."""
    choice = random.Random(7)  # noqa: S311 the same stream in every run
    sequence = [with_new_literals(choice.choice(texts), number) for number in range(1, events + 1)]
    remembered, each = 0.0, 0.0
    for _ in range(rounds):
        remembered = max(remembered, per_second(sequence, Inspector().inspect))
        each = max(each, per_second(sequence, lambda sql, d: Inspector().inspect(sql, d)))
    return {"remembered_per_second": remembered, "analysing_each_per_second": each}


def run(rounds: int, events: int) -> dict[str, Any]:
    found = corpora()
    everything = [text for texts in found.values() for text in texts]
    typical = found["bi"] + found["tpch"]
    by_corpus = {
        name: {
            "statements": len(texts),
            "mean_characters": sum(len(sql) for _, sql in texts) / len(texts),
            "known_texts_per_second": known(texts, rounds),
            "new_texts_per_second": new(texts, rounds),
            "new_texts_with_usage_per_second": new(texts, rounds, usage=True),
            "sqlglot_parse_alone_per_second": parsed(texts, rounds),
        }
        for name, texts in found.items()
    }
    streamed = stream(everything, events, rounds)
    figures = {
        "known_texts_per_second": known(everything, rounds),
        "new_texts_per_second": new(typical, rounds),
        "stream_ratio": streamed["analysing_each_per_second"] / streamed["remembered_per_second"],
    }
    return {
        "benchmark": "fingerprint",
        "sqlglot_compiled": str(sqlglot.parser.__file__).endswith(".so"),
        "corpora": by_corpus,
        "stream": {"events": events, "templates": len(everything), **streamed},
        "load_average": os.getloadavg()[0],
        "figures": figures,
        "limits": LIMITS,
        "ok": figures["known_texts_per_second"] >= LIMITS["known_texts_per_second"]
        and figures["new_texts_per_second"] >= LIMITS["new_texts_per_second"]
        and figures["stream_ratio"] <= LIMITS["stream_ratio"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, default=2_000)
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    result = run(given.rounds, given.events)
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
