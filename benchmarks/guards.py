"""Guards: what they refuse and pass beside simpler ones, and what a decision costs.

    python benchmarks/guards.py --json

Known: a text whose shape was seen before, with literals never seen before. New: a shape never seen
before, so a full parse; TPC-DS texts, the largest there are. Masked: the same on tables of which
the role sees masked columns and some rows, so a second parse proves the changed text. Times are CPU
milliseconds of this process, the median over the texts of the best of several passes each.
Peers on both corpora: a prefix pattern, sqlglot's root type, and DuckDB's own json_serialize_sql.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlglot

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the corpora are the tests'

from benchmarks.fingerprint import with_new_literals, with_new_template  # noqa: E402 as above
from lakehouse_core.duck import connect  # noqa: E402 as above
from lakehouse_core.sql import Inspector  # noqa: E402 as above
from lakehouse_core.sql.guard import Gate, Policy, Relation, TableRule  # noqa: E402 as above
from lakehouse_core.sql.translate import translate  # noqa: E402 as above
from tests.unit.sql.guard.corpora import harmless, hostile  # noqa: E402 as above
from tests.unit.sql.tpc import COLUMNS, MAKE_TABLES, texts  # noqa: E402 as above

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.unit.sql.guard.corpora import Statement

PASSES = 7
PREFIX = re.compile(r"\s*(select|with|show|describe|explain|values|from)\b", re.IGNORECASE)
# A new text is parsed once, by whoever asks first; the router and the guard share 1 ms.
LIMITS = {
    "hostile_refused": 1.0,
    "harmless_passed": 0.99,
    "known_ms": 0.1,
    "new_after_inspection_ms": 0.5,
}


def by_prefix(statement: Statement) -> bool:
    return PREFIX.match(statement.sql) is not None


def by_root(statement: Statement) -> bool:
    try:
        roots = sqlglot.parse(statement.sql, read=statement.dialect)
    except Exception:  # noqa: BLE001 a peer: what it cannot read it refuses
        return False
    kinds = (sqlglot.exp.Query, sqlglot.exp.Describe, sqlglot.exp.Show, sqlglot.exp.Values)
    return len(roots) == 1 and isinstance(roots[0], kinds)


def by_duckdb() -> Callable[[Statement], bool]:
    connection = connect()

    def allowed(statement: Statement) -> bool:
        try:
            row = connection.execute(
                "SELECT json_extract_string(json_serialize_sql($sql::varchar), '$.error')",
                {"sql": statement.sql},
            ).fetchone()
        except Exception:  # noqa: BLE001 as above
            return False
        return row is not None and row[0] == "false"

    return allowed


def shares(allowed: Callable[[Statement], bool], dialect: str | None = None) -> dict[str, float]:
    wanted = [s for s in hostile() if dialect in (None, s.dialect)]
    passing = [s for s in harmless() if dialect in (None, s.dialect)]
    return {
        "hostile_refused": sum(not allowed(s) for s in wanted) / len(wanted),
        "harmless_passed": sum(map(allowed, passing)) / len(passing),
    }


def cost_ms(calls: Sequence[Sequence[Callable[[], object]]]) -> float:
    """The median over texts of the best pass of each; the passes of a text are different calls."""
    best = []
    for passes in calls:
        times = []
        for call in passes:
            started = time.process_time_ns()
            call()
            times.append((time.process_time_ns() - started) / 1e6)
        best.append(min(times))
    return statistics.median(best)


def masked_gate() -> Gate:
    """A role that sees one column of every TPC-DS table masked, and not every row."""
    with connect(extensions=("tpcds",)) as connection:
        connection.execute(MAKE_TABLES["tpcds"])
        tables: dict[str, list[str]] = {}
        for table, column in connection.execute(COLUMNS).fetchall():
            tables.setdefault(table, []).append(column)
    rules = tuple(
        TableRule(table=t, masks={c[-1]: "null"}, row_filter=f"{c[0]} IS NOT NULL")
        for t, c in tables.items()
    )
    return Gate(
        Policy(role="analyst", rules=rules), {t: Relation(tuple(c)) for t, c in tables.items()}
    )


def decisions(make: Callable[[], Gate]) -> dict[str, float]:
    corpus = [("duckdb", sql) for sql in texts("tpcds")]
    gate = make()
    known, new = [], []
    for text in corpus:
        gate.check(text[1], text[0])
        seen = [with_new_literals(text, number) for number in range(1_000, 1_000 + PASSES)]
        unseen = [with_new_template(text, number) for number in range(PASSES)]
        known.append([lambda t=t: gate.check(t[1], t[0]) for t in seen])
        new.append([lambda t=t: gate.check(t[1], t[0]) for t in unseen])
    return {
        "known_ms": cost_ms(known),
        "new_ms": cost_ms(new),
        "new_after_inspection_ms": after_inspection(make(), corpus),
    }


def after_inspection(gate: Gate, corpus: Sequence[tuple[str, str]]) -> float:
    """A new text that the router has just looked at: its tree is there already."""
    inspector = Inspector()
    best = []
    for text in corpus:
        times = []
        for number in range(PASSES):
            dialect, sql = with_new_template(text, number)
            inspector.inspect(sql, dialect)
            started = time.process_time_ns()
            gate.check(sql, dialect)
            times.append((time.process_time_ns() - started) / 1e6)
        best.append(min(times))
    return statistics.median(best)


def translations() -> dict[str, float]:
    calls = [
        [lambda s=sql: translate(s, "duckdb", "trino") for _ in range(PASSES)]
        for sql in texts("tpcds")
    ]
    return {"new_ms": cost_ms(calls)}


def figures() -> dict[str, Any]:
    gate = Gate(Policy(role="analyst"))
    ours = shares(lambda s: gate.check(s.sql, s.dialect).allowed)
    return {
        "hostile": len(hostile()),
        "harmless": len(harmless()),
        "ours": ours,
        "prefix_pattern": shares(by_prefix),
        "sqlglot_root_type": shares(by_root),
        "duckdb_serialize_on_its_own_dialect": shares(by_duckdb(), "duckdb"),
        "ours_on_duckdb": shares(lambda s: gate.check(s.sql, s.dialect).allowed, "duckdb"),
        "decision_tpcds": decisions(lambda: Gate(Policy(role="analyst"))),
        "decision_tpcds_masked": decisions(masked_gate),
        "translation_tpcds": translations(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    found = figures()
    plain = found["decision_tpcds"]
    found["within_limits"] = (
        found["ours"]["hostile_refused"] >= LIMITS["hostile_refused"]
        and found["ours"]["harmless_passed"] >= LIMITS["harmless_passed"]
        and plain["known_ms"] <= LIMITS["known_ms"]
        and plain["new_after_inspection_ms"] <= LIMITS["new_after_inspection_ms"]
    )
    print(json.dumps(found, indent=None if as_json else 2))
    return 0 if found["within_limits"] else 1


if __name__ == "__main__":
    sys.exit(main())
