"""Bind whole statements: queries, DML with its targets, DDL, and the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from lakehouse_core.sql.bind import QueryBinder
from lakehouse_core.sql.expression import Place, children

if TYPE_CHECKING:
    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.scope import Bound, Relation, Scope

_QUERIES = (exp.Query, exp.Values, exp.From)
# Kinds of CREATE, DROP and ALTER whose name is a table's.
_TABLE_KINDS = frozenset({"TABLE", "VIEW", "MATERIALIZED VIEW", "EXTERNAL TABLE", "DYNAMIC TABLE"})
# Statements that name something that looks like a table but is a schema or a setting.
_TABLELESS = (exp.Use, exp.Set, exp.Pragma, exp.Show, exp.Attach, exp.Detach, exp.Kill)


def bind(root: exp.Expr, dialect: SqlDialect) -> Bound:
    """Bind the names of a statement as far as its text goes."""
    binder = StatementBinder(dialect)
    binder.statement(root, {})
    return binder.bound


class StatementBinder(QueryBinder):
    """Binds one statement."""

    def statement(self, node: exp.Expr, ctes: dict[str, Relation]) -> None:
        """Bind a statement with the CTEs around it."""
        if isinstance(node, _QUERIES):
            self.read_all(self.query(node, None, ctes))
        elif isinstance(node, exp.Insert):
            self._insert(node, ctes)
        elif isinstance(node, exp.Update):
            self._update(node, ctes)
        elif isinstance(node, exp.Delete):
            self._delete(node, ctes)
        elif isinstance(node, exp.Merge):
            self._merge(node, ctes)
        elif isinstance(node, exp.Pivot):
            self._pivot(node, ctes)
        elif not isinstance(node, _TABLELESS):
            self._other(node, self.with_ctes(node, None, ctes))

    def _insert(self, node: exp.Insert, ctes: dict[str, Relation]) -> None:
        ctes = self.with_ctes(node, None, ctes)
        self._target(node.this)
        if isinstance(node.expression, exp.Expr):
            self.read_all(self.query(node.expression, None, ctes))

    def _update(self, node: exp.Update, ctes: dict[str, Relation]) -> None:
        scope = self.new_scope(None, self.with_ctes(node, None, ctes))
        self.add_source(node.this, scope)
        source = node.args.get("from_")
        if source is not None:
            self.add_source(source.this, scope)
        for join in node.args.get("joins") or ():
            self.add_join(join, scope)
        self._assignments(node, scope)
        self._where(node, scope)

    def _delete(self, node: exp.Delete, ctes: dict[str, Relation]) -> None:
        scope = self.new_scope(None, self.with_ctes(node, None, ctes))
        self.add_source(node.this, scope)
        for source in node.args.get("using") or ():
            self.add_source(source, scope)
        if not scope.sources:  # DELETE t
            for table in node.args.get("tables") or ():
                self.add_source(table, scope)
        self._where(node, scope)

    def _merge(self, node: exp.Merge, ctes: dict[str, Relation]) -> None:
        scope = self.new_scope(None, self.with_ctes(node, None, ctes))
        self.add_source(node.this, scope)
        self.add_source(node.args.get("using"), scope)
        first = len(self.bound.conditions)
        if node.args.get("on") is not None:
            self.condition(node.args["on"], scope, "join")
            self.only_prune(first, scope, scope.sources[:1])
        for when in node.args["whens"].expressions:
            if when.args.get("condition") is not None:
                first = len(self.bound.conditions)
                self.condition(when.args["condition"], scope, "where")
                self.only_prune(first, scope, [])
            then = when.args.get("then")
            if isinstance(then, exp.Update):
                self._assignments(then, scope)
            elif isinstance(then, exp.Insert):
                self._named_only(then.this, scope)
                if isinstance(then.expression, exp.Expr):
                    self.expression(then.expression, Place(scope, "select", "project"))

    def _assignments(self, node: exp.Expr, scope: Scope) -> None:
        """`SET a = b`: the left side is written, the right side read."""
        for assignment in node.expressions:
            if isinstance(assignment, exp.EQ):
                self._named_only(assignment.this, scope)
                self.expression(assignment.expression, Place(scope, "select", "project"))
            else:
                self.expression(assignment, Place(scope, "other", None))

    def _named_only(self, node: exp.Expr | None, scope: Scope) -> None:
        """Columns of the target that are written, not read."""
        if node is None:
            return
        first = len(self.bound.refs)
        self.expression(node, Place(scope, "other", None))
        for ref in self.bound.refs[first:]:
            if not ref.is_qualified:
                ref.only = scope.sources[:1]

    def _where(self, node: exp.Expr, scope: Scope) -> None:
        where = node.args.get("where")
        if where is not None:
            self.condition(where.this, scope, "where")

    def _target(self, node: exp.Expr | None) -> None:
        """The table a statement writes; its columns are named, not read."""
        table = node.this if isinstance(node, exp.Schema) else node
        if isinstance(table, exp.Table):
            parts = self.table_parts(table)
            if parts:
                self.bound.tables.setdefault(parts)

    def _pivot(self, node: exp.Pivot, ctes: dict[str, Relation]) -> None:
        scope = self.new_scope(None, self.with_ctes(node, None, ctes))
        self.add_source(node.this, scope)
        for name in ("expressions", "fields", "using"):
            for child in node.args.get(name) or ():
                self.expression(child, Place(scope, "select", "project"))
        if node.args.get("group") is not None:
            self.clause(node.args["group"], scope, "group", "group")

    def _other(self, node: exp.Expr, ctes: dict[str, Relation]) -> None:
        """DDL and the rest: every table named, every query inside."""
        if _names_no_table(node):
            return
        stack = [child for child in children(node) if not isinstance(child, exp.With)]
        while stack:
            part = stack.pop()
            if isinstance(part, _QUERIES):
                self.read_all(self.query(part, None, ctes))
            elif isinstance(part, exp.Insert | exp.Update | exp.Delete | exp.Merge):
                self.statement(part, ctes)
            elif isinstance(part, exp.Table):
                self._target(part)
            elif not isinstance(part, exp.Properties):
                stack += children(part)


def _names_no_table(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Create | exp.Drop | exp.Alter | exp.Comment):
        return False
    return str(node.args.get("kind") or "").upper() not in _TABLE_KINDS
