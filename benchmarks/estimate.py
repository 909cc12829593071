"""Scan estimate of a table of 10,000 files against pyiceberg's planning, in memory and never below.

    python benchmarks/estimate.py --json

Figures: milliseconds of an estimate from the text on (template known, new literals), the same for a
template nobody has seen, and estimated files by planned files of every statement: 1 is exact, less
must not happen.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, its folder is on the path only
from benchmarks.metadata import TABLE, build
from lakehouse_core.catalog.avro_reader import AvroReader
from lakehouse_core.catalog.estimate import pruned
from lakehouse_core.catalog.estimate_tables import BoundsMemory
from lakehouse_core.catalog.reader import TableReader
from lakehouse_core.catalog.sqlite import SqliteLake
from lakehouse_core.domain.query import StatementKind
from lakehouse_core.routing.features_scan import LakeScanEstimator
from lakehouse_core.routing.request import Request, StatementFacts
from lakehouse_core.sql import Inspector

if TYPE_CHECKING:
    from pyiceberg.table import Table

LIMITS = {"known_ms": 1.0, "new_ms": 2.0, "least_ratio": 1.0}
# SQL, and the same for pyiceberg.
STATEMENTS = (
    ("id = {0}", "id == {0}"),
    ("id BETWEEN {0} AND {1}", "id >= {0} and id <= {1}"),
    ("region = 'r1' AND id > {0}", "region == 'r1' and id > {0}"),
    ("region IN ('r1', 'r2') OR id < {0}", "region in ('r1', 'r2') or id < {0}"),
    ("NOT (id < {0} OR region = 'r3')", "not (id < {0} or region == 'r3')"),
    ("c5 >= {0} AND c7 < {1} AND c4 LIKE 'v1%'", None),
)


def statement(condition: str, low: int, *, extra: str = "") -> str:
    filled = condition.format(low, low + 500)
    return f"SELECT count(*), sum(c5){extra} FROM {TABLE} WHERE {filled}"  # noqa: S608 made up


def timed(estimator: LakeScanEstimator, inspector: Inspector, texts: list[str]) -> float:
    """Median milliseconds of one estimate."""
    found = []
    for text in texts:
        facts = StatementFacts(
            inspector.fingerprint(text, "trino").template_id, StatementKind.SELECT, (str(TABLE),)
        )
        started = time.perf_counter()
        estimate = estimator.estimate(Request(sql=text, dialect="trino"), facts)
        found.append((time.perf_counter() - started) * 1_000)
        assert estimate.files is not None, estimate.basis
    return statistics.median(found)


def ratios(table: Table, bounds: Any) -> list[float]:
    """Estimated files by planned files."""
    found = []
    for condition, expression in STATEMENTS:
        if expression is None:
            continue
        scans = Inspector().scans(statement(condition, 700), "trino")
        assert scans is not None
        planned = len(list(table.scan(row_filter=expression.format(700, 1_200)).plan_files()))
        estimated = pruned(bounds.data, scans[0].condition).files
        found.append(1.0 if estimated == planned else estimated / max(planned, 1))
    return found


def run(folder: Path, files: int) -> dict[str, Any]:
    lake = SqliteLake("lake", folder / "catalog.db", folder / "warehouse")
    table = build(lake, files, 20)
    reader = TableReader(lake, folder / "cache", AvroReader())
    started = time.perf_counter()
    bounds = reader.bounds(reader.read(TABLE))
    load_seconds = time.perf_counter() - started
    memory = BoundsMemory()
    memory.keep(str(TABLE), bounds)
    inspector = Inspector()
    estimator = LakeScanEstimator(memory, inspector)
    warm = [statement(condition, 1) for condition, _ in STATEMENTS]
    timed(estimator, inspector, warm)
    known = [statement(one, low) for low in range(10, 60) for one, _ in STATEMENTS]
    new = [
        statement(one, low, extra=f", max(m{low})") for low in range(20) for one, _ in STATEMENTS
    ]
    compared = ratios(table, bounds)
    figures = {
        "known_ms": timed(estimator, inspector, known),
        "new_ms": timed(estimator, Inspector(), new),
        "least_ratio": min(compared),
    }
    return {
        "benchmark": "estimate",
        "data_files": files,
        "load_seconds": load_seconds,
        "memory_mib": bounds.nbytes / 2**20,
        "estimated_by_planned": compared,
        "load_average": os.getloadavg()[0],
        "figures": figures,
        "limits": LIMITS,
        "ok": figures["known_ms"] <= LIMITS["known_ms"]
        and figures["new_ms"] <= LIMITS["new_ms"]
        and figures["least_ratio"] >= LIMITS["least_ratio"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), given.files)
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
