"""Routing: how long a decision takes, and what it adds to a bare look-up.

    python benchmarks/routing.py [--json]

Texts: the 99 queries of TPC-DS, as DuckDB ships them, to an engine of their dialect. The router has
what the demo profile has and more: eight routers of every kind that none of the texts match, a
group of three members, limits and breakers; no translator and no guard, which have figures of their
own. A decision is measured whole: facts of the text, rules, feasibility, strategy, trace.

- same text: the very text was seen before;
- known template: the text is new, its template is not (other literals);
- new text: neither was seen before;
- predicted: as known template, in a group that is latencyOptimized, with 64 runs of each template
  on each of three engines and the scan estimated from bounds of 1,000 files per table;
- promised: the same with a latency bound.

Beside them, in the same rounds: what a decision must at least cost, sqlglot's tokens of the text.
A decision waits for nothing, so its time is that of the processor (`thread_time`): where others use
the machine too, a clock on the wall would measure them.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import re
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from lakehouse_core.catalog.estimate import FileBounds
from lakehouse_core.catalog.estimate_tables import BoundsMemory, TableBounds
from lakehouse_core.config.models import DuckDBEngine
from lakehouse_core.config.routing import RoutingConfig
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.duck import connect
from lakehouse_core.routing.decide import Plan, Ports
from lakehouse_core.routing.facts import Facts
from lakehouse_core.routing.features_scan import LakeScanEstimator
from lakehouse_core.routing.groups import lay_out
from lakehouse_core.routing.predict import LearningPredictor
from lakehouse_core.routing.profiles import ProfileBook, Run
from lakehouse_core.routing.request import EngineStanding, Request
from lakehouse_core.routing.router import Router
from lakehouse_core.routing.rules import compile_rules
from lakehouse_core.sql.dialect import dialect_named
from lakehouse_core.sql.inspector import Inspector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse_core.domain.query import EngineId

LIMITS = {
    "same_text_p50_ms": 0.1,
    "known_template_p50_ms": 0.1,
    "new_text_p50_ms": 1.0,
    "predicted_p50_ms": 0.3,
    "promised_p50_ms": 0.3,
}
ROUNDS = 15
ENGINES = {f"duck-{n}": DuckDBEngine(type="duckdb", catalog="lake") for n in range(3)}
MISSED = [
    {"type": "protocolBased", "postgresWire": "other"},
    {"type": "header", "headerName": "x-target", "headerValueToGroup": {"other": "other"}},
    {"type": "userGroup", "userToGroup": {"nobody": "other"}},
    {"type": "tags", "rules": [{"tags": {"etl": None}, "targetGroup": "other"}]},
    {"type": "queryRegex", "rules": [{"regex": r"(?i)^\s*insert\b", "targetGroup": "other"}]},
    {
        "type": "compound",
        "conditions": [
            {"type": "user", "username": "nobody"},
            {"type": "queryRegex", "regex": "x"},
        ],
        "targetGroup": "other",
    },
    {"type": "pythonScript", "script": "def route(query, ctx):\n    return None"},
    {"type": "headerBased", "rules": [{"header": "x", "value": "y", "targetGroup": "other"}]},
]
NUMBER = re.compile(r"(?<=[\s(=<>,])\d+(?=[\s),;])")


class Well:
    """A fleet in which all is well."""

    _standing = EngineStanding()

    def standing(self, engine_id: EngineId) -> EngineStanding:
        """Well."""
        del engine_id
        return self._standing


def new_router(
    predicted: LearningPredictor | None = None, inspector: Inspector | None = None, **group: Any
) -> Router:
    routing = RoutingConfig.model_validate(
        {
            "clusterGroups": {
                "all": {
                    "members": list(ENGINES),
                    "strategy": {"type": "latencyOptimized" if predicted else "leastLoaded"},
                    "maxRunningQueries": 4,
                    **group,
                },
                "other": {"members": ["duck-0"]},
            },
            "routers": MISSED,
            "routingFallback": "all",
        }
    )
    plan = Plan(
        rules=compile_rules(routing.routers), layout=lay_out(routing, ENGINES, {}, ("lake",))
    )
    facts = Facts(inspector or Inspector())
    return Router(plan, Ports(fleet=Well(), predictor=predicted, facts=facts))


def new_predictor(texts: Sequence[str], inspector: Inspector) -> LearningPredictor:
    """One that knows every template from 64 runs on each engine, and every table's files."""
    book, memory = ProfileBook(), BoundsMemory()
    files = FileBounds(np.full(1_000, 10**8), np.full(1_000, 10**6), {})
    now = utc_now()
    for text in texts:
        facts = Facts(inspector).of(Request(sql=text, dialect="duckdb"))
        for table in facts.tables:
            memory.keep(table, TableBounds(1, "m.json", files, (), frozenset()))
        for number, engine in itertools.product(range(64), ENGINES):
            seconds = 1.0 + number / 100 + len(engine) % 3
            book.record(Run(facts.template_id, engine, now, seconds, 1e9, name=f"q{number}"))
    estimator = LakeScanEstimator(memory, inspector)
    return LearningPredictor(book, estimator=estimator, inspector=inspector)


