"""Tables and columns a statement uses, and what it does with each column.

A column keeps its role through renaming: a filter on an output of a derived table is a filter on
the columns the output is made of. It does not pass an aggregate or window function: what goes in
is `project`, and a condition on what comes out says nothing about the rows read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.table import join_name
from lakehouse_core.sql.records import ColumnUse
from lakehouse_core.sql.resolve import Resolver

if TYPE_CHECKING:
    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.records import Role
    from lakehouse_core.sql.schema import Schema
    from lakehouse_core.sql.scope import Bound, Comparison, Output, Ref

FILTERS = ("filter_eq", "filter_range", "filter_in")
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a session adds to table names, and the columns somebody knows."""

    catalog: str | None = None
    namespace: tuple[str, ...] = ()
    schema: Schema | None = None

    def table(self, parts: tuple[str, ...]) -> str:
        """The name of a table: as written, completed as far as the session says."""
        return join_name(self.parts(parts))

    def parts(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The parts of a table's name, completed likewise."""
        if len(parts) > 2 or (len(parts) == 1 and not self.namespace):
            return parts
        named = (*self.namespace, *parts) if len(parts) == 1 else parts
        return (self.catalog, *named) if self.catalog else named


class Usage:
    """What a bound statement uses; every reference is resolved once this is made."""

    def __init__(self, bound: Bound, dialect: SqlDialect, defaults: Defaults) -> None:
        self._bound = bound
        self._defaults = defaults
        self._resolver = Resolver(bound, dialect, self._columns_of)
        self._made_of: dict[int, set[Pair]] = {}
        self._resolver.resolve()
        for comparison in bound.comparisons:
            self._mark_join(comparison)

    def tables(self) -> tuple[str, ...]:
        """Base tables, sorted."""
        return tuple(sorted({self._defaults.table(parts) for parts in self._bound.tables}))

    def _columns_of(self, table: tuple[str, ...]) -> tuple[str, ...] | None:
        schema = self._defaults.schema
        return None if schema is None else schema.columns(self._defaults.parts(table))

    def columns(self) -> tuple[ColumnUse, ...]:
        """Columns with their roles, sorted."""
        uses = {
            ColumnUse(table, column, ref.role)
            for ref in self._bound.refs
            if ref.role is not None
            for table, column in self.bases(ref)
        }
        uses |= {
            ColumnUse(table, column, role)
            for output, role in self._bound.item_uses
            for table, column in self._output_bases(output)
        }
        return tuple(sorted(uses | self._stars()))

    def _stars(self) -> set[ColumnUse]:
        uses = set()
        for source in self._bound.stars:
            if source.table is not None:
                columns = self._columns_of(source.table) or ("*",)
                table = self._defaults.table(source.table)
                uses |= {ColumnUse(table, column, "project") for column in columns}
        return uses

    def _mark_join(self, comparison: Comparison) -> None:
        """A comparison of columns from different sources joins them."""
        left = {self._instance(ref) for ref in comparison.left}
        right = {self._instance(ref) for ref in comparison.right}
        if left == right and len(left) == 1:
            return
        role: Role = "join"
        for ref in (*comparison.left, *comparison.right):
            if ref.role in FILTERS:
                ref.role = role

    def _instance(self, ref: Ref) -> int:
        """Tells sources apart; a reference that is still open is like no other."""
        return id(ref.source) if ref.source is not None else id(ref)

    def bases(self, ref: Ref) -> set[Pair]:
        """Table and column of every base column a reference stands for."""
        if ref.output is not None:
            return self._output_bases(ref.output)
        if ref.source is None:
            return {("", ref.name)}
        if ref.source.table is None:
            return set()  # a column of a function or pivot
        return {(self._defaults.table(ref.source.table), ref.name)}

    def _output_bases(self, output: Output) -> set[Pair]:
        """The base columns an output is made of, through any number of queries."""
        known = self._made_of.get(id(output))
        if known is not None:
            return known
        found: set[Pair] = set()
        seen = {id(output)}
        stack = [output]
        while stack:
            current = stack.pop()
            inner = list(current.parts)
            for ref in current.refs:
                if ref.output is not None:
                    inner.append(ref.output)
                else:
                    found |= self.bases(ref)
            for other in inner:
                known = self._made_of.get(id(other))
                if known is not None:
                    found |= known
                elif id(other) not in seen:
                    stack.append(other)
                seen.add(id(other))
        self._made_of[id(output)] = found
        return found
