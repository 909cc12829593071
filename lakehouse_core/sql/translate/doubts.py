"""What may mean something else in another dialect.

An allow-list, as for the guards: a construct is taken to mean the same only when it is listed here,
and the differential tests run what is listed on real engines. Everything else is a doubt. Where it
depends (division, casts, patterns, dates), a rule decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from lakehouse_core.sql.listing import node_types

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse_core.sql.translate.numbers import Kinds

_SAME = node_types("""
    Select Union Except Intersect Subquery With CTE From Join Where Group
    Having Qualify Order Ordered Limit Offset Fetch TableAlias Table
    Tuple Alias Paren Column Identifier Literal Var Null Boolean DataType DataTypeParam Interval
    Window WindowSpec Filter Hint JoinHint
    And Or Not EQ NEQ NullSafeEQ NullSafeNEQ LT LTE GT GTE Is In Between Exists Any All
    Add Sub Mul Neg Mod Case If Coalesce Nullif
    Sum Count CountIf Min Max Stddev StddevPop StddevSamp Variance VariancePop
    RowNumber Rank DenseRank Lag Lead FirstValue LastValue Ntile PercentRank CumeDist
    Abs Ceil Floor Exp Round Sign Pow
    Upper Lower Length Replace StrPosition StartsWith Left Right Values
    Year Month Day Quarter CurrentDate
""")
_FAMILIES = {
    "presto": "trino",
    "athena": "trino",
    "databricks": "spark",
    "spark2": "spark",
    "hive": "spark",
    "redshift": "postgres",
}
# Dialects that divide whole numbers to a whole number.
_WHOLE_DIVISION = frozenset({"trino", "postgres"})
_NO_STAR_CHANGES = frozenset({"trino", "postgres"})
_NO_ALIASES = frozenset({"trino"})
_UNITS = frozenset({"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE"})
_TRUNCATED = _UNITS | {"WEEK"}
# What Java's, RE2's and Joni's patterns agree on.
_PLAIN_PATTERN = re.compile(r"(?:[\w\s@#&,;:'\"<>=!~/%-]|\\[.dws]|[\^$.|*+?()]|\[[\w-]+\])*\Z")
_DISAGREED_PATTERN = re.compile(r"\(\?|[*+?}][+]|\\[0-9]")
_EXACT_TEXTS = frozenset({"text", "integer", "date"})


@dataclass(frozen=True, slots=True)
class Pair:
    """From where to where, and what is known of the columns."""

    source: str
    target: str
    kinds: Kinds

    def has(self, dialect: str) -> bool:
        """Whether one side is of that family."""
        return dialect in (family(self.source), family(self.target))


def family(dialect: str) -> str:
    """Dialects that mean the same by the same text."""
    return _FAMILIES.get(dialect, dialect)


def doubts(root: exp.Expr, pair: Pair) -> list[str]:
    """Why a translation may mean something else, each reason once."""
    if family(pair.source) == family(pair.target):
        return []
    found: dict[str, None] = {}
    if not isinstance(root, exp.Query):
        found[f"{root.key.upper()} is not a query"] = None
    for node in root.walk():
        kind = node.__class__
        rule = _RULES.get(kind)
        if rule is not None:
            reason = rule(node, pair)
            if reason:
                found[reason] = None
        elif kind not in _SAME:
            found[f"{_shown(node)} may differ"] = None
    return list(found)


def _shown(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return f"the function {str(node.this).upper()[:64]}"
    if isinstance(node, exp.Func):
        return f"the function {node.sql_names()[0]}"
    return node.key.upper()


def _division(node: exp.Expr, pair: Pair) -> str | None:
    kinds = {pair.kinds.of(node.this), pair.kinds.of(node.expression)}
    if "float" in kinds:
        return None
    is_same = (family(pair.source) in _WHOLE_DIVISION) == (family(pair.target) in _WHOLE_DIVISION)
    if kinds == {"integer"} and is_same:
        return None
    return "a division of whole or decimal numbers is rounded differently; cast one side to DOUBLE"


def _average(node: exp.Expr, pair: Pair) -> str | None:
    if pair.kinds.of(node.this) in ("integer", "float"):
        return None
    return "AVG of decimals has another scale; cast its argument to DOUBLE"


def _cast(node: exp.Expr, pair: Pair) -> str | None:
    target = node.args["to"]
    name = target.this.value if isinstance(target, exp.DataType) else ""
    kind = pair.kinds.of(node.this)
    if name in ("INT", "BIGINT", "SMALLINT", "TINYINT"):
        return None if kind in ("integer", "text") else f"CAST AS {name} rounds differently"
    if name in ("VARCHAR", "TEXT"):
        if kind in _EXACT_TEXTS and not target.expressions:
            return None
        return f"CAST AS {name} writes values differently"
    if name in ("DOUBLE", "DECIMAL", "DATE"):
        return None
    if name == "TIMESTAMP" and isinstance(node.this, exp.Literal):
        return None
    return f"CAST AS {name} may differ"


def _tried_cast(node: exp.Expr, pair: Pair) -> str | None:
    """Spark's CAST is read as one that gives NULL instead of an error; a literal has no errors."""
    if isinstance(node.this, exp.Literal):
        return _cast(node, pair)
    return "a CAST that fails gives NULL on one side and an error on the other"


