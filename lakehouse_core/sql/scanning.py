"""Which base tables a statement reads, and under which condition each reading.

Finer than `Predicate`: AND, OR and NOT keep their structure, and a table read twice keeps two
conditions. Like predicates, the shape is read from the tree once per key of the hot path and the
values of every further text come from its masked literals.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from lakehouse_core.sql.condition import (
    ALWAYS,
    ColumnTest,
    Condition,
    Either,
    Every,
    TableScan,
)
from lakehouse_core.sql.fold import item_value
from lakehouse_core.sql.predicate import Reading, Shapes, column_path, wrapping
from lakehouse_core.sql.truncation import truncating, untruncated
from lakehouse_core.sql.usage import FILTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse_core.sql.fold import Program
    from lakehouse_core.sql.lex import Lexed
    from lakehouse_core.sql.records import Operator
    from lakehouse_core.sql.scope import Bound, Output, Ref, Scope, Source
    from lakehouse_core.sql.scope import Condition as BoundCondition
    from lakehouse_core.sql.slots import Numbering, Slots
    from lakehouse_core.sql.usage import Defaults, Usage


@dataclass(frozen=True, slots=True)
class ComparisonShape:
    """A `ColumnTest` without its values.

    Attributes:
        unit: what the column is cut off to before it is compared; None: it is compared as it is.
        others: see `ColumnTest` and `predicate.Shape`.
    """

    column: str
    operator: Operator
    programs: tuple[Program, ...]
    list_slot: int
    is_negated: bool
    unit: Callable[[Slots], str] | None = None


@dataclass(frozen=True, slots=True)
class JoinedShape:
    """Several shapes joined by AND, or by OR."""

    parts: tuple[ConditionShape, ...]
    is_or: bool = False


ConditionShape = ComparisonShape | JoinedShape
_NOTHING = JoinedShape(())


@dataclass(frozen=True, slots=True)
class ScanShape:
    """One reading of a table."""

    table: str
    condition: ConditionShape


def evaluate_scans(
    shapes: tuple[ScanShape, ...], slots: Slots, *, truncations: bool = False
) -> tuple[TableScan, ...]:
    """The readings of a text; with `truncations`, `date(at) = …` is a range of `at`."""
    return tuple(
        TableScan(one.table, _evaluate(one.condition, slots, is_deep=truncations)) for one in shapes
    )


def _evaluate(shape: ConditionShape, slots: Slots, *, is_deep: bool) -> Condition:
    if isinstance(shape, JoinedShape):
        parts = tuple(_evaluate(part, slots, is_deep=is_deep) for part in shape.parts)
        if not shape.is_or:
            return Every(parts) if parts else ALWAYS
        return Either(parts)
    if shape.unit is not None and not is_deep:
        return ALWAYS
    items = slots.lists.get(shape.list_slot) if shape.list_slot >= 0 else None
    if items is not None:
        values = tuple(item_value(item) for item in dict.fromkeys(items))
    else:
        values = tuple(program(slots) for program in shape.programs)
    if shape.unit is not None:
        unit = shape.unit(slots)
        return untruncated(shape.column, unit, shape.operator, values, is_negated=shape.is_negated)
    return ColumnTest(shape.column, shape.operator, values, shape.is_negated)


def scan_shapes(
    bound: Bound, usage: Usage, lexed: Lexed, numbering: Numbering, defaults: Defaults
) -> tuple[ScanShape, ...]:
    """The readings of a statement's base tables, in the order of its scopes."""
    return _Scans(bound, usage, lexed, numbering).scans(defaults)


