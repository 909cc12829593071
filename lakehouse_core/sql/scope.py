"""The parts of a bound statement: sources, outputs, scopes, and references to columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sqlglot import exp

    from lakehouse_core.sql.records import Role

Clause = Literal["select", "where", "join", "group", "having", "order", "other"]
AliasKind = Literal["table", "column", "cte", "window"]


class Ref:
    """One use of a column name. Not a dataclass: many are made, and most fields stay as they are.

    Attributes:
        name: folded column name.
        scope: the scope it stands in.
        clause: where it stands; decides whether an alias of the SELECT list may be meant.
        role: what is done with it; None when it is only named (the target of an assignment).
        node: its identifier, so that a template can rename it; None when it has no text.
        source: the source it comes from, once known.
        item: position of the SELECT item it stands in, or -1.
        is_inner: it is an argument of an aggregate or window function.
        is_qualified: its source is written before it.
        only: the sources it may come from, when the syntax says so (USING, assignments).
        output: the SELECT item it stands for, when it is not a column of a base table.
    """

    item: int = -1
    is_inner: bool = False
    is_qualified: bool = False
    only: list[Source] | None = None
    output: Output | None = None

    def __init__(
        self, name: str, scope: Scope, clause: Clause, role: Role | None, node: exp.Expr | None
    ) -> None:
        self.name = name
        self.scope = scope
        self.clause = clause
        self.role = role
        self.node = node
        self.source: Source | None = None


@dataclass(slots=True, eq=False)
class Output:
    """A column that a query gives to whoever reads it.

    Attributes:
        name: folded name, "" when it has none.
        ident: the identifier of its alias; None when it is named after its column.
        refs: columns it is made of, without those that only feed an aggregate.
        parts: outputs it renames or, for a set operation, those of every branch.
        item: its position in the SELECT list.
        is_plain: it is one column, unchanged.
    """

    name: str
    ident: exp.Expr | None = None
    refs: list[Ref] = field(default_factory=list)
    parts: list[Output] = field(default_factory=list)
    item: int = 0
    is_plain: bool = False


@dataclass(slots=True, eq=False)
class Relation:
    """What a query gives: named outputs, and whole base tables that pass through a star."""

    outputs: list[Output] = field(default_factory=list)
    names: dict[str, Output] = field(default_factory=dict)
    opens: list[Source] = field(default_factory=list)
    is_opaque: bool = False  # it may have columns nobody can name (a function, a pivot)
    ident: exp.Expr | None = None  # the name of the CTE it is

    def add(self, output: Output) -> None:
        """Append an output; of two with one name the first is found."""
        self.outputs.append(output)
        if output.name:
            self.names.setdefault(output.name, output)


@dataclass(slots=True, eq=False)
class Source:
    """Something a FROM clause names: a base table, a derived table, a CTE, a function.

    Attributes:
        name: the name columns are qualified with, "" when there is none.
        table: parts of the base table's name; None for everything else.
        relation: what it gives; None for a base table.
        ident: the identifier of its alias or, for a CTE without alias, of the CTE.
        is_nullable: an outer join fills it up with nulls.
    """

    name: str
    table: tuple[str, ...] | None = None
    relation: Relation | None = None
    ident: exp.Expr | None = None
    is_nullable: bool = False

    def find(self, name: str) -> Output | None:
        """The output of that name, if the statement's text says there is one."""
        return self.relation.names.get(name) if self.relation else None

    @property
    def is_open(self) -> bool:
        """Whether it may have columns that the text does not name."""
        relation = self.relation
        return relation is None or bool(relation.opens) or relation.is_opaque

    def bases(self) -> list[Source]:
        """The sources an unnamed column of it can come from."""
        if self.relation is None:
            return [self]
        return self.relation.opens or [self]


@dataclass(slots=True, eq=False)
class Scope:
    """One SELECT, or one DML statement, with the names visible in it."""

    parent: Scope | None
    ctes: dict[str, Relation]
    sources: list[Source] = field(default_factory=list)
    by_name: dict[str, Source] = field(default_factory=dict)
    relation: Relation = field(default_factory=Relation)
    using: dict[str, Source] = field(default_factory=dict)
    windows: dict[str, exp.Expr] = field(default_factory=dict)
    is_barrier: bool = False  # a condition from outside says nothing about the rows it reads

    def add(self, source: Source) -> None:
        """Make a source visible."""
        self.sources.append(source)
        if source.name:
            self.by_name.setdefault(source.name, source)

    def source_named(self, name: str) -> Source | None:
        """The source of that name, here or further out."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.by_name.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None


@dataclass(slots=True, eq=False)
class Comparison:
    """A predicate with two sides; a join when the sides come from different sources."""

    left: list[Ref]
    right: list[Ref]


class Condition:
    """One predicate of a condition. Not a dataclass, like `Ref`.

    Attributes:
        node: the predicate.
        scope: the scope it stands in.
        refs: references in it, those of its subqueries too.
        middle: how many of them stand on its left side; all when it has no sides.
        is_negated: an odd number of NOTs is around it.
        or_group: number of the OR around it; -1 outside.
        prunes: the sources whose rows need not be read unless they fulfil it; None: any.
    """

    __slots__ = ("is_negated", "middle", "node", "or_group", "prunes", "refs", "scope")

    def __init__(
        self, node: exp.Expr, scope: Scope, refs: list[Ref], middle: int, logic: Logic
    ) -> None:
        self.node = node
        self.scope = scope
        self.refs = refs
        self.middle = middle
        self.is_negated, self.or_group = logic
        self.prunes: list[Source] | None = None


Logic = tuple[bool, int]  # is negated, number of the OR around it or -1


@dataclass(slots=True, eq=False)
class Bound:
    """A statement whose names are bound as far as its own text goes."""

    tables: dict[tuple[str, ...], None] = field(default_factory=dict)
    refs: list[Ref] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    ors: int = 0
    is_travelling: bool = False  # a table is read as it was at another time
    scopes: list[Scope] = field(default_factory=list)
    stars: list[Source] = field(default_factory=list)  # base tables read with a star
    item_uses: list[tuple[Output, Role]] = field(default_factory=list)  # ORDER BY 1, GROUP BY ALL
    aliases: list[tuple[exp.Expr, AliasKind]] = field(default_factory=list)
    renames: list[tuple[exp.Expr, exp.Expr]] = field(default_factory=list)  # use → definition
