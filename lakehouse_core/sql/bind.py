"""Bind the names of a statement: which source, which output, in which clause and role.

One pass over the tree, without a schema. What the text alone leaves open (an unqualified column
in a join) stays open here; `resolve` decides it with a schema or with evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lakehouse_core.sql.expression import ExpressionBinder, Place
from lakehouse_core.sql.scope import Output, Relation, Scope, Source

if TYPE_CHECKING:
    from collections.abc import Iterable

_BARE = (exp.Table, exp.Values, exp.From)


class QueryBinder(ExpressionBinder):
    """Binds queries: CTEs, FROM clauses, SELECT lists, clauses, set operations."""

    def query(
        self,
        node: exp.Expr,
        parent: Scope | None,
        ctes: dict[str, Relation],
    ) -> Relation:
        """Bind a query in its surroundings and say what it gives."""
        if isinstance(node, exp.Select):
            return self._select(node, parent, ctes)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, parent, ctes)
        if isinstance(node, exp.Subquery):
            return self._wrapped(node, parent, ctes)
        if isinstance(node, _BARE):
            return self._bare(node, parent, ctes)
        scope = self.new_scope(parent, ctes)
        self.expression(node, Place(scope, "other", None))
        return Relation(is_opaque=True)

    def with_ctes(
        self, node: exp.Expr, parent: Scope | None, ctes: dict[str, Relation]
    ) -> dict[str, Relation]:
        """The CTEs visible in a node: those from outside and its own."""
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        visible = dict(ctes)
        for cte in clause.expressions:
            alias = cte.args.get("alias")
            name = self.name_of(alias.this if alias else None)
            is_recursive = bool(clause.args.get("recursive"))
            visible[name] = self._cte(cte, parent, visible, is_recursive=is_recursive)
        return visible

    def _cte(
        self, cte: exp.Expr, parent: Scope | None, ctes: dict[str, Relation], *, is_recursive: bool
    ) -> Relation:
        alias = cte.args.get("alias")
        ident = alias.this if alias else None
        if ident is not None:
            self.bound.aliases.append((ident, "cte"))
        body = cte.this
        if not (is_recursive and isinstance(body, exp.SetOperation)):
            return self._named_columns(self.query(body, parent, ctes), alias, ident)
        # The first branch names the columns; the others may read what it gives.
        first, others, ctes = self._branches(body, parent, ctes)
        named = self._named_columns(self.query(first, parent, ctes), alias, ident)
        ctes = {**ctes, self.name_of(ident): named}
        for branch in others:
            self._pair(named.outputs, self.query(branch, parent, ctes).outputs)
        return named

    def _branches(
        self, node: exp.SetOperation, parent: Scope | None, ctes: dict[str, Relation]
    ) -> tuple[exp.Expr, list[exp.Expr], dict[str, Relation]]:
        """First branch, other branches and CTEs; chains are long, so no recursion."""
        others: list[exp.Expr] = []
        left: exp.Expr = node
        while isinstance(left, exp.SetOperation):
            ctes = self.with_ctes(left, parent, ctes)
            others.append(left.expression)
            left = left.this
        return left, others[::-1], ctes

    def add_source(self, node: exp.Expr | None, scope: Scope) -> None:
        """Make what stands in a FROM or JOIN visible in the scope."""
        if not isinstance(node, exp.Expr):
            return
        if isinstance(node, exp.Table):
            self._table(node, scope)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            self.add_source(node.this, scope)  # brackets around a join
        elif isinstance(node, exp.Query):
            inner = node.this if isinstance(node, exp.Subquery) else node
            ctes = self.with_ctes(node, None, scope.ctes) if inner is not node else scope.ctes
            self._derived(node, self.query(inner, scope.parent, ctes), scope)
        elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            self._derived(node, self.query(node.this, scope, scope.ctes), scope)
        elif isinstance(node, exp.Paren):
            self.add_source(node.this, scope)
        else:  # UNNEST, VALUES, LATERAL VIEW, a table function
            self._rows(node, scope)
        for join in node.args.get("joins") or ():
            self.add_join(join, scope)
        for lateral in node.args.get("laterals") or ():
            self.add_source(lateral, scope)

    def add_join(self, join: exp.Expr, scope: Scope) -> None:
        """Make the right side of a join visible and bind its condition."""
        before, first = len(scope.sources), len(self.bound.conditions)
        self.add_source(join.this, scope)
        condition = join.args.get("on")
        if condition is not None:
            self.condition(condition, scope, "join")
        if join.args.get("side") or join.args.get("kind"):
            self._outer(join, scope, before, first)
        for ident in join.args.get("using") or ():
            self._using(ident, scope, before)

    def _outer(self, join: exp.Expr, scope: Scope, before: int, first: int) -> None:
        """An outer join keeps the rows of one side whatever its condition says."""
        left, right = scope.sources[:before], scope.sources[before:]
        side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
        if side in ("RIGHT", "FULL"):
            for source in left:
                source.is_nullable = True
        if side in ("LEFT", "FULL") and kind not in ("SEMI", "ANTI"):
            for source in right:
                source.is_nullable = True
        if kind == "ANTI" or (side == "LEFT" and kind != "SEMI"):
            self.only_prune(first, scope, right)
        elif side in ("RIGHT", "FULL"):
            self.only_prune(first, scope, left if side == "RIGHT" else [])

    def only_prune(self, first: int, scope: Scope, sources: list[Source]) -> None:
        """Conditions of a scope from a number on spare the rows of these sources only."""
        for condition in self.bound.conditions[first:]:
            if condition.scope is scope:
                condition.prunes = sources

    # --- queries -----------------------------------------------------------------------------

    def _select(
        self,
        node: exp.Select,
        parent: Scope | None,
        ctes: dict[str, Relation],
    ) -> Relation:
        args = node.args
        scope = self.new_scope(parent, self.with_ctes(node, parent, ctes))
        source = args.get("from_")
        if source is not None:
            self.add_source(source.this, scope)
        for join in args.get("joins") or ():
            self.add_join(join, scope)
        for lateral in args.get("laterals") or ():
            self.add_source(lateral, scope)
        if args.get("match") is not None:
            self._match(args["match"], scope)
        for window in args.get("windows") or ():
            if isinstance(window.this, exp.Identifier):
                self.bound.aliases.append((window.this, "window"))
                scope.windows[self.name_of(window.this)] = window.this
            self.expression(window, Place(scope, "select", "project"))
        for item, expression in enumerate(node.expressions):
            self._item(expression, item, scope)
        if args.get("where") is not None:
            self.condition(args["where"].this, scope, "where")
        self._grouping(args, scope)
        self._ordering(args, scope)
        if args.get("distinct") is not None:
            self.read_all(scope.relation)
        return scope.relation

    def _grouping(self, args: dict[str, Any], scope: Scope) -> None:
        group, distinct = args.get("group"), args.get("distinct")
        if group is not None:
            if group.args.get("all") is True:
                self.bound.item_uses += [(o, "group") for o in scope.relation.outputs]
            self.clause(group, scope, "group", "group")
        if distinct is not None and distinct.args.get("on") is not None:
            scope.is_barrier = True  # which row of a group is kept depends on all of them
            self.clause(distinct.args["on"], scope, "group", "group")
        for name in ("having", "qualify"):
            if args.get(name) is not None:
                first = len(self.bound.conditions)
                self.condition(args[name].this, scope, "having")
                self.only_prune(first, scope, [])
        for name in ("prewhere", "connect"):
            if args.get(name) is not None:
                self.expression(args[name], Place(scope, "where", "filter_range"))

    def _ordering(self, args: dict[str, Any], scope: Scope) -> None:
        for name in ("order", "sort", "cluster", "distribute"):
            if args.get(name) is not None:
                self.clause(args[name], scope, "order", "order")
        for name in ("limit", "offset"):
            if args.get(name) is not None:
                scope.is_barrier = True
                self.expression(args[name], Place(scope, "other", None))

    def _item(self, node: exp.Expr, item: int, scope: Scope) -> None:
        """One item of a SELECT list."""
        if node.__class__ is exp.Star or (
            node.__class__ is exp.Column and node.this.__class__ is exp.Star
        ):
            self._star(node, scope)
            return
        inner, idents = node, []
        if isinstance(node, exp.Alias):
            inner, idents = node.this, [node.args["alias"]]
        elif isinstance(node, exp.Aliases):
            inner, idents = node.this, node.expressions
        first = len(self.bound.refs)
        self.expression(inner, Place(scope, "select", "project", item))
        refs = [r for r in self.bound.refs[first:] if r.scope is scope and not r.is_inner]
        is_plain = inner.__class__ is exp.Column
        for ident in idents:
            self.bound.aliases.append((ident, "column"))
            name = self.name_of(ident)
            scope.relation.add(Output(name, ident, refs, item=item, is_plain=is_plain))
        if not idents:
            name = self.output_name(inner)
            scope.relation.add(Output(name, None, refs, item=item, is_plain=is_plain))

    def _star(self, node: exp.Expr, scope: Scope) -> None:
        star = node.this if node.__class__ is exp.Column else node
        sources = scope.sources
        if node.__class__ is exp.Column:
            source = self.qualifier(node, scope)
            sources = [source] if source else []
        hidden = {self.name_of(e) for e in star.args.get("except_") or ()}
        for source in sources:
            self._through(source, hidden, scope)
        for name in ("replace", "rename"):
            for expression in star.args.get(name) or ():
                self._item(expression, len(scope.relation.outputs), scope)

    def _through(self, source: Source, hidden: set[str], scope: Scope) -> None:
        relation = scope.relation
        if source.relation is None:
            relation.opens.append(source)
            return
        relation.opens += source.relation.opens
        relation.is_opaque = relation.is_opaque or source.relation.is_opaque
        for output in source.relation.outputs:
            if output.name not in hidden:
                relation.add(output)

    def _set_operation(
        self, node: exp.SetOperation, parent: Scope | None, ctes: dict[str, Relation]
    ) -> Relation:
        """All branches; the first one names the outputs."""
        first, others, ctes = self._branches(node, parent, ctes)
        scope = self.new_scope(parent, ctes)
        relations = [self.query(branch, parent, ctes) for branch in (first, *others)]
        result = scope.relation
        result.opens = [source for relation in relations for source in relation.opens]
        result.is_opaque = any(relation.is_opaque for relation in relations)
        for output in relations[0].outputs:
            result.add(Output(output.name, None, [], [output], item=output.item))
        for relation in relations[1:]:
            self._pair(result.outputs, relation.outputs)
        self._ordering(node.args, scope)
        if node.args.get("distinct") is not False:
            self.read_all(result)
        return result

    def _pair(self, outputs: list[Output], others: Iterable[Output]) -> None:
        """Let each output stand for the one at its place in another branch, too."""
        for output, other in zip(outputs, others, strict=False):
            output.parts.append(other)

    def _wrapped(
        self,
        node: exp.Subquery,
        parent: Scope | None,
        ctes: dict[str, Relation],
    ) -> Relation:
        ctes = self.with_ctes(node, parent, ctes)
        if node.args.get("joins") or isinstance(node.this, exp.Table):
            return self._bare(node, parent, ctes)
        relation = self.query(node.this, parent, ctes)
        if node.args.get("order") is not None:
            scope = self.new_scope(parent, ctes)
            scope.relation = relation
            self._ordering(node.args, scope)
        return relation

    def _bare(self, node: exp.Expr, parent: Scope | None, ctes: dict[str, Relation]) -> Relation:
        """`TABLE t`, `FROM t`, `VALUES …`: everything the source gives."""
        scope = self.new_scope(parent, ctes)
        self.add_source(node.this if isinstance(node, exp.From) else node, scope)
        for source in scope.sources:
            self._through(source, set(), scope)
        return scope.relation

    # --- sources -----------------------------------------------------------------------------

    def _table(self, node: exp.Table, scope: Scope) -> None:
        parts = self.table_parts(node)
        if not parts:
            self._rows(node, scope)
            return
        ident, name, relation = None, parts[-1], None
        if len(parts) == 1 and parts[0] in scope.ctes:
            relation = scope.ctes[parts[0]]
            ident = relation.ident
            if ident is not None:
                self.bound.renames.append((node.this, ident))
        else:
            self.bound.tables.setdefault(parts)
        if node.args.get("version") is not None or node.args.get("when") is not None:
            self.bound.is_travelling = True
        alias = node.args.get("alias")
        if alias is not None and alias.this is not None:
            ident, name = alias.this, self.name_of(alias.this)
            self.bound.aliases.append((ident, "table"))
        if node.args.get("pivots"):
            relation = self._pivoted(node, Source(name, parts, relation), scope)
        elif alias is not None and alias.args.get("columns"):
            relation = self._named_columns(relation or Relation(is_opaque=True), alias, None)
        scope.add(Source(name, None if relation else parts, relation, ident))

    def _derived(self, node: exp.Expr, relation: Relation, scope: Scope) -> None:
        alias = node.args.get("alias")
        ident = alias.this if alias is not None else None
        if ident is not None:
            self.bound.aliases.append((ident, "table"))
        if node.args.get("pivots"):
            relation = self._pivoted(node, Source("", None, relation), scope)
        relation = self._named_columns(relation, alias, None)
        scope.add(Source(self.name_of(ident), None, relation, ident))

    def _rows(self, node: exp.Expr, scope: Scope) -> None:
        """Something that makes rows; its columns are those its alias names."""
        for name, value in node.args.items():
            if name in ("alias", "joins", "laterals", "pivots", "sample", "offset"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, exp.Expr):
                    self.table_function(child, scope)
        alias = node.args.get("alias")
        ident = alias.this if alias is not None else None
        if ident is not None:
            self.bound.aliases.append((ident, "table"))
        relation = Relation(is_opaque=not (alias is not None and alias.args.get("columns")))
        name = self.name_of(ident)
        if relation.is_opaque and ident is not None:
            # Of a function with one column the alias names the column, too.
            relation.names[name] = Output(name, ident)
        columns = list(alias.args.get("columns") or ()) if alias is not None else []
        if isinstance(node.args.get("offset"), exp.Identifier):
            columns.append(node.args["offset"])
        for column in columns:
            self.bound.aliases.append((column, "column"))
            relation.add(Output(self.name_of(column), column))
        scope.add(Source(name, None, relation, ident))

    def _named_columns(
        self, relation: Relation, alias: exp.Expr | None, cte: exp.Expr | None
    ) -> Relation:
        """The relation under the column names of an alias such as `t (a, b)`."""
        columns = (alias.args.get("columns") or ()) if alias is not None else ()
        if not columns and cte is None:
            return relation
        named = Relation(opens=relation.opens, is_opaque=relation.is_opaque, ident=cte)
        for position, column in enumerate(columns):
            self.bound.aliases.append((column, "column"))
            parts = relation.outputs[position : position + 1] if not relation.opens else []
            named.add(Output(self.name_of(column), column, [], parts, item=position))
        for output in relation.outputs[len(columns) :]:
            named.add(output if cte is None else Output(output.name, None, [], [output]))
        if columns:
            named.opens, named.is_opaque = [], False
        return named

    def _pivoted(self, node: exp.Expr, source: Source, scope: Scope) -> Relation:
        """A pivot makes columns nobody can name; the others pass through."""
        inner = self.new_scope(scope.parent, scope.ctes)
        inner.add(source)
        for pivot in node.args["pivots"]:
            for part in ("expressions", "fields", "using", "group"):
                value = pivot.args.get(part)
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, exp.Expr):
                        self.expression(child, Place(inner, "select", "project"))
        return Relation(
            outputs=list(source.relation.outputs) if source.relation else [],
            names=dict(source.relation.names) if source.relation else {},
            is_opaque=True,
        )

    def _using(self, ident: exp.Expr, scope: Scope, before: int) -> None:
        name = self.name_of(ident)
        left, right = scope.sources[:before], scope.sources[before:]
        known = scope.using.get(name)
        for sources in ([known] if known else left, right):
            self.add_ref(name, scope, "join", "join", node=ident).only = sources
        if len(left) == 1:
            scope.using.setdefault(name, left[0])

    def _match(self, node: exp.Expr, scope: Scope) -> None:
        """MATCH_RECOGNIZE: pattern variables qualify columns of the one table it reads."""
        first = len(self.bound.refs)
        for name in ("partition_by", "order", "measures", "define"):
            value = node.args.get(name)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, exp.Expr):
                    self.expression(child, Place(scope, "select", "project"))
        for ref in self.bound.refs[first:]:
            if ref.is_inner or ref.source is not None or ref.node is None:
                continue
            column = ref.node.parent
            if isinstance(column, exp.Column) and column.args.get("table") is ref.node:
                ref.name, ref.node = self.name_of(column.this), column.this
        relation = Relation(opens=list(scope.sources[:1]), is_opaque=True)
        for measure in node.args.get("measures") or ():
            ident = measure.this.args.get("alias")
            if ident is not None:
                relation.add(Output(self.name_of(ident), None))
        scope.add(Source("", None, relation))
