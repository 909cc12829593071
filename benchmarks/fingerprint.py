"""Fingerprint: texts per second of one core, known and new, and a stream against analysing each.

    python benchmarks/fingerprint.py --json

Known: a template seen before, with literals never seen before. New: a template never seen before,
so a full parse. Literals: known texts with the predicates and values of each. Stream: events over
repeated templates, inspected with and without memory. Times are CPU seconds of this process (it
has one thread), best of many short passes: what one core can do when nobody disturbs it.
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
from functools import partial
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
    """The same statement with another word in it, so that nobody has seen its template."""
    dialect, sql = text
    for token in Dialect.get_or_raise(dialect).tokenize(sql):
        end = token.end + 1
        if token.token_type == TokenType.SELECT:
            return dialect, f"{sql[:end]} extra_{number},{sql[end:]}"
        if token.token_type in (TokenType.WHERE, TokenType.ON):
            return dialect, f"{sql[:end]} extra_{number} = 1 AND{sql[end:]}"
    for old, new_one in (
        ("SELECT ", "SELECT extra_{},"),
        ("INTO t", "INTO t_{}"),
        ("lake.", "l_{}."),
    ):
        if old in sql:
            return dialect, sql.replace(old, new_one.format(number), 1)
    raise AssertionError(f"nothing to change in {sql}")


def per_second(texts: Sequence[Text], call: Callable[[str, str], object]) -> float:
    """Texts per CPU second, one pass."""
    gc.collect()
    started = time.process_time()
    for dialect, sql in texts:
        call(sql, dialect)
    return len(texts) / (time.process_time() - started)


def best(one_pass: Callable[[], float], seconds: float) -> float:
    """The best of the passes that fit in a time."""
    end = time.monotonic() + seconds
    found = one_pass()
    while time.monotonic() < end:
        found = max(found, one_pass())
    return found


def known(texts: Sequence[Text], seconds: float, *, literals: bool = False) -> float:
    inspector = Inspector()
    call = partial(inspector.inspect, literals=literals)
    for dialect, sql in texts:
        call(sql, dialect)
    numbers = itertools.count(100)

    def one_pass() -> float:
        number = next(numbers)
        return per_second([with_new_literals(text, number) for text in texts], call)

    return best(one_pass, seconds)


def new(texts: Sequence[Text], seconds: float, *, usage: bool = False) -> float:
    inspector = Inspector()
    call = inspector.inspect if usage else inspector.fingerprint
    numbers = itertools.count()

    seen: set[str] = set()

    def one_pass() -> float:
        fresh = [with_new_template(text, next(numbers)) for text in texts]
        speed = per_second(fresh, call)
        ids = {inspector.fingerprint(sql, dialect).template_id for dialect, sql in fresh}
        assert len(ids) == len(texts)
        assert not ids & seen
        seen.update(ids)
        return speed

    return best(one_pass, seconds)


def parsed(texts: Sequence[Text], seconds: float) -> float:
    """What sqlglot's tokens and tree alone cost: the floor of a new text."""

    def parse(sql: str, dialect: str) -> object:
        return Dialect.get_or_raise(dialect).parse(sql)

    return best(lambda: per_second(texts, parse), seconds)


def stream(texts: Sequence[Text], events: int, seconds: float) -> dict[str, float]:
    """Events over repeated templates: with memory, and analysing each."""
    choice = random.Random(7)  # noqa: S311 the same stream in every run
    sequence = [with_new_literals(choice.choice(texts), number) for number in range(1, events + 1)]

    def alone(sql: str, dialect: str) -> object:
        return Inspector().inspect(sql, dialect)

    return {
        "remembered_per_second": best(lambda: per_second(sequence, Inspector().inspect), seconds),
        "analysing_each_per_second": best(lambda: per_second(sequence, alone), seconds),
    }


def run(seconds: float, events: int) -> dict[str, Any]:
    found = corpora()
    everything = [text for texts in found.values() for text in texts]
    typical = found["bi"] + found["tpch"]
    by_corpus = {
        name: {
            "statements": len(texts),
            "mean_characters": sum(len(sql) for _, sql in texts) / len(texts),
            "known_texts_per_second": known(texts, seconds),
            "known_texts_with_literals_per_second": known(texts, seconds, literals=True),
            "new_texts_per_second": new(texts, seconds),
            "new_texts_with_usage_per_second": new(texts, seconds, usage=True),
            "sqlglot_parse_alone_per_second": parsed(texts, seconds),
        }
        for name, texts in found.items()
    }
    streamed = stream(everything, events, seconds)
    figures = {
        "known_texts_per_second": known(everything, seconds),
        "known_texts_with_literals_per_second": known(everything, seconds, literals=True),
        "new_texts_per_second": new(typical, seconds),
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
    parser.add_argument("--seconds", type=float, default=3.0, help="per figure")
    parser.add_argument("--events", type=int, default=2_000)
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    result = run(given.seconds, given.events)
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
