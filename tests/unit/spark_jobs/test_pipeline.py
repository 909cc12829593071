from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 the name everybody knows it by

from lakehouse_core.pipeline.care import GROWING
from lakehouse_core.pipeline.load import LOADED
from lakehouse_core.pipeline.state import STATE
from spark_jobs.attribution import stage as costs
from spark_jobs.pipeline import bronze, gold, lake, silver, texts
from spark_jobs.pipeline.commit import CommitConflictError, Commits, conflict_in
from spark_jobs.pipeline.lake import SchemaChangeError, missing_columns
from spark_jobs.pipeline.plan import parse_plan, read_plan
from spark_jobs.plan_file import PlanError
from spark_jobs.telemetry_pipeline import main

if TYPE_CHECKING:
    from pathlib import Path

PLAN = {"run_id": "r", "catalog": "lake", "namespace": "ops"}


class RaceLostError(Exception):
    pass


def lost(name: str = "CommitFailedException") -> RaceLostError:
    return RaceLostError(f"first line\norg.apache.iceberg.exceptions.{name}: stale metadata\n at x")


def test_a_conflict_is_tried_again_with_growing_pauses() -> None:
    pauses: list[float] = []
    commits = Commits(5, pause=pauses.append)
    outcomes = [lost(), lost("ValidationException"), lost(), None]

    def write() -> str:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome
        return "done"

    assert commits.run("lake.ops.t", write) == "done"
    assert commits.retries == 3
    assert pauses == sorted(pauses)
    assert 0.2 <= pauses[0] <= 0.4


def test_a_conflict_without_end_is_named() -> None:
    commits = Commits(2, pause=lambda _: None)

    def write() -> None:
        raise lost()

    with pytest.raises(CommitConflictError, match=r"lake\.ops\.t .*CommitFailedException"):
        commits.run("lake.ops.t", write)


def test_another_error_is_not_tried_again() -> None:
    commits = Commits(5, pause=lambda _: None)
    with pytest.raises(ZeroDivisionError):
        commits.run("t", lambda: 1 // 0)
    assert commits.retries == 0
    assert conflict_in(ValueError("no such column")) is None


def schema(**columns: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in columns.items()])


def test_only_additions_are_followed() -> None:
    present = schema(a=T.LongType(), own=T.StringType())
    added = missing_columns("t", present, schema(a=T.LongType(), b=T.StringType()), ("own",))
    assert [one.name for one in added] == ["b"]
    with pytest.raises(SchemaChangeError, match="own, which the store no longer exports"):
        missing_columns("t", present, schema(a=T.LongType()))
    with pytest.raises(SchemaChangeError, match=r"a \(bigint in the table, double in the store\)"):
        missing_columns("t", present, schema(a=T.DoubleType()), ("own",))


def test_nullability_inside_an_array_is_no_change() -> None:
    strict, lenient = T.ArrayType(T.StringType(), False), T.ArrayType(T.StringType(), True)
    assert missing_columns("t", schema(a=strict), schema(a=lenient)) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"catalog": "lake; DROP"}, "not a plain lower-case name"),
        ({"namespace": "Ops"}, "not a plain lower-case name"),
        ({"nonsense": 1}, "nonsense"),
        ({"exports": [{"id": "1"}]}, "exported_at"),
        ({"care": {"compact_all": True}}, "compact_all"),
    ],
)
def test_a_wrong_plan_is_refused_with_what_is_wrong(change: dict, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        parse_plan({**PLAN, **change})


def test_exports_are_carried_on_oldest_first() -> None:
    at = {"exported_at": "2026-11-16T12:00:00+00:00", "tables": {}}
    plan = parse_plan({**PLAN, "exports": [{"id": "2", **at}, {"id": "1", **at}]})
    assert [one.id for one in plan.exports] == ["1", "2"]


def test_a_plan_file_that_is_no_plan_ends_with_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    with pytest.raises(PlanError, match="cannot be read"):
        read_plan(plan)
    plan.write_text("{", encoding="utf-8")
    assert main(["--plan", str(plan), "--report", str(tmp_path / "report.json")]) == 2
    plan.write_text(json.dumps({"run_id": "r"}), encoding="utf-8")
    assert main(["--plan", str(plan), "--report", str(tmp_path / "report.json")]) == 2
    assert "missing" in capsys.readouterr().err


def test_both_sides_mean_the_same_tables() -> None:
    ours = {bronze.bronze_name(silver.EVENT), bronze.bronze_name(silver.COMMIT)}
    ours |= {silver.EVENT, silver.COMMIT, texts.SQL_TEXT, texts.TEMPLATE, texts.USAGE}
    ours |= {bronze.bronze_name(costs.CHARGE), costs.CHARGE, costs.LABEL}
    ours |= {bronze.bronze_name(costs.ATTRIBUTION), costs.ATTRIBUTION}
    assert set(GROWING) == ours
    tables = (*gold.EVENT_TABLES, *gold.COMMIT_TABLES, *costs.SUMS)
    made = {table.name: table.time for table in tables}
    assert {table.name: table.time for table in LOADED} == made
    assert lake.STATE == STATE


def test_what_a_shape_shares_is_answered_once_per_batch() -> None:
    statements = ["SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE b = 2", "SELECT c FROM u"]
    batch = pa.record_batch(
        {
            "text_id": ["1", "2", "3"],
            "sql_text": statements,
            "dialect": ["trino"] * 3,
            "default_catalog": pa.array(["lake"] * 3),
            "default_namespace": pa.array([None] * 3, pa.string()),
        }
    )
    (answer,) = texts._inspection({}, {})(iter([batch]))
    rows = answer.to_pylist()
    assert [row["sql_text"] for row in rows] == statements
    assert rows[0]["template_id"] == rows[1]["template_id"] != rows[2]["template_id"]
    assert [row["usage"] is None for row in rows] == [False, True, False]
    assert [row["template"] is None for row in rows] == [False, True, False]
    assert [[p["literals"] for p in row["predicates"]] for row in rows] == [[["1"]], [["2"]], []]
