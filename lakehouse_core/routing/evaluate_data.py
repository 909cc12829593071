"""The two files of an offline evaluation: read whole, checked, refused with file, column and row.

Nothing is assumed of where they come from: any engine names, any dialects, no schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse_core.domain.errors import EvaluationDataError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

Matrix = Any  # NDArray[np.float64]

SPLITS = ("train", "test")
TOTALS = ("ours", "best_single", "oracle", "random")
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Workload:
    """Statements and what each engine needed for them.

    Attributes:
        query_ids: one per statement.
        texts: the statements.
        dialects: sqlglot's names; others, and none, are read as plain SQL.
        scan_bytes: NaN where unknown.
        is_test: False for those to learn from.
        engines: names of the columns of `values`.
        values: seconds or money, a failed run with its price (see `docs/prediction.md`); NaN: the
            engine did not run the statement.
    """

    query_ids: list[str]
    texts: list[str]
    dialects: list[str]
    scan_bytes: NDArray[np.float64]
    is_test: NDArray[np.bool_]
    engines: tuple[str, ...]
    values: Matrix


def read_workload(queries: Path, timings: Path, objective: str) -> Workload:
    """Read and check both files.

    Raises:
        EvaluationDataError: something is missing or wrong; names file, column and row.
    """
    asked = _Table(queries, ("query_id", "sql", "dialect", "split"), ("scan_bytes",))
    is_cost = objective == "cost"
    needed = ("query_id", "engine", "seconds", *(("cost_usd",) if is_cost else ()))
    told = _Table(timings, needed, ("failed",))
    ids = asked.texts("query_id")
    number = asked.unique("query_id", ids)
    splits = asked.texts("split")
    asked.refuse_rows(
        "split",
        [one not in SPLITS for one in splits],
        lambda row: f"{splits[row]!r} is neither 'train' nor 'test'",
    )
    is_test = np.array([one == "test" for one in splits], np.bool_)
    for wanted, name in ((False, "train"), (True, "test")):
        if not (is_test == wanted).any():
            raise asked.error(
                "split", f"no row has split = '{name}': there is nothing to {_USE[name]}"
            )
    engines, values = _values(told, number, "cost_usd" if is_cost else "seconds")
    untimed = ~np.isfinite(values).any(axis=1)
    asked.refuse_rows(
        "query_id", untimed, lambda row: f"query {ids[row]!r} has no timing in {timings}"
    )
    return Workload(
        query_ids=ids,
        texts=asked.texts("sql"),
        dialects=asked.texts("dialect", may_lack=True),
        scan_bytes=asked.sizes("scan_bytes"),
        is_test=is_test,
        engines=engines,
        values=values,
    )


_USE = {"train": "learn from", "test": "route"}


def _values(told: _Table, number: dict[str, int], column: str) -> tuple[tuple[str, ...], Matrix]:
    ids, names = told.texts("query_id"), told.texts("engine")
    told.refuse_rows(
        "query_id",
        [one not in number for one in ids],
        lambda row: f"query {ids[row]!r} is not among the queries",
    )
    told.refuse_rows(
        "engine",
        [one in TOTALS for one in names],
        lambda row: f"{names[row]!r} is a word of the report: rename the engine",
    )
    engines = tuple(sorted(set(names)))
    place = {name: at for at, name in enumerate(engines)}
    failed = told.flags("failed")
    for wanted in dict.fromkeys(("seconds", column)):
        told.amounts(wanted, failed)
    amounts = told.amounts(column, failed)
    rows = np.array([number[one] for one in ids])
    columns = np.array([place[one] for one in names])
    return engines, priced(rows, columns, amounts, failed, (len(number), len(engines)))


def priced(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    amounts: NDArray[np.float64],
    failed: NDArray[np.bool_],
    shape: tuple[int, int],
) -> Matrix:
    """Mean of the runs per statement and engine; a failed run costs itself and another run.

    The other run is the dearest that succeeded on another engine: whoever fails is not helped by
    the luck of the engine that has to step in. Without any, the dearest failed one stands for it.
    """
    done, runs = np.zeros(shape), np.zeros(shape)
    np.add.at(done, (rows[~failed], columns[~failed]), amounts[~failed])
    np.add.at(runs, (rows[~failed], columns[~failed]), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        succeeded = done / runs
    spent = np.nan_to_num(amounts)
    dearest_failed = np.zeros(shape[0])
    np.maximum.at(dearest_failed, rows[failed], spent[failed])
    total, count = done.copy(), runs.copy()
    for row, column, own in zip(rows[failed], columns[failed], spent[failed], strict=True):
        others = np.delete(succeeded[row], column)
        others = others[np.isfinite(others)]
        total[row, column] += own + (others.max() if len(others) else dearest_failed[row])
        count[row, column] += 1
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count > 0, total / count, np.nan)


class _Table:
    """One Parquet file whose columns are checked as they are taken."""

    def __init__(self, path: Path, needed: tuple[str, ...], optional: tuple[str, ...]) -> None:
        self._path = path
        try:
            present = pq.read_schema(path).names
            missing = [name for name in needed if name not in present]
            if missing:
                raise EvaluationDataError(
                    f"{path} has no column {missing[0]!r}: it must have {', '.join(needed)}, "
                    f"and has {', '.join(present) or 'none'}"
                )
            wanted = [*needed, *(name for name in optional if name in present)]
            self._rows = pq.read_table(path, columns=wanted)
        except FileNotFoundError as error:
            raise EvaluationDataError(f"{path} does not exist") from error
        except (OSError, pa.ArrowException) as error:
            reason = str(error).splitlines()[0]
            raise EvaluationDataError(f"{path} cannot be read as Parquet: {reason}") from error
        if not self._rows.num_rows:
            raise EvaluationDataError(f"{path} has no rows")

    def error(self, column: str, problem: str) -> EvaluationDataError:
        return EvaluationDataError(f"{self._path}, column {column!r}: {problem}")

    def refuse_rows(self, column: str, is_bad: Iterable[Any], problem: Any) -> None:
        """Raise when a row is bad; rows are counted from 1."""
        bad = np.flatnonzero(np.asarray(list(is_bad), np.bool_))
        if len(bad):
            row = int(bad[0])
            more = f" (and {len(bad) - 1} more rows)" if len(bad) > 1 else ""
            message = f"{self._path}, column {column!r}, row {row + 1}: {problem(row)}{more}"
            raise EvaluationDataError(message)

    def texts(self, column: str, *, may_lack: bool = False) -> list[str]:
        """A column of texts; numbers are taken as texts, what may be lacking is empty."""
        values = self._rows.column(column)
        kind = values.type
        if may_lack and pa.types.is_null(kind):
            return [""] * len(values)
        if pa.types.is_dictionary(kind):
            values = values.cast(kind.value_type)
            kind = values.type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if not (is_text or pa.types.is_integer(kind) or pa.types.is_string_view(kind)):
            raise self.error(column, f"it holds {kind}, not texts")
        found: list[str] = values.cast(pa.string()).to_pylist()
        if may_lack:
            return [one or "" for one in found]
        self.refuse_rows(column, [not one for one in found], lambda _: "it is empty")
        return found

    def unique(self, column: str, values: list[str]) -> dict[str, int]:
        """Value → row."""
        number = {one: row for row, one in reversed(list(enumerate(values)))}
        self.refuse_rows(
            column,
            [number[one] != row for row, one in enumerate(values)],
            lambda row: f"{values[row]!r} stands in row {number[values[row]] + 1} already",
        )
        return number

    def amounts(self, column: str, failed: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Seconds or money; unknown only for a failed run."""
        found = self._numbers(column)
        self.refuse_rows(
            column,
            ~np.isfinite(found) & ~failed,
            lambda row: f"{found[row]} is no amount (a failed run may lack it)",
        )
        self.refuse_rows(column, found < 0, lambda row: f"{found[row]} is negative")
        return np.where(np.isfinite(found), found, np.nan)

    def sizes(self, column: str) -> NDArray[np.float64]:
        """Bytes; unknown where the column or a value is missing."""
        if column not in self._rows.column_names:
            return np.full(self._rows.num_rows, np.nan)
        found = self._numbers(column)
        self.refuse_rows(column, found < 0, lambda row: f"{found[row]} is negative")
        return np.where(np.isfinite(found), found, np.nan)

    def flags(self, column: str) -> NDArray[np.bool_]:
        """Booleans; all False where the column is missing."""
        if column not in self._rows.column_names:
            return np.zeros(self._rows.num_rows, np.bool_)
        values = self._rows.column(column)
        if not (pa.types.is_boolean(values.type) or pa.types.is_integer(values.type)):
            raise self.error(column, f"it holds {values.type}, not true and false")
        found: NDArray[np.bool_] = pc.fill_null(values.cast(pa.bool_()), False).to_numpy()
        return found

    def _numbers(self, column: str) -> NDArray[np.float64]:
        values = self._rows.column(column)
        kind = values.type
        if pa.types.is_null(kind):
            return np.full(len(values), np.nan)
        if not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        ):
            raise self.error(column, f"it holds {kind}, not numbers")
        found: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy()
        return found
