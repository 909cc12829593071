"""What the predictor makes of workloads whose structure is known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

from benchmarks._workloads import workload
from lakehouse_core.cli import main
from lakehouse_core.routing.evaluate import Evaluation, evaluate
from lakehouse_core.routing.evaluate_data import read_workload

if TYPE_CHECKING:
    from pathlib import Path


def evaluated(folder: Path, name: str, seed: int = 0) -> Evaluation:
    paths = write(folder, *workload(name, seed=seed, train=360, test=200))
    return evaluate(read_workload(*paths, "seconds"))[0]


def write(folder: Path, queries: pa.Table, timings: pa.Table) -> tuple[Path, Path]:
    paths = folder / "Q.parquet", folder / "T.parquet"
    pq.write_table(queries, paths[0])
    pq.write_table(timings, paths[1])
    return paths


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["template_interaction", "poisoned"])
def test_repeated_templates_get_most_of_what_there_is_to_save(tmp_path: Path, shape: str) -> None:
    found = evaluated(tmp_path, shape)
    assert found.saving_share is not None
    assert found.saving_share >= 0.8


@pytest.mark.slow
def test_literals_tell_engines_apart_within_a_template(tmp_path: Path) -> None:
    found = evaluate(read_workload(*write(tmp_path, *_by_literal()), "seconds"))[0]
    assert found.known_share == 1.0
    assert found.saving_share is not None
    assert found.saving_share >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["scan_crossover", "window_crossover"])
def test_new_templates_are_routed_by_what_features_tell(tmp_path: Path, shape: str) -> None:
    found = evaluated(tmp_path, shape)
    assert found.known_share == 0
    assert found.saving_share is not None
    assert found.saving_share >= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["unexplained", "dominant"])
def test_what_cannot_be_told_stays_with_the_default(tmp_path: Path, shape: str) -> None:
    found = evaluated(tmp_path, shape)
    assert found.total["ours"] <= 1.02 * found.total[found.default_engine]


def test_one_engine_alone_takes_everything(tmp_path: Path) -> None:
    queries, timings = workload("pure_noise", seed=0, train=40, test=20)
    only = timings.filter(pa.compute.equal(timings["engine"], timings["engine"][0]))
    found = evaluate(read_workload(*write(tmp_path, queries, only), "seconds"))[0]
    assert found.total["ours"] == found.total["oracle"]
    assert found.ratio_to_oracle == 1.0


@pytest.mark.slow
def test_noise_is_not_taken_for_knowledge(tmp_path: Path) -> None:
    found = evaluated(tmp_path, "pure_noise")
    assert found.abstained_share == 1.0


@pytest.mark.slow
def test_the_same_files_give_the_same_choices(tmp_path: Path) -> None:
    paths = write(tmp_path, *workload("half_seen", seed=3, train=150, test=60))
    first, second = (evaluate(read_workload(*paths, "seconds")) for _ in range(2))
    assert first[1] == second[1]
    assert first[0].model == second[0].model


def test_the_command_prints_what_is_documented(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries, timings = _small()
    paths = write(tmp_path, queries, timings)
    arguments = ["route", "evaluate", "--queries", str(paths[0]), "--timings", str(paths[1])]
    chosen = tmp_path / "choices.parquet"
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--objective", "seconds", "--choices", str(chosen), "--json"])
    assert ended.value.code == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert set(found["total"]) == {"ours", "best_single", "oracle", "random", "left", "right"}
    assert found["total"]["oracle"] <= found["total"]["ours"]
    for name in ("ratio_to_oracle", "p95", "picked_best_share", "abstained_share"):
        assert isinstance(found[name], float)
    assert found["train_seconds"] > 0
    assert found["decide_ms_p50"] > 0
    # The total can be counted again from the choices.
    made = pq.read_table(chosen).to_pylist()
    seconds = {(row["query_id"], row["engine"]): row["seconds"] for row in timings.to_pylist()}
    total = sum(seconds[row["query_id"], row["engine"]] for row in made)
    assert total == pytest.approx(found["total"]["ours"])


def test_a_refusal_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queries, timings = _small()
    paths = write(tmp_path, queries.drop_columns(["dialect"]), timings)
    with pytest.raises(SystemExit) as ended:
        main(["route", "evaluate", "--queries", str(paths[0]), "--timings", str(paths[1])])
    assert ended.value.code == 1
    assert "Q.parquet has no column 'dialect'" in capsys.readouterr().err


def _small() -> tuple[pa.Table, pa.Table]:
    """Two templates, each with an engine of its own; too few rows for a forest."""
    rng = np.random.default_rng(0)
    queries, timings = [], []
    for row in range(36):
        column = "a" if row % 2 else "b"
        split = "train" if row < 24 else "test"
        sql = f"SELECT {column} FROM t WHERE x = {row}"  # noqa: S608 made up
        queries.append({"query_id": str(row), "sql": sql, "dialect": "duckdb", "split": split})
        for engine in ("left", "right"):
            is_quick = (engine == "left") == (column == "a")
            seconds = float((1 if is_quick else 4) * np.exp(rng.normal(0, 0.05)))
            timings.append({"query_id": str(row), "engine": engine, "seconds": seconds})
    return pa.Table.from_pylist(queries), pa.Table.from_pylist(timings)


def _by_literal() -> tuple[pa.Table, pa.Table]:
    """Which engine is better depends on a number in the text, for each template from another on."""
    rng = np.random.default_rng(1)
    turn = rng.normal(0, 1.5, 10)
    queries, timings = [], []
    for row in range(360):
        number, asked = int(rng.integers(10)), float(rng.uniform(0, 12))
        sql = f"SELECT c{number} FROM t{number} WHERE n < {int(np.exp(asked))}"  # noqa: S608 made up
        split = "train" if row < 240 else "test"
        queries.append({"query_id": str(row), "sql": sql, "dialect": "ansi", "split": split})
        apart = 0.6 * (asked - 6) + turn[number]
        for engine, log in (("left", apart / 2), ("right", -apart / 2)):
            seconds = float(np.exp(log + rng.normal(0, 0.1)))
            timings.append({"query_id": str(row), "engine": engine, "seconds": seconds})
    return pa.Table.from_pylist(queries), pa.Table.from_pylist(timings)
