"""Conditions as data: what a statement demands of the rows of one table it reads.

Every((ColumnTest("region", "=", ("eu",)), ColumnTest("day", ">=", (date(2026, 1, 1),))))

A condition is necessary, never more: a row of the table that does not fulfil it cannot change the
answer. What cannot be told from the text is left out, so a condition only ever says too little.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from lakehouse_core.sql.literal import UNKNOWN, Constant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse_core.sql.records import LiteralValue, Operator, Predicate


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """One column compared with constants.

    Attributes:
        column: its folded name.
        operator: as in `Predicate`, with the column on the left.
        values: the constants; UNKNOWN for what is only known when the statement runs.
        is_negated: rows that fulfil it are left out.
    """

    column: str
    operator: Operator
    values: tuple[Constant, ...] = ()
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Every:
    """All parts hold; without parts nothing is demanded."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Either:
    """At least one part holds."""

    parts: tuple[Condition, ...]


Condition = ColumnTest | Every | Either
ALWAYS = Every()


@dataclass(frozen=True, slots=True)
class TableScan:
    """One reading of a base table; a table joined with itself is read twice."""

    table: str
    condition: Condition = ALWAYS


def of_predicates(predicates: tuple[Predicate, ...], table: str) -> Condition:
    """The conjuncts among stored predicates on a table, for whoever has no text any more.

    Only sound where the statement reads the table once.
    """
    return Every(
        tuple(
            ColumnTest(
                one.column, one.operator, tuple(map(constant_of, one.values)), one.is_negated
            )
            for one in predicates
            if one.table == table
            and one.is_conjunct
            and one.is_complete
            and one.function is None
            and one.or_group is None
        )
    )


def constant_of(value: LiteralValue) -> Constant:
    """The constant a stored literal stands for."""
    if value.kind == "null":
        return None
    read = _READERS.get(value.kind)
    return UNKNOWN if value.text is None or read is None else read(value.text)


_READERS: Mapping[str, Callable[[str], Constant]] = {
    "number": Decimal,
    "text": str,
    "boolean": lambda text: text == "true",
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
}
