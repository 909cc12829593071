"""Say which base table a column comes from when the text alone does not.

In this order, and never by guessing:

1. a schema, for the tables it knows: a table without the column is out;
2. proof in the statement itself: `o.o_orderkey` or a scope with one table shows that the table has
   the column, and an unqualified name belongs to the one table in scope that has it;
3. the prefix convention, when it explains the whole statement (see `convention`);
4. elimination: one table is left.

What is still open belongs to table "". An unqualified name belongs to the innermost scope that can
have it; with one table in that scope, it is that table's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakehouse_core.sql import convention

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.scope import Bound, Output, Ref, Scope, Source

Table = tuple[str, ...]


@dataclass(slots=True)
class Evidence:
    """What a statement shows about its tables."""

    proven: dict[str, set[Table]] = field(default_factory=dict)
    prefixes: dict[str, Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """Where a name leads: a source, and its output unless it is a base table; or nowhere yet."""

    source: Source | None
    output: Output | None = None


class Resolver:
    """Finds the source of every reference of one statement."""

    def __init__(
        self,
        bound: Bound,
        dialect: SqlDialect,
        columns_of: Callable[[Table], tuple[str, ...] | None],
    ) -> None:
        self._bound = bound
        self._dialect = dialect
        self._columns: dict[Table, frozenset[str] | None] = {}
        for scope in bound.scopes:
            for source in scope.sources:
                if source.table is not None and source.table not in self._columns:
                    known = columns_of(source.table)
                    self._columns[source.table] = None if known is None else frozenset(known)
        self._evidence = Evidence()
        self._memo: dict[tuple[int, str], Found | None] = {}

    def resolve(self) -> None:
        """Set `source` of every reference to a base column; None where it stays open."""
        self._prove()
        self._learn_prefixes()
        for ref in self._bound.refs:
            if ref.source is not None and ref.is_qualified:
                self._through_qualifier(ref)
            elif ref.output is None or self._is_column_after_all(ref):
                self._search(ref)

    def is_known(self, table: Table) -> bool:
        """Whether the columns of a table are known."""
        return self._columns.get(table) is not None

    # --- evidence ----------------------------------------------------------------------------

    def _prove(self) -> None:
        """Columns whose owner the text proves."""
        for ref in self._bound.refs:
            if ref.output is not None:
                continue
            source = ref.source if ref.is_qualified else _only_source(ref)
            if source is not None and source.table is not None and self._may_have(source, ref.name):
                self._evidence.proven.setdefault(ref.name, set()).add(source.table)

    def _learn_prefixes(self) -> None:
        names = [ref.name for ref in self._bound.refs if ref.output is None]
        tables = [table for table in self._columns if self._columns[table] is None]
        known = [table for table in self._columns if self._columns[table] is not None]
        if known or len(tables) < 2:
            return
        self._evidence.prefixes = convention.owners(names, tables, self._evidence.proven)

    def _may_have(self, source: Source, name: str) -> bool:
        known = self._columns.get(source.table) if source.table is not None else None
        return known is None or name.lower() in known

    def _has(self, source: Source, name: str) -> bool:
        known = self._columns.get(source.table) if source.table is not None else None
        return known is not None and name.lower() in known

    # --- search ------------------------------------------------------------------------------

    def _through_qualifier(self, ref: Ref) -> None:
        """A column that passes through a star of the source it is qualified with."""
        source = ref.source
        if ref.output is None and source is not None and source.relation is not None:
            ref.source = self._pick(ref.name, source.bases())

    def _is_column_after_all(self, ref: Ref) -> bool:
        """An alias of the SELECT list gives way to a column known to exist."""
        if ref.clause not in ("group", "having", "select") or ref.source is not None:
            return False
        if any(self._has(s, ref.name) for source in ref.scope.sources for s in source.bases()):
            ref.output = None
            return True
        return False

    def _search(self, ref: Ref) -> None:
        if ref.only is not None:
            bases = [base for source in ref.only for base in source.bases()]
            ref.source = self._pick(ref.name, bases)
            return
        scope: Scope | None = ref.scope
        while scope is not None:
            found = self._found(ref.name, scope)
            if found is not None:
                ref.source, ref.output = found.source, found.output
                return
            scope = scope.parent
        ref.source = None
        output = ref.scope.relation.names.get(ref.name)
        if output is not None and output.ident is not None and ref not in output.refs:
            ref.output = output  # DuckDB and others take an alias anywhere

    def _found(self, name: str, scope: Scope) -> Found | None:
        key = (id(scope), name)
        if key not in self._memo:
            self._memo[key] = self._look_in(name, scope)
        return self._memo[key]

    def _look_in(self, name: str, scope: Scope) -> Found | None:
        """Look in one scope; None when the answer does not lie in it."""
        for source in scope.sources:
            output = source.find(name)
            if output is not None:
                return Found(source, output)
        bases = [base for source in scope.sources if source.is_open for base in source.bases()]
        using = scope.using.get(name)
        if using is not None and using in bases:
            return Found(using)
        possible = [base for base in bases if self._may_have(base, name)]
        owner = self._evidence.prefixes.get(convention.prefix_of(name))
        is_outside = owner is not None and all(base.table != owner for base in possible)
        if not possible or is_outside:
            return None
        return Found(self._pick(name, possible))

    def _pick(self, name: str, sources: list[Source]) -> Source | None:
        """The one source a name belongs to."""
        known = [source for source in sources if self._has(source, name)]
        if known:
            return known[0]
        possible = [source for source in sources if self._may_have(source, name)]
        owners = self._evidence.proven.get(name, set())
        owner = self._evidence.prefixes.get(convention.prefix_of(name))
        for is_owner in (lambda table: table in owners, lambda table: table == owner):
            found = [source for source in possible if source.table and is_owner(source.table)]
            if len({source.table for source in found}) == 1:
                return found[0]
        if len({source.table or id(source) for source in possible}) == 1:
            return possible[0]
        return None


def _only_source(ref: Ref) -> Source | None:
    """The only base table a reference can come from: one source, nothing around it."""
    if ref.only is not None:
        return ref.only[0] if len(ref.only) == 1 else None
    scope = ref.scope
    if scope.parent is None and len(scope.sources) == 1:
        return scope.sources[0]
    return None