class _Scans(Shapes):
    """Sorts the conditions of a statement by the reading they narrow."""

    def __init__(self, bound: Bound, usage: Usage, lexed: Lexed, numbering: Numbering) -> None:
        super().__init__(bound, usage, lexed, numbering)
        self._by_node: dict[int, BoundCondition] = {id(c.node): c for c in bound.conditions}
        # How often a column or a table is handed out: a CTE that is read twice is narrowed by
        # neither reader's condition.
        self._handed_out: Counter[int] = Counter()
        for scope in bound.scopes:
            for source in scope.sources:
                if source.relation is not None:
                    self._handed_out.update(map(id, source.relation.opens))
                    self._handed_out.update(map(id, source.relation.outputs))

    def scans(self, defaults: Defaults) -> tuple[ScanShape, ...]:
        tops = self._tops()
        found: list[ScanShape] = []
        for scope in self._bound.scopes:
            for source in scope.sources:
                if source.table is not None:
                    parts = [self._narrowed(top, source, is_negated=False) for top in tops]
                    found.append(ScanShape(defaults.table(source.table), _all_of(parts)))
        return tuple(found)

    def _tops(self) -> list[exp.Expr]:
        """The conditions as they stand in the text, each a tree of AND, OR and NOT."""
        tops: dict[int, exp.Expr] = {}
        for condition in self._bound.conditions:
            node: exp.Expr = condition.node
            while isinstance(node.parent, exp.And | exp.Or | exp.Not | exp.Paren | exp.Xor):
                node = node.parent
            tops.setdefault(id(node), node)
        return list(tops.values())

    def _narrowed(self, node: exp.Expr, source: Source, *, is_negated: bool) -> ConditionShape:
        """What a condition demands of the rows of a source; NOT is moved to the leaves."""
        while isinstance(node, exp.Paren | exp.Not):
            is_negated ^= isinstance(node, exp.Not)
            node = node.this
        if isinstance(node, exp.And | exp.Or):
            sides = [
                self._narrowed(side, source, is_negated=is_negated)
                for side in (node.this, node.expression)
            ]
            if isinstance(node, exp.Or) ^ is_negated:
                return JoinedShape(tuple(sides), is_or=True) if _NOTHING not in sides else _NOTHING
            return _all_of(sides)
        condition = self._by_node.get(id(node))
        return self._leaf(condition, source) if condition is not None else _NOTHING

    def _leaf(self, condition: BoundCondition, source: Source) -> ConditionShape:
        refs = [ref for ref in condition.refs if ref.scope is condition.scope and not ref.is_inner]
        if len(refs) != 1 or refs[0].role not in FILTERS or isinstance(condition.node, exp.Escape):
            return _NOTHING
        ref = refs[0]
        path = column_path(ref, condition.node)
        is_bare = path is not None and wrapping(path, ref) is None
        unit = None if path is None or is_bare else self._unit(path, ref)
        if path is None or (not is_bare and unit is None):
            return _NOTHING
        reading = self.reading(condition.node, path, is_negated=condition.is_negated)
        columns = [name for base, name in self._reached(condition, ref, reading) if base is source]
        if len(columns) != 1 or reading.operator == "other":
            return _NOTHING
        return ComparisonShape(
            columns[0],
            reading.operator,
            reading.programs,
            reading.list_slot,
            reading.is_negated,
            unit,
        )

    def _unit(self, path: list[exp.Expr], ref: Ref) -> Callable[[Slots], str] | None:
        """What a column is cut off to; None where it is wrapped in anything else."""
        column, *around = path
        wrappers = [node for node in around if not isinstance(node, exp.Paren)]
        is_field = isinstance(column, exp.Column) and column.this is not ref.node
        cut = None if is_field or len(wrappers) != 1 else truncating(wrappers[0])
        if isinstance(cut, str):
            return lambda _: cut
        return None if cut is None else self._folder.unit(cut)

    # --- which readings a condition reaches --------------------------------------------------

    def _reached(
        self, condition: BoundCondition, ref: Ref, reading: Reading
    ) -> list[tuple[Source, str]]:
        """Base sources whose rows are read in vain unless they fulfil the condition."""
        source = ref.source
        if source is None or (source.is_nullable and _holds_for_null(reading)):
            return []
        owner = self.scope_of.get(id(source))
        if owner is not condition.scope:
            return self._in_other_scope(condition, ref, reading)
        if condition.prunes is not None and all(one is not source for one in condition.prunes):
            return []
        if ref.output is None:
            return [] if _is_handed_on(source, owner) else [(source, ref.name)]
        return [] if _holds_for_null(reading) else self._behind(ref.output) or []

    def _in_other_scope(
        self, condition: BoundCondition, ref: Ref, reading: Reading
    ) -> list[tuple[Source, str]]:
        """The base source of a column that came through a star of a derived table or CTE."""
        source = ref.source
        owner = self.scope_of.get(id(source))
        if source is None or owner is None or condition.prunes is not None:
            return []
        is_open = not owner.is_barrier and not _is_around(owner, ref.scope)
        is_alone = ref.output is None and self._handed_out[id(source)] == 1
        is_narrowed = is_open and is_alone and not _holds_for_null(reading)
        return [(source, ref.name)] if is_narrowed else []

    def _behind(self, output: Output) -> list[tuple[Source, str]] | None:
        """The base columns an output passes on unchanged; None where one is changed or shared."""
        found: list[tuple[Source, str]] = []
        stack, seen = [output], set[int]()
        while stack:
            one = stack.pop()
            if id(one) in seen or self._handed_out[id(one)] > 1:
                return None
            seen.add(id(one))
            stack += one.parts
            if one.parts:
                continue
            if not one.is_plain or len(one.refs) != 1 or one.refs[0].scope.is_barrier:
                return None
            ref = one.refs[0]
            if ref.output is not None:
                stack.append(ref.output)
            elif ref.source is not None and ref.source.table is not None:
                if self.scope_of.get(id(ref.source)) is not ref.scope:
                    return None
                found.append((ref.source, ref.name))
            else:
                return None
        return found


def _all_of(parts: list[ConditionShape]) -> ConditionShape:
    """Parts joined by AND; one AND inside another is one."""
    flat: list[ConditionShape] = []
    for part in parts:
        is_and = isinstance(part, JoinedShape) and not part.is_or
        flat += part.parts if isinstance(part, JoinedShape) and is_and else [part]
    return JoinedShape(tuple(flat)) if flat else _NOTHING


def _holds_for_null(reading: Reading) -> bool:
    """Whether a row that an outer join filled up with nulls may fulfil it."""
    return reading.operator in ("is_null", "<=>", "other")


def _is_handed_on(source: Source, scope: Scope) -> bool:
    """Whether something else in the scope works on its rows first, such as MATCH_RECOGNIZE."""
    return any(
        base is source
        for other in scope.sources
        if other.relation is not None
        for base in other.relation.opens
    )


def _is_around(outer: Scope, inner: Scope) -> bool:
    scope: Scope | None = inner.parent
    while scope is not None and scope is not outer:
        scope = scope.parent
    return scope is outer


def tests_of(condition: Condition) -> Iterator[ColumnTest]:
    """Every test in a condition."""
    stack: list[Condition] = [condition]
    while stack:
        one = stack.pop()
        if isinstance(one, ColumnTest):
            yield one
        else:
            stack += one.parts