def _like(node: exp.Expr, pair: Pair) -> str | None:
    pattern = node.expression
    is_plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.this
    if is_plain or not pair.has("spark"):
        return None
    return "a backslash in a LIKE pattern is an escape in Spark only"


def _substring(node: exp.Expr, pair: Pair) -> str | None:
    del pair
    start = node.args.get("start")
    is_plain = isinstance(start, exp.Literal) and start.this.isdecimal() and int(start.this) > 0
    return None if is_plain else "SUBSTRING from 0 or from the end is counted differently"


def _star(node: exp.Expr, pair: Pair) -> str | None:
    changes = [key for key, value in node.args.items() if value]
    if not changes:
        return None
    if family(pair.target) in _NO_STAR_CHANGES:
        return f"{pair.target} has no way to leave columns out of a star"
    return "a star with exceptions may differ"


def _distinct(node: exp.Expr, pair: Pair) -> str | None:
    del pair
    if node.args.get("on"):
        return "DISTINCT ON may differ"
    return "DISTINCT over several columns may differ" if len(node.expressions) > 1 else None


def _extract(node: exp.Expr, pair: Pair) -> str | None:
    del pair
    unit = node.this.name.upper()
    return None if unit in _UNITS - {"HOUR", "MINUTE"} else f"EXTRACT of {unit} may differ"


def _truncation(node: exp.Expr, pair: Pair) -> str | None:
    unit = node.args.get("unit")
    name = unit.name.upper() if isinstance(unit, exp.Expr) else ""
    if name not in _TRUNCATED:
        return f"date_trunc to {name or 'an expression'} may differ"
    if pair.kinds.of(node.this) == "timestamp" or _is_compared(node):
        return None
    return "date_trunc of a date gives a timestamp on some engines"


def _joined(node: exp.Expr, pair: Pair) -> str | None:
    """`a || b`: Trino joins texts only, the others print whatever they are given."""
    if family(pair.source) == "trino":
        return None
    kinds = {pair.kinds.of(node.this), pair.kinds.of(node.expression)}
    return None if kinds <= _EXACT_TEXTS else "|| writes values that are no texts differently"


def _concat(node: exp.Expr, pair: Pair) -> str | None:
    del node
    return "CONCAT treats NULL differently; write ||" if pair.has("duckdb") else None


def _pattern(node: exp.Expr, pair: Pair) -> str | None:
    del pair
    pattern = node.expression
    text = pattern.this if isinstance(pattern, exp.Literal) else None
    is_plain = (
        text is not None
        and _PLAIN_PATTERN.match(text) is not None
        and not _DISAGREED_PATTERN.search(text)
        and node.args.get("flag") is None
    )
    return None if is_plain else "regular expressions are read differently"


