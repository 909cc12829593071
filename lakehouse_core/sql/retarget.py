"""One statement, written once, for several engines: parameters filled in, dialect changed.

    retarget("SELECT count(*) FROM t WHERE day >= :day", {"day": date(2026, 1, 1)},
             source="trino", target="spark")

Values become literals of the tree, never text pasted into SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import ErrorLevel, exp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime
    from decimal import Decimal

    Value = str | int | float | bool | Decimal | date | datetime | None


def retarget(sql: str, values: Mapping[str, Value], *, source: str, target: str) -> str:
    """The statement in another dialect, with a literal for each `:name`.

    Raises:
        sqlglot.errors.SqlglotError: it cannot be parsed, or not be said in the other dialect.
        KeyError: a parameter has no value.
    """

    def fill(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Placeholder):
            return exp.convert(values[node.name])
        return node

    tree = sqlglot.parse_one(sql, read=source).transform(fill)
    return tree.sql(dialect=target, unsupported_level=ErrorLevel.RAISE)