def tpcds() -> list[str]:
    with connect(extensions=("tpcds",)) as connection:
        rows = connection.execute("SELECT query FROM tpcds_queries() ORDER BY query_nr").fetchall()
    return [text for (text,) in rows]


def with_other_numbers(text: str, number: int) -> str:
    return NUMBER.sub(lambda m: str(int(m[0]) + number), text)


def timed(decide: Callable[[Request], Any], texts: Sequence[str]) -> list[float]:
    """Milliseconds of each."""
    found = []
    for text in texts:
        request = Request(sql=text, dialect="duckdb", user="ana", source="bench")
        began = time.thread_time_ns()
        decide(request)
        found.append((time.thread_time_ns() - began) / 1e6)
    return found


def measure(texts: list[str]) -> dict[str, list[float]]:
    warm = new_router()
    timed(warm.decide, texts)
    inspector = Inspector()  # one for all, as in the gateway
    predictor = new_predictor(texts, inspector)
    predicted = new_router(predictor, inspector)
    promised = new_router(predictor, inspector, prediction={"latencyBoundSecs": 60})
    timed(predicted.decide, texts)
    timed(promised.decide, texts)
    language = dialect_named("duckdb")
    found: dict[str, list[float]] = {
        "tokens": [],
        "same_text": [],
        "known_template": [],
        "new_text": [],
        "predicted": [],
        "promised": [],
    }
    for round_number in range(1, ROUNDS + 1):
        fresh = new_router()
        gc.collect()
        gc.disable()
        found["tokens"] += timed(lambda request: language.tokenize(request.sql), texts)
        found["same_text"] += timed(warm.decide, texts)
        others = [with_other_numbers(text, round_number) for text in texts]
        found["known_template"] += timed(warm.decide, others)
        found["new_text"] += timed(fresh.decide, texts)
        found["predicted"] += timed(predicted.decide, others)
        found["promised"] += timed(promised.decide, others)
        gc.enable()
    return found


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def figures() -> dict[str, Any]:
    texts = tpcds()
    found = measure(texts)
    result: dict[str, Any] = {
        "texts": len(texts),
        "median_characters": int(statistics.median(map(len, texts))),
        "rounds": ROUNDS,
    }
    for name, values in found.items():
        result[f"{name}_p50_ms"] = round(statistics.median(values), 4)
        result[f"{name}_p95_ms"] = round(quantile(values, 0.95), 4)
    tokens = result["tokens_p50_ms"]
    result["known_template_of_tokens_ratio"] = round(result["known_template_p50_ms"] / tokens, 3)
    result["new_text_of_tokens_ratio"] = round(result["new_text_p50_ms"] / tokens, 3)
    result["limits"] = LIMITS
    result["is_within_limits"] = all(result[name] <= limit for name, limit in LIMITS.items())
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    result = figures()
    if chosen.json:
        print(json.dumps(result, indent=2))
    else:
        for name, value in result.items():
            print(f"{name:34} {value}")
    return 0 if result["is_within_limits"] else 1


if __name__ == "__main__":
    sys.exit(main())
