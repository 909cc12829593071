"""Column usage: F1 of (clause, table, column) against DuckDB's bound plan, over TPC-H and TPC-DS.

    python benchmarks/usage.py

`_bound_plan` says which plan it is and what counts as what. Our side is `inspect`, once with the
tables' columns known and once from the text alone; the three filter roles are one clause. Counts
are summed over the queries (micro F1). Every disagreement is listed with its cause:

- "listed, read by nothing": a derived table, CTE or subquery lists a column that nothing outside
  reads. We count what is written, the plan's reading counts what is read;
- "passed on by a star": a column comes out of `SELECT *` and is used outside in another clause. We
  count it there only, the plan has a projection in between;
- "unexplained": none of these; there must be none.

`strict` is the same without the reading's rule for columns that nothing reads: every star of an
EXISTS counts in full.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, its folder is on the path only

from benchmarks._bound_plan import Use, uses
from lakehouse_core.duck import connect
from lakehouse_core.sql import Inspector

TABLES = {"tpch": "CALL dbgen(sf = 0)", "tpcds": "CALL dsdgen(sf = 0)"}
QUERIES = {
    "tpch": "SELECT query_nr, query FROM tpch_queries() ORDER BY query_nr",
    "tpcds": "SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr",
}
COLUMNS = "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
PLAN = "SELECT json_serialize_plan($1::VARCHAR, optimize := false)"
LIMITS = {"f1": 0.98}
LISTED, STARRED, UNEXPLAINED = "listed, read by nothing", "passed on by a star", "unexplained"


@dataclass
class Score:
    """Agreement, summed over queries."""

    agreed: int = 0
    ours_only: int = 0
    plan_only: int = 0

    def add(self, ours: set[Use], plan: set[Use]) -> None:
        """Count the uses of one query."""
        self.agreed += len(ours & plan)
        self.ours_only += len(ours - plan)
        self.plan_only += len(plan - ours)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.agreed / (2 * self.agreed + self.ours_only + self.plan_only)

    def shown(self) -> dict[str, float]:
        """The score and what it is made of."""
        return {
            "f1": self.f1,
            "precision": self.agreed / (self.agreed + self.ours_only),
            "recall": self.agreed / (self.agreed + self.plan_only),
            "agreed": self.agreed,
            "ours_only": self.ours_only,
            "plan_only": self.plan_only,
        }


@dataclass
class Comparison:
    """Scores of one set of queries."""

    queries: int = 0
    with_schema: Score = field(default_factory=Score)
    text_alone: Score = field(default_factory=Score)
    strict: Score = field(default_factory=Score)
    clauses: dict[str, Score] = field(default_factory=dict)
    disagreements: list[dict[str, Any]] = field(default_factory=list)


def ours(inspector: Inspector, sql: str, schema: dict[str, list[str]] | None) -> set[Use]:
    found = inspector.inspect(sql, "duckdb", schema=schema)
    assert found.error is None, found.error
    return {(use.role.split("_")[0], use.table, use.column) for use in found.columns}


def cause(side: str, use: Use, mine: set[Use], everything: set[Use]) -> str:
    """Why we and the plan disagree on a use; `everything` is the strict reading."""
    is_project = use[0] == "project"
    if side == "ours" and is_project and use in everything:
        return LISTED
    has_other = any(clause != "project" and rest == list(use[1:]) for clause, *rest in mine)
    return STARRED if side == "plan" and is_project and has_other else UNEXPLAINED


def compare(name: str) -> Comparison:
    result, inspector = Comparison(), Inspector()
    with connect(extensions=(name,)) as connection:
        connection.execute(TABLES[name])
        schema: dict[str, list[str]] = {}
        for table, column in connection.execute(COLUMNS).fetchall():
            schema.setdefault(table, []).append(column)
        for number, sql in connection.execute(QUERIES[name]).fetchall():
            row = connection.execute(PLAN, [sql]).fetchone()
            assert row is not None
            bound = json.loads(row[0])
            plan, everything = uses(bound), uses(bound, is_strict=True)
            mine = ours(inspector, sql, schema)
            result.queries += 1
            result.with_schema.add(mine, plan)
            result.strict.add(mine, everything)
            result.text_alone.add(ours(inspector, sql, None), plan)
            for clause in {use[0] for use in mine | plan}:
                result.clauses.setdefault(clause, Score()).add(
                    {use for use in mine if use[0] == clause},
                    {use for use in plan if use[0] == clause},
                )
            for side, differing in (("ours", mine - plan), ("plan", plan - mine)):
                result.disagreements += [
                    {
                        "query": f"{name} {number}",
                        "only": side,
                        "use": list(use),
                        "cause": cause(side, use, mine, everything),
                    }
                    for use in sorted(differing)
                ]
    return result


def total(scores: list[Score]) -> Score:
    return Score(
        sum(score.agreed for score in scores),
        sum(score.ours_only for score in scores),
        sum(score.plan_only for score in scores),
    )


def run() -> dict[str, Any]:
    compared = {name: compare(name) for name in QUERIES}
    every = list(compared.values())
    disagreements = [one for result in every for one in result.disagreements]
    causes = Counter(one["cause"] for one in disagreements)
    figures = {
        "f1": total([result.with_schema for result in every]).f1,
        "f1_text_alone": total([result.text_alone for result in every]).f1,
        "f1_strict": total([result.strict for result in every]).f1,
    }
    return {
        "benchmark": "usage",
        "queries": {name: result.queries for name, result in compared.items()},
        "by_queries": {name: result.with_schema.shown() for name, result in compared.items()},
        "by_clause": {
            clause: total([r.clauses[clause] for r in every if clause in r.clauses]).shown()
            for clause in sorted({clause for result in every for clause in result.clauses})
        },
        "causes": dict(causes),
        "disagreements": disagreements,
        "figures": figures,
        "limits": LIMITS,
        "ok": figures["f1"] >= LIMITS["f1"] and not causes[UNEXPLAINED],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    result = run()
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