def _aliases(node: exp.Expr, pair: Pair) -> str | None:
    """`GROUP BY alias`: where the target has no such thing it means a column or nothing."""
    if family(pair.target) not in _NO_ALIASES or family(pair.source) in _NO_ALIASES:
        return None
    group = node.args.get("group")
    if group is not None and group.args.get("all"):
        return f"{pair.target} has no GROUP BY ALL"
    items = [item for item in node.expressions if isinstance(item, exp.Alias)]
    names = {item.alias.lower() for item in items if item.this.name.lower() != item.alias.lower()}
    clauses = [node.args.get(key) for key in ("where", "group", "having")]
    for part in (*items, *(clause for clause in clauses if clause is not None)):
        for column in part.find_all(exp.Column):
            is_own = column.find_ancestor(exp.Select) is node and not column.table
            if is_own and column.name.lower() in names:
                return f"{pair.target} takes the alias {column.name} for a column"
    return None


def _totals(node: exp.Expr, pair: Pair) -> str | None:
    del node
    return "ROLLUP and CUBE over no rows give a total, in Spark none" if pair.has("spark") else None


def _position(node: exp.Expr, pair: Pair) -> str | None:
    del pair
    extras = [key for key, value in node.args.items() if value and key not in ("this", "substr")]
    return "the position of a later occurrence may differ" if extras else None


def _frame(node: exp.Expr, pair: Pair) -> str | None:
    del pair
    return "GROUPS frames may differ" if node.args.get("kind") == "GROUPS" else None


def _table(node: exp.Expr, pair: Pair) -> str | None:
    del pair
    if not isinstance(node.this, exp.Identifier):
        return "table functions may differ"
    extras = [key for key in ("version", "when", "sample", "pivots", "hints") if node.args.get(key)]
    return f"{extras[0].upper()} of a table may differ" if extras else None


def _with(node: exp.Expr, pair: Pair) -> str | None:
    del pair
    return "recursive CTEs may differ" if node.args.get("recursive") else None


def _join(node: exp.Expr, pair: Pair) -> str | None:
    del pair
    method = str(node.args.get("method") or "").upper()
    kind = str(node.args.get("kind") or "").upper()
    if method in ("ASOF", "POSITIONAL") or kind in ("SEMI", "ANTI", "STRAIGHT_JOIN"):
        return f"{method or kind} JOIN may differ"
    return None


def _date_shift(node: exp.Expr, pair: Pair) -> str | None:
    """Adding to a date gives a timestamp in DuckDB; comparing hides that, showing it does not."""
    if not pair.has("duckdb") or _is_compared(node):
        return None
    return "adding to a date gives a timestamp in DuckDB"


def _is_compared(node: exp.Expr) -> bool:
    """Whether a value only serves a comparison and is not shown."""
    return isinstance(node.find_ancestor(exp.Predicate, exp.Select), exp.Predicate)


def _interval(node: exp.Expr, pair: Pair) -> str | None:
    return _date_shift(node, pair)


_RULES: Mapping[type[exp.Expr], Callable[[exp.Expr, Pair], str | None]] = {
    exp.Div: _division,
    exp.Avg: _average,
    exp.Cast: _cast,
    exp.TryCast: _tried_cast,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Substring: _substring,
    exp.Star: _star,
    exp.Distinct: _distinct,
    exp.Extract: _extract,
    exp.DateTrunc: _truncation,
    exp.TimestampTrunc: _truncation,
    exp.Concat: _concat,
    exp.RegexpLike: _pattern,
    exp.Select: _aliases,
    exp.DPipe: _joined,
    exp.Rollup: _totals,
    exp.Cube: _totals,
    exp.GroupingSets: _totals,
    exp.StrPosition: _position,
    exp.WindowSpec: _frame,
    exp.Table: _table,
    exp.With: _with,
    exp.Join: _join,
    exp.DateAdd: _date_shift,
    exp.DateSub: _date_shift,
    exp.TsOrDsAdd: _date_shift,
    exp.Interval: _interval,
}
