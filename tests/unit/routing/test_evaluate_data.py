"""Files that are not as they should be are refused, and the refusal says where."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_core.domain.errors import EvaluationDataError
from lakehouse_core.routing.evaluate_data import priced, read_workload
from lakehouse_core.sql.inspector import Inspector

if TYPE_CHECKING:
    from pathlib import Path

QUERIES: dict[str, list[Any]] = {
    "query_id": ["a", "b"],
    "sql": ["SELECT 1", "SELECT 2"],
    "dialect": ["trino", "trino"],
    "split": ["train", "test"],
}
TIMINGS: dict[str, list[Any]] = {
    "query_id": ["a", "a", "b", "b"],
    "engine": ["x", "y", "x", "y"],
    "seconds": [1.0, 2.0, 3.0, 4.0],
}


class Files:
    """Both files, with columns replaced."""

    def __init__(self, folder: Path) -> None:
        self.queries, self.timings = folder / "Q.parquet", folder / "T.parquet"

    def write(self, queries: dict[str, Any], timings: dict[str, Any]) -> Files:
        for path, columns in ((self.queries, queries), (self.timings, timings)):
            pq.write_table(pa.table({k: v for k, v in columns.items() if v is not None}), path)
        return self


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_good_files_are_read(files: Files) -> None:
    files.write(QUERIES, TIMINGS)
    found = read_workload(files.queries, files.timings, "seconds")
    assert found.engines == ("x", "y")
    assert found.values.tolist() == [[1, 2], [3, 4]]
    assert found.is_test.tolist() == [False, True]
    assert np.isnan(found.scan_bytes).all()


@pytest.mark.parametrize(
    ("change", "timings", "says"),
    [
        ({"sql": None}, {}, ["Q.parquet", "'sql'", "has no column"]),
        ({"split": ["train", "validation"]}, {}, ["Q.parquet", "'split'", "row 2", "'validation'"]),
        ({"split": ["train", "train"]}, {}, ["Q.parquet", "'split'", "split = 'test'"]),
        ({"split": ["test", "test"]}, {}, ["Q.parquet", "'split'", "split = 'train'"]),
        ({"sql": ["SELECT 1", None]}, {}, ["Q.parquet", "'sql'", "row 2", "empty"]),
        ({"query_id": ["a", "a"]}, {}, ["Q.parquet", "'query_id'", "row 2", "'a'", "row 1"]),
        ({"scan_bytes": [1, -5]}, {}, ["Q.parquet", "'scan_bytes'", "row 2", "negative"]),
        ({"scan_bytes": ["1", "2"]}, {}, ["Q.parquet", "'scan_bytes'", "not numbers"]),
        ({}, {"seconds": None}, ["T.parquet", "'seconds'", "has no column"]),
        ({}, {"seconds": [1, -1, 3, 4]}, ["T.parquet", "'seconds'", "row 2", "negative"]),
        ({}, {"seconds": [1, 2, math.nan, 4]}, ["T.parquet", "'seconds'", "row 3", "nan"]),
        ({}, {"seconds": [1, 2, math.inf, 4]}, ["T.parquet", "'seconds'", "row 3", "inf"]),
        ({}, {"seconds": ["1", "2", "3", "4"]}, ["T.parquet", "'seconds'", "not numbers"]),
        ({}, {"query_id": ["a", "a", "b", "z"]}, ["T.parquet", "'query_id'", "row 4", "'z'"]),
        ({}, {"query_id": ["a", "a", "a", "a"]}, ["Q.parquet", "'query_id'", "row 2", "no timing"]),
        ({}, {"engine": ["x", "", "x", "y"]}, ["T.parquet", "'engine'", "row 2", "empty"]),
        ({}, {"engine": ["x", "oracle", "x", "y"]}, ["T.parquet", "'engine'", "row 2", "rename"]),
        ({}, {"failed": ["no"] * 4}, ["T.parquet", "'failed'"]),
    ],
)
def test_a_refusal_names_file_column_and_row(
    files: Files, change: dict[str, Any], timings: dict[str, Any], says: list[str]
) -> None:
    files.write(QUERIES | change, TIMINGS | timings)
    with pytest.raises(EvaluationDataError) as raised:
        read_workload(files.queries, files.timings, "seconds")
    assert all(word in str(raised.value) for word in says), str(raised.value)


def test_a_dialect_may_be_missing_or_unknown(files: Files) -> None:
    files.write(QUERIES | {"dialect": ["ansi", None]}, TIMINGS)
    found = read_workload(files.queries, files.timings, "seconds")
    assert found.dialects == ["ansi", ""]
    for dialect in found.dialects:
        shape = Inspector().shape("SELECT sum(a) FROM t JOIN u ON t.k = u.k", dialect)
        assert shape.template is not None
        assert shape.template.count("joins") == 1


def test_cost_needs_its_column(files: Files) -> None:
    files.write(QUERIES, TIMINGS)
    with pytest.raises(EvaluationDataError, match="cost_usd"):
        read_workload(files.queries, files.timings, "cost")


def test_empty_missing_and_foreign_files_are_refused(files: Files, tmp_path: Path) -> None:
    files.write(QUERIES, TIMINGS)
    with pytest.raises(EvaluationDataError, match=r"N\.parquet does not exist"):
        read_workload(tmp_path / "N.parquet", files.timings, "seconds")
    (tmp_path / "N.parquet").write_text("query_id,sql")
    with pytest.raises(EvaluationDataError, match=r"N\.parquet cannot be read as Parquet"):
        read_workload(tmp_path / "N.parquet", files.timings, "seconds")
    files.write({name: pa.array([], pa.string()) for name in QUERIES}, TIMINGS)
    with pytest.raises(EvaluationDataError, match=r"Q\.parquet has no rows"):
        read_workload(files.queries, files.timings, "seconds")


def test_whole_numbers_decimals_and_dictionaries_are_taken(files: Files) -> None:
    queries = QUERIES | {
        "query_id": [1, 2],
        "split": pa.array(QUERIES["split"]).dictionary_encode(),
    }
    files.write(queries, TIMINGS | {"query_id": [1, 1, 2, 2], "seconds": [1, 2, 3, 4]})
    assert read_workload(files.queries, files.timings, "seconds").query_ids == ["1", "2"]


def test_a_failed_run_costs_itself_and_the_dearest_other() -> None:
    found = priced(
        np.array([0, 0, 0, 1, 1]),
        np.array([0, 1, 2, 0, 1]),
        np.array([2.0, 5.0, 9.0, np.nan, 4.0]),
        np.array([True, False, False, True, True]),
        (2, 3),
    )
    assert found[0].tolist() == [2 + 9, 5, 9]
    assert found[1][:2].tolist() == [4, 8]
    assert np.isnan(found[1][2])


def test_a_failed_run_may_lack_its_seconds(files: Files) -> None:
    timings = TIMINGS | {"seconds": [1, None, 3, 4], "failed": [False, True, False, None]}
    files.write(QUERIES, timings)
    found = read_workload(files.queries, files.timings, "seconds")
    assert found.values[0].tolist() == [1, 1]
