"""Routing by prediction against the best single engine and the oracle, on workloads of many shapes.

    python benchmarks/evaluate.py --json
    python benchmarks/evaluate.py --shape scan_crossover --seeds 5
    python benchmarks/evaluate.py --timed       # TPC-H on DuckDB in three settings, really run
    python benchmarks/evaluate.py --live        # a stream: drift, failures, prices, absurd timings

Each shape is generated with known structure (`_workloads.py`), written to Parquet and evaluated as
`lakehelm route evaluate` does. Figures: share of the oracle's saving on repeated templates, how far
above the best single engine the rest may go, and how long a decision takes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, its folder is on the path only

from benchmarks import _timed_tpch
from benchmarks._routed_stream import WORLDS, simulate
from benchmarks._workloads import SHAPES, workload
from lakehouse_core.routing.evaluate import evaluate
from lakehouse_core.routing.evaluate_data import read_workload

# Repeated templates with something to save; with heavy tails the oracle mostly knows luck.
REPEATED = (
    "template_interaction",
    "template_few_runs",
    "missing_timings",
    "logged_only",
    "poisoned",
    "day_and_year",
    "day_and_year_unsaid",
)
TOLD_BY_FEATURES = ("scan_crossover", "scan_unsaid", "join_crossover", "window_crossover")
LATE = 0.15  # above the oracle, once each template has run 50 times since a change
LIMITS = {
    "least_share_repeated": 0.8,
    # Which of several engines that are alike wins a test part is luck: there the engine counts that
    # training took for the best.
    "most_above_default": 0.02,
    "most_above_best_single": 0.02,
    "decide_known_ms": 0.3,
    "decide_new_ms": 2.0,
}


def run_shape(name: str, seed: int, folder: Path) -> dict[str, Any]:
    return run_tables(name, seed, folder, workload(name, seed=seed))


def run_tables(
    name: str, seed: int, folder: Path, tables: tuple[pa.Table, pa.Table]
) -> dict[str, Any]:
    queries, timings = folder / "queries.parquet", folder / "timings.parquet"
    for path, table in zip((queries, timings), tables, strict=True):
        pq.write_table(table, path)
    found, _ = evaluate(read_workload(queries, timings, "seconds"))
    total = found.total
    return {
        "shape": name,
        "seed": seed,
        "above_best_single": total["ours"] / total["best_single"] - 1,
        "above_default": total["ours"] / total[found.default_engine] - 1,
        "oracle_saving": 1 - total["oracle"] / total["best_single"],
        "share_of_saving": found.saving_share,
        "ratio_to_oracle": found.ratio_to_oracle,
        "picked_best": found.picked_best_share,
        "abstained": found.abstained_share,
        "train_seconds": found.train_seconds,
        "decide_ms_p50": found.decide_ms_p50,
        "total": total,
        "wrong_default": found.default_engine != found.best_single_engine,
    }


def figures_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the limits are about; the mean over the seeds of a shape counts."""

    def mean(name: str, column: str) -> float:
        return float(np.mean([row[column] for row in rows if row["shape"] == name]))

    shapes = {row["shape"] for row in rows}
    repeated = [name for name in REPEATED if name in shapes]
    new = [name for name in shapes if SHAPES[name].seen == 0]
    figures: dict[str, Any] = {
        "most_above_default": max(mean(name, "above_default") for name in shapes),
    }
    told = [name for name in shapes if name in (*REPEATED, *TOLD_BY_FEATURES, "dominant")]
    if told:
        figures["most_above_best_single"] = max(mean(name, "above_best_single") for name in told)
    if repeated:
        figures["least_share_repeated"] = min(mean(name, "share_of_saving") for name in repeated)
        figures["decide_known_ms"] = max(mean(name, "decide_ms_p50") for name in repeated)
    if new:
        figures["decide_new_ms"] = max(mean(name, "decide_ms_p50") for name in new)
    return figures


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        (
            f"{'shape':22} {'above best':>10} {'worst':>7} {'oracle':>7} {'share':>7} {'abst.':>6} "
            f"{'best':>6} {'train s':>7} {'ms p50':>7}"
        )
    ]
    for name in dict.fromkeys(row["shape"] for row in rows):
        some = [row for row in rows if row["shape"] == name]

        def mean(column: str, some: list[dict[str, Any]] = some) -> float:
            return float(np.mean([row[column] or 0 for row in some]))

        worst = max(row["above_best_single"] for row in some)
        lines.append(
            f"{name:22} {mean('above_best_single'):10.1%} {worst:7.1%} "
            f"{mean('oracle_saving'):7.1%} {mean('share_of_saving'):7.1%} "
            f"{mean('abstained'):6.0%} {mean('picked_best'):6.0%} "
            f"{mean('train_seconds'):7.1f} {mean('decide_ms_p50'):7.2f}"
        )
    return "\n".join(lines)


def live(seeds: int) -> dict[str, Any]:
    """Every world of the stream; `late_regret` is what is lost after a change was noticed."""
    rows = [simulate(name, seed=seed) for name in WORLDS for seed in range(seeds)]
    late = {
        name: float(np.mean([row["late_above_oracle"] for row in rows if row["world"] == name]))
        for name in WORLDS
    }
    return {
        "benchmark": "evaluate_live",
        "rows": rows,
        "figures": {"late_above_oracle": late},
        "limits": {"late_above_oracle": LATE},
        "ok": all(one <= LATE for one in late.values()),
    }


def timed() -> dict[str, Any]:
    """TPC-H, really run; four templates are new to the predictor."""
    with tempfile.TemporaryDirectory() as folder:
        row = run_tables("tpch", 0, Path(folder), _timed_tpch.workload(Path(folder)))
    limit = LIMITS["most_above_best_single"]
    return {
        "benchmark": "evaluate_timed",
        "rows": [row],
        "load_average": os.getloadavg()[0],
        "figures": {"above_best_single": row["above_best_single"]},
        "limits": {"above_best_single": limit},
        "ok": row["above_best_single"] <= limit,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", action="append", choices=[*SHAPES], help="only this one")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--timed", action="store_true", help="run TPC-H on DuckDB instead")
    parser.add_argument("--live", action="store_true", help="route a stream instead")
    parser.add_argument("--json", action="store_true", help="one line instead of a table")
    given = parser.parse_args()
    if given.live:
        result = live(given.seeds)
    elif given.timed:
        result = timed()
    else:
        rows = []
        with tempfile.TemporaryDirectory() as folder:
            for name in given.shape or SHAPES:
                rows += [run_shape(name, seed, Path(folder)) for seed in range(given.seeds)]
                if not given.json:
                    print(table(rows[-given.seeds :]).split("\n")[-1], file=sys.stderr)
        figures = figures_of(rows)
        ok = all(
            figures[name] >= limit if name.startswith("least") else figures[name] <= limit
            for name, limit in LIMITS.items()
            if name in figures
        )
        result = {
            "benchmark": "evaluate",
            "rows": rows,
            "load_average": os.getloadavg()[0],
            "figures": figures,
            "limits": LIMITS,
            "ok": ok,
        }
        if not given.json:
            print(table(rows))
            result.pop("rows")
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
