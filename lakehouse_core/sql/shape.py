"""The shape of a statement in numbers: what it makes an engine do, told from its text alone.

shape = shape_of("SELECT …", "trino")
shape.counts["joins"], shape.tables, shape.literals

Counts, tables and functions belong to the template and are worked out once; what its literals say
is read from every text. No schema is needed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Count → the nodes that add to it. A node may add to several.
_COUNTED: tuple[tuple[str, tuple[type[exp.Expr], ...]], ...] = (
    ("tables", (exp.Table,)),
    ("joins", (exp.Join,)),
    ("subqueries", (exp.Subquery,)),
    ("selects", (exp.Select,)),
    ("ctes", (exp.CTE,)),
    ("set_operations", (exp.SetOperation,)),
    ("aggregates", (exp.AggFunc,)),
    ("groups", (exp.Group,)),
    ("windows", (exp.Window,)),
    ("sorts", (exp.Order,)),
    ("limits", (exp.Limit, exp.Fetch)),
    ("distincts", (exp.Distinct,)),
    ("havings", (exp.Having,)),
    ("comparisons", (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)),
    ("ranges", (exp.Between, exp.LT, exp.LTE, exp.GT, exp.GTE)),
    ("lists", (exp.In,)),
    ("patterns", (exp.Like, exp.ILike, exp.RegexpLike, exp.SimilarTo)),
    ("existences", (exp.Exists,)),
    ("disjunctions", (exp.Or,)),
    ("cases", (exp.Case, exp.If)),
    ("casts", (exp.Cast, exp.TryCast)),
    ("functions", (exp.Func,)),
    ("columns", (exp.Column,)),
    ("stars", (exp.Star,)),
    ("unnests", (exp.Unnest, exp.Lateral, exp.Explode)),
    ("arithmetic", (exp.Add, exp.Sub, exp.Mul, exp.Div)),
)
COUNTS = (
    *(name for name, _ in _COUNTED),
    "outer_joins",
    "cross_joins",
    "group_keys",
    "sort_keys",
    "outputs",
    "distinct_tables",
    "depth",
    "nodes",
)
LITERALS = ("literals", "largest_number", "mean_number", "date_span_days", "date_share")

NO_LITERALS = (0.0,) * len(LITERALS)

_PLACES = {name: place for place, name in enumerate(COUNTS)}
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_MAX_NODES = 20_000


@dataclass(frozen=True, slots=True)
class TemplateShape:
    """What every text of a template has in common.

    Attributes:
        counts: in the order of COUNTS.
        tables: base tables as written, without repetition.
        functions: names of the functions it calls.
    """

    counts: tuple[float, ...]
    tables: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()

    def count(self, name: str) -> float:
        """One of the counts."""
        return self.counts[_PLACES[name]]


@dataclass(frozen=True, slots=True)
class StatementShape:
    """A text in numbers.

    Attributes:
        template_id: of the text.
        template: what it shares with its template; None when it was not understood.
        literals: in the order of LITERALS.
    """

    template_id: str
    template: TemplateShape | None
    literals: tuple[float, ...]


def template_shape(root: exp.Expr, tables: Sequence[str]) -> TemplateShape:
    """Count what a tree holds, in one walk."""
    counts = [0.0] * len(COUNTS)
    functions: set[str] = set()
    stack: list[tuple[Any, int]] = [(root, 0)]
    nodes = deepest = 0
    while stack and nodes < _MAX_NODES:
        node, depth = stack.pop()
        nodes += 1
        deepest = max(deepest, depth)
        kind = node.__class__
        places = _kinds.get(kind)
        if places is None:
            places = _kinds[kind] = _places_of(kind)
        for place in places:
            counts[place] += 1
        if isinstance(node, exp.Func):
            functions.add(_function_name(node))
        elif kind in _DETAILS:
            for name, amount in _DETAILS[kind](node):
                counts[_PLACES[name]] += amount
        for value in node.args.values():
            if value.__class__ is list:
                stack.extend([(one, depth + 1) for one in value if isinstance(one, exp.Expr)])
            elif isinstance(value, exp.Expr):
                stack.append((value, depth + 1))
    counts[_PLACES["distinct_tables"]] = len(tables)
    counts[_PLACES["depth"]] = deepest
    counts[_PLACES["nodes"]] = nodes
    return TemplateShape(tuple(counts), tuple(tables), tuple(sorted(functions)))


def literal_numbers(literals: Sequence[str]) -> tuple[float, ...]:
    """What the literals of a text say about how much it asks for.

    Args:
        literals: raw, as `mask` finds them.
    """
    numbers: list[float] = []
    days: list[int] = []
    for raw in literals:
        if raw[:1] in "'\"":
            found = _DATE.match(raw, 1)
            if found:
                days.append(int(found[1]) * 365 + int(found[2]) * 30 + int(found[3]))
            continue
        try:
            numbers.append(math.log1p(abs(float(raw))))
        except (ValueError, OverflowError):
            continue
    return (
        math.log1p(len(literals)),
        max(numbers, default=0.0),
        sum(numbers) / len(numbers) if numbers else 0.0,
        math.log1p(max(days) - min(days)) if days else 0.0,
        len(days) / len(literals) if literals else 0.0,
    )


# --- one node ------------------------------------------------------------------------------------

_kinds: dict[type[exp.Expr], tuple[int, ...]] = {}  # worked out once per class: it never changes


def _places_of(kind: type[exp.Expr]) -> tuple[int, ...]:
    return tuple(_PLACES[name] for name, kinds in _COUNTED if issubclass(kind, kinds))


def _function_name(node: exp.Func) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.key


def _of_join(node: exp.Expr) -> list[tuple[str, int]]:
    side, kind = (str(node.args.get(name) or "").upper() for name in ("side", "kind"))
    is_bare = not node.args.get("on") and not node.args.get("using")
    return [("outer_joins", bool(side)), ("cross_joins", kind == "CROSS" or is_bare)]


def _of_group(node: exp.Expr) -> list[tuple[str, int]]:
    return [("group_keys", len(node.expressions))]


def _of_order(node: exp.Expr) -> list[tuple[str, int]]:
    return [("sort_keys", len(node.expressions))]


def _of_select(node: exp.Expr) -> list[tuple[str, int]]:
    return [("outputs", len(node.expressions))]


_DETAILS: Mapping[type[exp.Expr], Any] = {
    exp.Join: _of_join,
    exp.Group: _of_group,
    exp.Order: _of_order,
    exp.Select: _of_select,
}
