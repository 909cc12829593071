"""What `tpc_engines.py` measured, counted: by money and by time, by place, and at other prices."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_core.routing.evaluate import evaluate
from lakehouse_core.routing.evaluate_data import Workload
from lakehouse_core.routing.learned import valuations_of

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config

ENGINES = ("duckdb", "spark", "trino")
MOST_ABOVE = 0.02
# One engine may win nearly everything on one machine; at these prices it does not.
DEARER = (1, 2, 4, 6, 8, 10)


@dataclass(frozen=True)
class Asked:
    """One statement of the workload."""

    suite: str
    number: int
    namespace: str
    variant: int
    sql: str  # DuckDB's dialect, tables with their full names
    tables: int


@dataclass
class Measured:
    """What was run: seconds by statement and engine, and what did not go well."""

    seconds: Any
    failed: list[str]
    unequal: list[str]
    kept: list[str]


def static(asked: Asked) -> str:
    """A rule set as people write them."""
    if asked.tables >= 4:
        return "spark"
    return "trino" if asked.tables == 3 else "duckdb"


def is_routed(asked: Asked, variants: int) -> bool:
    """Whether a statement is of the part that is routed; the rest is learnt from."""
    return asked.variant >= variants - max(variants // 3, 1)


def priced(config: Config, seconds: Any) -> Any:
    """What the demo's price book says of every time."""
    price, sizes = valuations_of(config)["cost"], np.full(len(seconds), np.nan)
    columns = [price(name, seconds[:, at], sizes) for at, name in enumerate(ENGINES)]
    return np.stack(columns, axis=1)


def keep(folder: Path, statements: list[Asked], found: Measured, dollars: Any, parts: Any) -> None:
    """Everything that every engine answered, as `lakehelm route evaluate` reads it."""
    rows = np.flatnonzero(np.isfinite(found.seconds).all(axis=1))
    ids = [
        f"{statements[at].namespace}.{statements[at].number}.{statements[at].variant}"
        for at in rows
    ]
    queries = {
        "query_id": ids,
        "sql": [statements[at].sql for at in rows],
        "dialect": ["duckdb"] * len(rows),
        "split": ["test" if parts[at] else "train" for at in rows],
    }
    timings = {
        "query_id": np.repeat(ids, len(ENGINES)),
        "engine": list(ENGINES) * len(rows),
        "seconds": found.seconds[rows].ravel(),
        "cost_usd": dollars[rows].ravel(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(queries), folder / "queries.parquet")
    pq.write_table(pa.table(timings), folder / "timings.parquet")


def by_place(namespaces: list[str], seconds: Any) -> dict[str, Any]:
    """Where which engine is fast: seconds of each, and the statements it was fastest for."""
    found = {}
    fastest = seconds.argmin(axis=1)
    for place in dict.fromkeys(namespaces):
        here = np.array([one == place for one in namespaces])
        found[place] = {
            name: {
                "seconds": float(seconds[here, at].sum()),
                "fastest_for": int((fastest[here] == at).sum()),
            }
            for at, name in enumerate(ENGINES)
        }
    return found


def at_other_prices(own: Workload) -> dict[str, Any]:
    """What routing brings when DuckDB's machine is so many times as dear, at the same timings."""
    found = {}
    for times in DEARER:
        values = own.values.copy()
        values[:, ENGINES.index("duckdb")] *= times
        report, _ = evaluate(replace(own, values=values))
        total = report.total
        found[str(times)] = {
            "best_single_engine": report.best_single_engine,
            "total": total,
            "above_best_single": total["ours"] / total["best_single"] - 1,
            "share_of_saving": report.saving_share,
            "abstained": report.abstained_share,
        }
    return found


def figures(statements: list[Asked], found: Measured, dollars: Any, parts: Any) -> Any:
    """The tables, by money and by time."""
    chosen = np.flatnonzero(np.isfinite(found.seconds).all(axis=1))
    asked = [statements[at] for at in chosen]
    seconds, tested = found.seconds[chosen], parts[chosen]
    rules = np.array([ENGINES.index(static(one)) for one in asked])[tested]
    own = Workload(
        query_ids=[str(at) for at in chosen],
        texts=[one.sql for one in asked],
        dialects=["duckdb"] * len(asked),
        scan_bytes=np.full(len(asked), np.nan),
        is_test=tested,
        engines=ENGINES,
        values=dollars[chosen],
    )
    money, money_above = _routed(own, rules)
    time, time_above = _routed(replace(own, values=seconds), rules)
    prices = at_other_prices(own)
    above = [money_above, time_above, *(one["above_best_single"] for one in prices.values())]
    return {
        "statements": len(asked),
        "routed": int(tested.sum()),
        "table": {"cost_usd": money, "seconds": time},
        "above_best_single": {"cost_usd": money_above, "seconds": time_above},
        "duckdb_times_as_dear": prices,
        "places": by_place([one.namespace for one in asked], seconds),
        "failed": sorted(set(found.failed)),
        "unequal": sorted(set(found.unequal)),
        "kept": sorted(set(found.kept)),
        "load_average": os.getloadavg()[0],
        "is_within_limits": max(above) <= MOST_ABOVE,
    }


def _routed(own: Workload, rules: Any) -> tuple[dict[str, Any], float]:
    """Total and p95 of every way to choose, and how far ours is above the best single engine."""
    report, choices = evaluate(own)
    part = own.values[own.is_test]
    rows = np.arange(len(part))
    picked = {
        **{name: np.full(len(part), at) for at, name in enumerate(ENGINES)},
        "static rules": rules,
        "ours": np.array([ENGINES.index(one.engine) for one in choices]),
        "oracle": part.argmin(axis=1),
    }
    table = {
        name: {
            "total": float(part[rows, at].sum()),
            "p95": float(np.quantile(part[rows, at], 0.95)),
        }
        for name, at in picked.items()
    }
    table["ours"]["abstained"] = report.abstained_share
    return table, report.total["ours"] / report.total["best_single"] - 1
