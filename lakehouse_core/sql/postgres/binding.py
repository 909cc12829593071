"""Parameters of a statement: counted, and filled in with literals of their type.

The values go into the tree, never into the text: what a client binds cannot become SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from lakehouse_core.domain.errors import QueryFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 65_535  # as many as the protocol can count


@dataclass(frozen=True, slots=True)
class Typed:
    """A value that is told as text of a type: a date as the client wrote it."""

    text: str
    type: str


Value = None | bool | int | float | Decimal | str | bytes | date | time | datetime | Typed


def count_parameters(tree: exp.Expr) -> int:
    """How many parameters a statement has: the highest number it mentions.

    Raises:
        QueryFailedError: a parameter has no number.
    """
    return max((_number(one) for one in tree.find_all(exp.Parameter)), default=0)


def bind(tree: exp.Expr, values: Sequence[Value]) -> exp.Expr:
    """The statement with its parameters filled in.

    Raises:
        QueryFailedError: a value is missing.
    """
    literals = [_literal(value) for value in values]

    def fill(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Parameter):
            return node
        number = _number(node)
        if number > len(literals):
            raise QueryFailedError(f"Parameter ${number} has no value", code="08P01")
        return literals[number - 1].copy()

    return tree.transform(fill)


def _number(parameter: exp.Parameter) -> int:
    text = parameter.name
    if not text.isdigit() or not 1 <= int(text) <= MOST:
        raise QueryFailedError(f"${text} is no parameter of a statement", code="42P02")
    return int(text)


def _literal(value: Value) -> exp.Expr:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | Decimal):
        number = exp.Literal.number(f"{abs(value):f}" if isinstance(value, Decimal) else abs(value))
        return exp.Neg(this=number) if value < 0 else number
    if isinstance(value, bytes):
        return exp.HexString(this=value.hex())
    if isinstance(value, str):
        return exp.Literal.string(value)
    typed = _typed(value)
    return exp.cast(exp.Literal.string(typed.text), typed.type)


def _typed(value: float | date | time | datetime | Typed) -> Typed:
    if isinstance(value, Typed):
        return value
    if isinstance(value, float):
        return Typed(repr(value), "DOUBLE")
    if isinstance(value, datetime):
        return Typed(value.isoformat(sep=" "), "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMP")
    return Typed(value.isoformat(), "DATE" if isinstance(value, date) else "TIME")
