"""Type names of an engine, understood as trees: `map(varchar, decimal(12,2))` and the like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp
from sqlglot.errors import SqlglotError

Family = Literal[
    "boolean",
    "int8",
    "int16",
    "int32",
    "int64",
    "float32",
    "float64",
    "decimal",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "binary",
    "list",
    "map",
    "struct",
    "text",
]

_FAMILIES: dict[exp.DType, Family] = {
    exp.DType.BOOLEAN: "boolean",
    exp.DType.TINYINT: "int8",
    exp.DType.SMALLINT: "int16",
    exp.DType.INT: "int32",
    exp.DType.BIGINT: "int64",
    exp.DType.FLOAT: "float32",
    exp.DType.DOUBLE: "float64",
    exp.DType.DECIMAL: "decimal",
    exp.DType.DATE: "date",
    exp.DType.TIME: "time",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamptz",
    exp.DType.VARBINARY: "binary",
    exp.DType.BINARY: "binary",
    exp.DType.ARRAY: "list",
    exp.DType.MAP: "map",
    exp.DType.STRUCT: "struct",
}


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column's type; what has no family of its own is `text`.

    Attributes:
        family: what kind of values it has.
        parameters: numbers in parentheses, e.g. precision and scale.
        fields: names and types of what it holds: a list's item, a map's key and value.
    """

    family: Family
    parameters: tuple[int, ...] = ()
    fields: tuple[tuple[str, ColumnType], ...] = ()


TEXT = ColumnType("text")


def parse_type(text: str, dialect: str) -> ColumnType:
    """The type of a name; `text` when the dialect has a type we know nothing about."""
    try:
        tree = exp.DataType.build(text, dialect=dialect)
    except SqlglotError:
        return TEXT
    return _column_type(tree)


def _column_type(tree: exp.Expr) -> ColumnType:
    family = _FAMILIES.get(tree.this) if isinstance(tree, exp.DataType) else None
    if family is None:
        return TEXT
    parameters: list[int] = []
    fields: list[tuple[str, ColumnType]] = []
    for number, part in enumerate(tree.expressions):
        if isinstance(part, exp.DataTypeParam):
            parameters.append(int(part.name))
        elif isinstance(part, exp.ColumnDef):
            fields.append((part.name, _column_type(part.args["kind"])))
        else:
            fields.append((f"field{number}", _column_type(part)))
    return ColumnType(family, tuple(parameters), tuple(fields))
