"""Rows of Trino's protocol as a table with types: for the grid, a chart, a download."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse_core.views.downloads import to_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse_core.views.statements import Column

_WHOLE = ("tinyint", "smallint", "integer", "bigint")
_READERS: dict[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    **dict.fromkeys(_WHOLE, (pa.int64(), int)),
    "double": (pa.float64(), float),
    "real": (pa.float64(), float),
    "boolean": (pa.bool_(), bool),
    "date": (pa.date32(), date.fromisoformat),
}
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_FRACTION = re.compile(r"(\.\d{6})\d+")


def to_table(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """The result; its columns are called `c0`, `c1`, …, for two of a query may have one name.

    A value that is not what its type promises makes its column one of texts.
    """
    arrays = [
        _array(column.type, [row[index] for row in rows]) for index, column in enumerate(columns)
    ]
    return pa.table(arrays, names=[f"c{index}" for index in range(len(columns))])


def numeric(columns: Sequence[Column]) -> tuple[int, ...]:
    """Which columns hold numbers."""
    return tuple(
        index
        for index, column in enumerate(columns)
        if column.type in (*_WHOLE, "double", "real") or column.type.startswith("decimal")
    )


def result_csv(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> str:
    """The rows as CSV; texts that a spreadsheet takes for formulas are quoted."""
    names: list[str] = []
    for column in columns:
        count = names.count(column.name)
        names.append(f"{column.name}_{count + 1}" if count else column.name)
    if not rows:
        return to_csv([dict.fromkeys(names)]).splitlines()[0] + "\n"
    return to_csv([dict(zip(names, map(_plain, row), strict=True)) for row in rows])


def _array(kind: str, values: list[Any]) -> pa.Array:
    target, read = _reader(kind)
    try:
        return pa.array([None if value is None else read(value) for value in values], target)
    except (pa.ArrowException, ValueError, TypeError, OverflowError, InvalidOperation):
        return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _reader(kind: str) -> tuple[pa.DataType, Callable[[Any], Any]]:
    if kind in _READERS:
        return _READERS[kind]
    found = _DECIMAL.fullmatch(kind)
    if found:
        return pa.decimal128(int(found[1]), int(found[2])), Decimal
    if kind.startswith("timestamp") and "with time zone" not in kind:
        return pa.timestamp("us"), _moment
    return pa.string(), _text


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(_FRACTION.sub(r"\1", text)).replace(tzinfo=UTC)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
