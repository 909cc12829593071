"""DuckDB's own view of a query: which base columns its bound plan uses, and in which clause.

The plan is `json_serialize_plan(sql, optimize := false)`: names bound, subqueries unnested, nothing
optimised yet. `EXPLAIN` (any format, any stage) shows expressions as texts without tables, and the
optimised stages move, drop and invent conditions, so neither can be compared column by column. Here
every reference is a position in the columns below it, and is followed down to a table scan.

What counts as what (U = base columns an expression is made of, through any number of projections,
set operations and CTEs, but not through aggregate and window functions):

- project: U of a projection; arguments of aggregate and window functions. A bare column of a
  derived table, CTE or subquery counts only where something outside reads it: `EXISTS (SELECT * …)`
  and a star that only passes columns on read none of them (`is_strict` counts those, too);
- filter, join: U of a predicate of a filter or join. A predicate is what remains when AND, OR and
  NOT are taken apart. A comparison whose sides come from different relations joins, all else
  filters;
- group: U of GROUP BY and PARTITION BY; order: U of ORDER BY, that of windows too.

Left out, because it is the planner's work and not the query's:

- columns that unnesting a correlated subquery carries through its plan (duplicate-eliminated scans:
  in projections, groups and IS NOT DISTINCT FROM conditions; predicates of the query count);
- columns that a projection has only for the ORDER BY above it;
- the right side of the mark join that `x IN (SELECT y …)` becomes; x is filtered, y projected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Use = tuple[str, str, str]  # clause, table, column
Base = tuple[str, str]
Node = dict[str, Any]
Positions = frozenset[int]

_PASSING = {"LOGICAL_LIMIT", "LOGICAL_DISTINCT", "LOGICAL_ORDER_BY", "LOGICAL_FILTER"}
_SETS = {"LOGICAL_UNION", "LOGICAL_EXCEPT", "LOGICAL_INTERSECT"}
_JOINS = {"LOGICAL_COMPARISON_JOIN", "LOGICAL_DELIM_JOIN"}
_WINDOW_CLAUSES = {"partitions": "group", "orders": "order"}


@dataclass(frozen=True)
class Column:
    """A column of an operator.

    Attributes:
        bases: the base columns it is made of.
        relation: what FROM item it belongs to; 0 for none.
        is_carried: it stands in the plan of a subquery only because that is correlated.
    """

    bases: frozenset[Base] = frozenset()
    relation: int = 0
    is_carried: bool = False


NOTHING = Column()


def uses(plan: Node, *, is_strict: bool = False) -> set[Use]:
    """Every (clause, table, column) of a serialised plan.

    Args:
        plan: the answer of json_serialize_plan.
        is_strict: count every column of every projection, read or not.

    Raises:
        ValueError: there is no plan, or it has an operator this reading does not know.
    """
    if plan.get("error"):
        raise ValueError(str(plan.get("error_message")))
    found: set[Use] = set()
    for root in plan["plans"]:
        lineage = _Lineage()
        reader = _Reader(lineage, is_strict=is_strict)
        reader.read(root, frozenset(range(len(lineage.of(root)))), frozenset())
        found |= reader.uses
    return found


class _Lineage:
    """Bottom-up: what the columns of each operator are made of."""

    def __init__(self) -> None:
        self._known: dict[int, list[Column]] = {}
        self._ctes: dict[int, list[Column]] = {}
        self._carried: list[list[Column]] = []
        self._relations = 0

    def of(self, node: Node) -> list[Column]:
        """The columns an operator gives."""
        if id(node) not in self._known:
            self._known[id(node)] = self._columns(node)
        return self._known[id(node)]

    def _columns(self, node: Node) -> list[Column]:
        kind = node["type"]
        if kind in _PASSING:
            return self.of(node["children"][0])
        if kind in _SETS:
            return self._set_operation(node)
        if kind in _JOINS:
            return self._join(node)
        reading = getattr(self, "_" + kind.removeprefix("LOGICAL_").lower(), None)
        if reading is None:
            raise ValueError(f"operator {kind} is not known here")
        found: list[Column] = reading(node)
        return found

    def _get(self, node: Node) -> list[Column]:
        names, table = node["names"], node["function_data"]["table"]
        relation = self._relation()
        return [
            Column(frozenset({(table, names[one["index"]])}), relation)
            if one["index"] < len(names)
            else NOTHING  # the row id, for count(*)
            for one in node["column_indexes"]
        ]

    def _delim_get(self, _: Node) -> list[Column]:
        return [Column(c.bases, c.relation, True) for c in self._carried[-1]]

    def _cte_ref(self, node: Node) -> list[Column]:
        relation = self._relation()
        return [Column(c.bases, relation) for c in self._ctes[node["cte_index"]]]

    def _materialized_cte(self, node: Node) -> list[Column]:
        definition, query = node["children"]
        self._ctes[node["table_index"]] = self.of(definition)
        return self.of(query)

    def _cross_product(self, node: Node) -> list[Column]:
        return [column for child in node["children"] for column in self.of(child)]

    def _projection(self, node: Node) -> list[Column]:
        below, relation = self.of(node["children"][0]), self._relation()
        found = []
        for expression in node["expressions"]:
            parts = _columns(expression, below)
            is_carried = bool(parts) and all(part.is_carried for part in parts)
            found.append(Column(_bases(parts), relation, is_carried))
        return found

    def _aggregate_and_group_by(self, node: Node) -> list[Column]:
        below = self.of(node["children"][0])
        groups = []
        for expression in node["groups"]:
            parts = _columns(expression, below)
            is_plain = _is_plain(expression)
            relation = parts[0].relation if is_plain else self._relation()
            groups.append(Column(_bases(parts), relation, is_plain and parts[0].is_carried))
        rest = len(node["expressions"]) + len(node["grouping_functions"])
        return groups + [NOTHING] * rest

    def _window(self, node: Node) -> list[Column]:
        return self.of(node["children"][0]) + [NOTHING] * len(node["expressions"])

    def _set_operation(self, node: Node) -> list[Column]:
        relation = self._relation()
        branches = [self.of(child) for child in node["children"]]
        return [Column(_bases(row), relation) for row in zip(*branches, strict=True)]

    def _join(self, node: Node) -> list[Column]:
        first, second = node["children"]
        left = self.of(first)
        if node["type"] == "LOGICAL_DELIM_JOIN":
            eliminated = node["duplicate_eliminated_columns"]
            self._carried.append([c for one in eliminated for c in _columns(one, left)])
        right = self.of(second)
        if node["type"] == "LOGICAL_DELIM_JOIN":
            self._carried.pop()
        return [*left, NOTHING] if node["join_type"] == "MARK" else left + right

    def _relation(self) -> int:
        self._relations += 1
        return self._relations


class _Reader:
    """Top-down: what each operator uses, given which of its columns are read above it."""

    def __init__(self, lineage: _Lineage, *, is_strict: bool) -> None:
        self.uses: set[Use] = set()
        self._lineage = lineage
        self._is_strict = is_strict
        self._of_ctes: dict[int, Positions] = {}

    def read(self, node: Node, needed: Positions, ordered: Positions) -> None:
        """Note the uses of an operator and of all below it.

        Args:
            node: the operator.
            needed: positions of its columns that are read above.
            ordered: those that are there only for an ORDER BY.
        """
        kind = node["type"]
        if kind == "LOGICAL_PROJECTION":
            self._projection(node, needed, ordered)
        elif kind in _PASSING:
            self._passing(node, needed, ordered)
        elif kind in _JOINS:
            self._join(node, needed)
        elif kind in _SETS:
            is_whole = kind != "LOGICAL_UNION" or not node["setop_all"]
            for child in node["children"]:
                width = len(self._lineage.of(child))
                self.read(child, frozenset(range(width)) if is_whole else needed, frozenset())
        else:
            reading = getattr(self, "_" + kind.removeprefix("LOGICAL_").lower())
            reading(node, needed)

    def _get(self, node: Node, needed: Positions) -> None:
        pass

    def _delim_get(self, node: Node, needed: Positions) -> None:
        pass

    def _cte_ref(self, node: Node, needed: Positions) -> None:
        known = self._of_ctes.get(node["cte_index"], frozenset())
        self._of_ctes[node["cte_index"]] = known | needed

    def _materialized_cte(self, node: Node, needed: Positions) -> None:
        definition, query = node["children"]
        self.read(query, needed, frozenset())
        self.read(definition, self._of_ctes.get(node["table_index"], frozenset()), frozenset())

    def _cross_product(self, node: Node, needed: Positions) -> None:
        self._split(node, needed)

    def _split(self, node: Node, needed: Positions) -> None:
        """Hand what is needed of two operators side by side to each of them."""
        first, second = node["children"]
        width = len(self._lineage.of(first))
        self.read(first, frozenset(p for p in needed if p < width), frozenset())
        self.read(second, frozenset(p - width for p in needed if p >= width), frozenset())

    def _projection(self, node: Node, needed: Positions, ordered: Positions) -> None:
        (child,) = node["children"]
        below, wanted = self._lineage.of(child), set()
        for position, expression in enumerate(node["expressions"]):
            is_live = position in needed or not _is_plain(expression) or self._is_strict
            if is_live and position not in ordered:
                parts = _columns(expression, below)
                self._note("project", [part for part in parts if not part.is_carried])
            if is_live or position in ordered:
                wanted |= _positions(expression)
        self.read(child, frozenset(wanted), _only_ordered(node["expressions"], child))

    def _passing(self, node: Node, needed: Positions, ordered: Positions) -> None:
        (child,) = node["children"]
        below, wanted = self._lineage.of(child), set(needed)
        for predicate in node.get("expressions") or ():
            self._predicate(predicate, below)
            wanted |= _positions(predicate)
        for order in node.get("orders") or ():
            self._note("order", _columns(order["expression"], below))
            wanted |= _positions(order["expression"])
        if node["type"] == "LOGICAL_DISTINCT":
            wanted |= _positions(node["distinct_targets"])
            if node["distinct_type"] == "DISTINCT_ON":
                self._note("group", _columns(node["distinct_targets"], below))
        self.read(child, frozenset(wanted), ordered)

    def _aggregate_and_group_by(self, node: Node, _: Positions) -> None:
        (child,) = node["children"]
        below = self._lineage.of(child)
        for expression in node["groups"]:
            parts = _columns(expression, below)
            self._note("group", [part for part in parts if not part.is_carried])
        self._note("project", _columns(node["expressions"], below))
        for function in node["grouping_functions"]:
            self._note("project", [self._lineage.of(node)[position] for position in function])
        wanted = _positions([node["groups"], node["expressions"]])
        self.read(child, frozenset(wanted), frozenset())

    def _window(self, node: Node, needed: Positions) -> None:
        (child,) = node["children"]
        below = self._lineage.of(child)
        for window in node["expressions"]:
            for name, value in window.items():
                self._note(_WINDOW_CLAUSES.get(name, "project"), _columns(value, below))
        kept = {position for position in needed if position < len(below)}
        self.read(child, frozenset(kept | _positions(node["expressions"])), frozenset())

    def _join(self, node: Node, needed: Positions) -> None:
        left, right = (self._lineage.of(child) for child in node["children"])
        width, is_mark = len(left), node["join_type"] == "MARK"
        wanted = {p for p in needed if p < width or not is_mark}
        wanted |= _positions(node["duplicate_eliminated_columns"])
        for condition in node["conditions"]:
            sides = _columns(condition["left"], left), _columns(condition["right"], right)
            wanted |= _positions(condition["left"])
            wanted |= {width + position for position in _positions(condition["right"])}
            is_carrying = condition["comparison"] == "COMPARE_NOT_DISTINCT_FROM" and any(
                column.is_carried for side in sides for column in side
            )
            if is_mark and not is_carrying:
                self._note("filter", sides[0])
            elif not is_carrying:
                self._compare(*sides)
        if node["predicate"] is not None:
            self._predicate(node["predicate"], left + right)
            wanted |= _positions(node["predicate"])
        self._split(node, frozenset(wanted))

    def _predicate(self, node: Node, below: list[Column]) -> None:
        kind = node["expression_class"]
        if kind == "BOUND_CONJUNCTION" or node["type"] == "OPERATOR_NOT":
            for child in node["children"]:
                self._predicate(child, below)
        elif kind == "BOUND_COMPARISON":
            self._compare(_columns(node["left"], below), _columns(node["right"], below))
        else:
            self._note("filter", _columns(node, below))

    def _compare(self, left: list[Column], right: list[Column]) -> None:
        relations = [{column.relation for column in side if column.bases} for side in (left, right)]
        is_join = all(relations) and len(relations[0] | relations[1]) > 1
        self._note("join" if is_join else "filter", left + right)

    def _note(self, clause: str, columns: list[Column]) -> None:
        self.uses |= {(clause, *base) for column in columns for base in column.bases}


def _is_plain(expression: Node) -> bool:
    return bool(expression["expression_class"] == "BOUND_REF")


def _bases(columns: Iterable[Column]) -> frozenset[Base]:
    return frozenset().union(*(column.bases for column in columns))


def _positions(node: Any) -> set[int]:
    """The positions that an expression, or several, refer to."""
    if isinstance(node, list):
        return {position for part in node for position in _positions(part)}
    if not isinstance(node, dict):
        return set()
    if node.get("expression_class") == "BOUND_REF":
        return {node["index"]}
    return {position for part in node.values() for position in _positions(part)}


def _columns(node: Any, below: list[Column]) -> list[Column]:
    return [below[position] for position in sorted(_positions(node))]


def _only_ordered(expressions: list[Node], child: Node) -> Positions:
    """Positions of the projection below an ORDER BY that the projection above it drops again."""
    is_ordered = False
    while child["type"] in _PASSING:
        is_ordered = is_ordered or child["type"] == "LOGICAL_ORDER_BY"
        (child,) = child["children"]
    if not (is_ordered and all(map(_is_plain, expressions))):
        return frozenset()
    if child["type"] != "LOGICAL_PROJECTION":
        return frozenset()
    return frozenset(range(len(child["expressions"]))) - {one["index"] for one in expressions}
