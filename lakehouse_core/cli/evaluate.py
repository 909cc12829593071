"""`lakehelm route evaluate`: how well the predictor would route a recorded workload."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakehouse_core.cli.output import JsonFlag, Output, QuietFlag

if TYPE_CHECKING:
    from lakehouse_core.routing.evaluate import Evaluation
    from lakehouse_core.routing.evaluate_data import Workload
    from lakehouse_core.routing.predict_choice import Choice


class Objective(StrEnum):
    """What is to be small."""

    SECONDS = "seconds"
    COST = "cost"


def evaluate(
    queries: Annotated[
        Path, typer.Option(help="Parquet: query_id, sql, dialect, split; optional: scan_bytes.")
    ],
    timings: Annotated[
        Path, typer.Option(help="Parquet: query_id, engine, seconds; optional: cost_usd, failed.")
    ],
    objective: Annotated[Objective, typer.Option(help="What is to be small.")] = Objective.SECONDS,
    choices: Annotated[
        Path | None, typer.Option(help="Write the choice for every test query here, as Parquet.")
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Train the predictor on the rows with split = 'train', route those with split = 'test'.

    Any engines, any dialects, no schema: the files need not come from Lakehelm.
    """
    from lakehouse_core.routing import evaluate as offline  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.routing.evaluate_data import read_workload  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    workload = read_workload(queries, timings, objective.value)
    found, made = offline.evaluate(workload)
    if choices is not None:
        _write(choices, workload, made)
    if out.is_json:
        out.record(found)
        return
    _show(out, found, objective)


def _show(out: Output, found: Evaluation, objective: Objective) -> None:
    best = found.total["best_single"]
    rows = [
        {
            "policy": name,
            f"total_{objective.value}": total,
            "against_best_single": total / best - 1 if best else None,
            "p95": found.p95 if name == "ours" else found.p95_of.get(name),
        }
        for name, total in found.total.items()
    ]
    out.rows(rows, title=f"{found.test_queries} queries, learnt from {found.train_queries}")
    left_out = ("total", "p95_of", "p95")
    facts = {
        name: getattr(found, name) for name in found.__dataclass_fields__ if name not in left_out
    }
    out.record(facts, title="Routing")


def _write(path: Path, workload: Workload, made: list[Choice]) -> None:
    import pyarrow as pa  # noqa: PLC0415 keeps --help fast
    import pyarrow.parquet as pq  # noqa: PLC0415 as above

    tested = [
        one for one, is_test in zip(workload.query_ids, workload.is_test, strict=True) if is_test
    ]
    rows = pa.table(
        {
            "query_id": tested,
            "engine": [one.engine for one in made],
            "basis": [one.basis for one in made],
            "expected_gain": [one.gain for one in made],
            "reason": [one.reason for one in made],
        }
    )
    pq.write_table(rows, path)
