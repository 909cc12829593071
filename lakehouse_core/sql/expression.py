"""Bind the names inside expressions, and say what a predicate does with its columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from lakehouse_core.sql.scope import Bound, Comparison, Condition, Ref, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.records import Role
    from lakehouse_core.sql.scope import Clause, Logic, Relation, Source

_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery)
_ROLES: dict[type[exp.Expr], Role] = {
    exp.EQ: "filter_eq",
    exp.NullSafeEQ: "filter_eq",
    exp.Is: "filter_eq",
    exp.Column: "filter_eq",
    exp.In: "filter_in",
}
# Tuples, not unions: a union in isinstance() is built anew at every call.
_CONNECTORS = (exp.And, exp.Or, exp.Xor)
_COMPARISONS = (exp.Binary, exp.Between)
_LISTS = (
    exp.Group,
    exp.Order,
    exp.Ordered,
    exp.Tuple,
    exp.Paren,
    exp.Rollup,
    exp.Cube,
    exp.GroupingSets,
    exp.Sort,
)
# What the walk does at a node.
_LEAF, _COLUMN, _QUERY, _AGGREGATE, _SPECIAL, _PLAIN = range(6)
_LEAVES = (exp.Literal, exp.Identifier, exp.Var, exp.Star, exp.Null, exp.Boolean, exp.DataType)
_SPECIALS = (exp.Window, exp.Lambda, exp.PropertyEQ, exp.Kwarg, exp.Alias, exp.Exists, exp.Filter)


@dataclass(slots=True)  # not frozen: one is made per predicate, and frozen ones are slow to make
class Place:
    """Where an expression stands; never changed.

    Attributes:
        scope: its scope.
        clause: its clause.
        role: what the clause does with columns; None when it only names them.
        item: position of the SELECT item, or -1.
        is_inner: inside an aggregate or window function.
        params: names that a lambda binds.
    """

    scope: Scope
    clause: Clause
    role: Role | None
    item: int = -1
    is_inner: bool = False
    params: frozenset[str] = frozenset()

    def inside(self, role: Role) -> Place:
        """The place of an argument of an aggregate or window function."""
        inner = role if self.role else None
        return Place(self.scope, self.clause, inner, self.item, True, self.params)


class ExpressionBinder(ABC):
    """Binds expressions; the queries inside them are bound by its subclass."""

    # What to do at a kind of node, worked out once per kind: it never changes.
    _actions: ClassVar[dict[type[exp.Expr], int]] = {}

    def __init__(self, dialect: SqlDialect) -> None:
        self.dialect = dialect
        self.bound = Bound()

    @abstractmethod
    def query(
        self,
        node: exp.Expr,
        parent: Scope | None,
        ctes: dict[str, Relation],
    ) -> Relation:
        """Bind a query in its surroundings and say what it gives."""

    # --- names -------------------------------------------------------------------------------

    def new_scope(self, parent: Scope | None, ctes: dict[str, Relation]) -> Scope:
        """A scope inside another, or at the top."""
        scope = Scope(parent, ctes)
        self.bound.scopes.append(scope)
        return scope

    def name_of(self, node: exp.Expr | None) -> str:
        """The folded name of an identifier, or of the column around it."""
        if node is None:
            return ""
        if node.__class__ is exp.Identifier:
            args = node.args
            return self.dialect.fold(args["this"], bool(args.get("quoted")))
        if node.__class__ is exp.Column:
            return self.name_of(node.this)
        return self.dialect.fold(node.name, False)

    def output_name(self, node: exp.Expr) -> str:
        """The name a SELECT item without alias gives to its column."""
        if isinstance(node, exp.Column):
            return self.name_of(node.this)
        if isinstance(node, exp.Dot):
            return self.name_of(node.expression)
        return ""

    def table_parts(self, node: exp.Table) -> tuple[str, ...]:
        """The folded parts of a table's name; empty when it is a function."""
        args = node.args
        if args.get("db") is None and args["this"].__class__ is exp.Identifier:
            return (self.name_of(args["this"]),)
        parts = node.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            return ()
        return tuple(self.name_of(part) for part in parts)

    def qualifier(self, column: exp.Expr, scope: Scope) -> Source | None:
        """The source a column is qualified with; its alias is renamed with it."""
        ident = column.args.get("table")
        source = scope.source_named(self.name_of(ident)) if ident is not None else None
        if ident is not None and source is not None and source.ident is not None:
            self.bound.renames.append((ident, source.ident))
        return source

    def add_ref(
        self, name: str, scope: Scope, clause: Clause, role: Role | None, *, node: exp.Expr | None
    ) -> Ref:
        """Note that a column is named."""
        ref = Ref(name, scope, clause, role, node)
        self.bound.refs.append(ref)
        return ref

    def read_all(self, relation: Relation) -> None:
        """Note that every column is read, those behind a star too.

        A star in a derived table or CTE only passes columns on; what is read of them is named
        outside. It counts where the rows leave the statement or are compared as a whole.
        """
        self.bound.stars += relation.opens

    # --- expressions -------------------------------------------------------------------------

    def expression(self, node: exp.Expr, place: Place) -> None:
        """Note every column of an expression in the role of its place."""
        kind = node.__class__
        if kind is exp.Column:  # most of them, and most of the rest are literals
            self._column(node, place)
            return
        if kind is exp.Literal:
            return
        stack = [(node, place)]
        actions = self._actions
        while stack:
            node, place = stack.pop()
            kind = node.__class__
            action = actions.get(kind)
            if action is None:
                action = actions[kind] = _action(kind)
            if action == _PLAIN:
                stack.extend([(child, place) for child in children(node)])
            elif action == _COLUMN:
                self._column(node, place)
            elif action == _QUERY:
                self.read_all(self.query(node, place.scope, place.scope.ctes))
            elif action == _AGGREGATE:
                inside = place.inside("project")
                stack.extend([(child, inside) for child in children(node)])
            elif action == _SPECIAL:
                stack.extend(self._special(node, place))

    def _special(self, node: exp.Expr, place: Place) -> Iterator[tuple[exp.Expr, Place]]:
        if isinstance(node, exp.Window):
            yield from self._window(node, place)
        elif isinstance(node, exp.Lambda):
            params = place.params | {self.name_of(p) for p in node.expressions}
            yield node.this, replace(place, params=params)
        elif isinstance(node, exp.Exists):
            if isinstance(node.this, _QUERIES):
                self.query(node.this, place.scope, place.scope.ctes)
            else:  # Spark's exists(array, lambda)
                yield from ((child, place) for child in children(node))
        elif isinstance(node, exp.Filter):
            inside = place.inside("project")
            yield from ((child, inside) for child in children(node))
        elif isinstance(node, exp.Alias):  # a field of a struct
            yield node.this, place
        else:  # a named argument: its name is no column
            yield node.expression, place

    def _window(self, node: exp.Window, place: Place) -> Iterator[tuple[exp.Expr, Place]]:
        place.scope.is_barrier = True
        roles: dict[str, Role] = {"partition_by": "group", "order": "order"}
        named = node.args.get("alias")
        definition = place.scope.windows.get(self.name_of(named))
        if named is not None and definition is not None:
            self.bound.renames.append((named, definition))
        for name, value in node.args.items():
            if name == "alias":
                continue
            inside = place.inside(roles.get(name, "project"))
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, exp.Expr):
                    yield child, inside

    def _column(self, node: exp.Expr, place: Place) -> None:
        args = node.args
        ident = args["this"]
        if ident.__class__ is exp.Star:
            self.qualifier(node, place.scope)  # COUNT(t.*)
            return
        source = None
        if args.get("table") is not None:
            source, ident = self._qualified(node, place)
        name = self.name_of(ident)
        if source is None and name in place.params:
            return
        ref = Ref(name, place.scope, place.clause, place.role, ident)
        if place.item >= 0:
            ref.item = place.item
        if place.is_inner:
            ref.is_inner = True
        if source is not None:
            ref.source, ref.is_qualified = source, True
        self.bound.refs.append(ref)

    def _qualified(self, node: exp.Expr, place: Place) -> tuple[Source | None, exp.Expr]:
        """Source and column of `a.b`, which may as well be a field of the column `a`."""
        source = self.qualifier(node, place.scope)
        if source is not None:
            return source, node.args["this"]
        parts: list[Any] = [
            part
            for part in (node.args.get(n) for n in ("catalog", "db", "table", "this"))
            if part is not None
        ]
        for index, part in enumerate(parts[:-1]):
            source = place.scope.source_named(self.name_of(part))
            if source is not None:
                if source.ident is not None:
                    self.bound.renames.append((part, source.ident))
                return source, parts[index + 1]
        return None, parts[0]

    def table_function(self, node: exp.Expr, scope: Scope) -> None:
        """Arguments of a table function: only a qualified name is a column for sure."""
        first = len(self.bound.refs)
        self.expression(node, Place(scope, "other", "project"))
        if not isinstance(node, exp.Func) or isinstance(node, (exp.Unnest, exp.Explode)):
            return
        added = self.bound.refs[first:]
        self.bound.refs[first:] = [r for r in added if r.is_qualified or r.scope is not scope]

    # --- clauses -----------------------------------------------------------------------------

    def clause(self, node: Any, scope: Scope, clause: Clause, role: Role) -> None:
        """GROUP BY or ORDER BY: positions stand for items of the SELECT list."""
        place = Place(scope, clause, role)
        stack: list[exp.Expr] = [node]
        while stack:
            part = stack.pop()
            if part.__class__ is exp.Column:
                self._column(part, place)
            elif isinstance(part, exp.Literal):
                self._position(part, scope, role)
            elif isinstance(part, _LISTS):
                stack.extend(children(part))
            elif isinstance(part, exp.Var) and part.name.upper() == "ALL":
                self.bound.item_uses += [(output, role) for output in scope.relation.outputs]
            else:
                self.expression(part, place)

    def _position(self, node: exp.Literal, scope: Scope, role: Role) -> None:
        text = str(node.this)
        position = int(text) - 1 if text.isdecimal() else -1
        outputs = scope.relation.outputs
        if not node.is_string and 0 <= position < len(outputs) and not scope.relation.opens:
            self.bound.item_uses.append((outputs[position], role))

    def condition(self, node: exp.Expr, scope: Scope, clause: Clause) -> None:
        """A condition: each predicate gives its columns a role."""
        stack: list[tuple[exp.Expr, Logic]] = [(node, (False, -1))]
        while stack:
            part, logic = stack.pop()
            if isinstance(part, _CONNECTORS):
                logic = self._below(part, logic)
                stack += [(part.expression, logic), (part.this, logic)]
            elif isinstance(part, exp.Paren):
                stack.append((part.this, logic))
            elif isinstance(part, exp.Not):
                stack.append((part.this, (not logic[0], logic[1])))
            else:
                self._predicate(part, Place(scope, clause, _role(part)), logic)

    def _below(self, node: exp.Expr, logic: Logic) -> Logic:
        """The logic of both sides of AND, OR, XOR: a negated OR is an AND, and the reverse."""
        is_conjunction = isinstance(node, exp.Or if logic[0] else exp.And)
        if is_conjunction or logic[1] >= 0:
            return logic
        self.bound.ors += 1
        return logic[0], self.bound.ors - 1

    def _predicate(self, node: exp.Expr, place: Place, logic: Logic) -> None:
        refs = self.bound.refs
        first = len(refs)
        if not isinstance(node, _COMPARISONS):
            self.expression(node, place)
            middle = end = len(refs)
        else:
            self.expression(node.this, place)
            middle = len(refs)
            for name, value in node.args.items():
                if name != "this" and isinstance(value, exp.Expr):
                    self.expression(value, place)
            end = len(refs)
        if first == end:
            return
        condition = Condition(node, place.scope, refs[first:], middle - first, logic)
        self.bound.conditions.append(condition)
        if middle in (first, end):
            return
        left = self._own(refs[first:middle], place)
        right = self._own(refs[middle:], place)
        if left and right:
            self.bound.comparisons.append(Comparison(left, right))

    def _own(self, refs: list[Ref], place: Place) -> list[Ref]:
        """References that stand in the predicate itself, not in a subquery or an aggregate."""
        return [ref for ref in refs if ref.scope is place.scope and not ref.is_inner]


def children(node: exp.Expr) -> list[exp.Expr]:
    """The nodes directly below a node."""
    found: list[exp.Expr] = []
    for value in node.args.values():
        if value.__class__ is list:
            found += [child for child in value if isinstance(child, exp.Expr)]
        elif isinstance(value, exp.Expr):
            found.append(value)
    return found


def _action(kind: type[exp.Expr]) -> int:
    for kinds, action in (
        ((exp.Column,), _COLUMN),
        (_LEAVES, _LEAF),
        (_QUERIES, _QUERY),
        (_SPECIALS, _SPECIAL),
        ((exp.AggFunc, exp.WithinGroup), _AGGREGATE),
    ):
        if issubclass(kind, kinds):
            return action
    return _PLAIN


def _role(node: exp.Expr) -> Role:
    return _ROLES.get(node.__class__, "filter_range")
