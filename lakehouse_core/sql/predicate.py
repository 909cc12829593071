"""Conditions on columns: their shape is read from the tree once, their values from every text.

A `Shape` belongs to the hot path's key: it knows which literal of the key is compared with which
column, so that the values of a known text come from its masked literals without a parse.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lakehouse_core.sql.fold import Folder, Program, item_value, unknown
from lakehouse_core.sql.lex import Code, codes_of
from lakehouse_core.sql.literal import Constant, canonical, is_whole
from lakehouse_core.sql.records import LiteralValue, Predicate
from lakehouse_core.sql.redaction import is_secret_column
from lakehouse_core.sql.usage import FILTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlglot.tokenizer_core import Token

    from lakehouse_core.sql.lex import Lexed
    from lakehouse_core.sql.records import Operator, Role
    from lakehouse_core.sql.scope import Bound, Condition, Output, Ref, Scope
    from lakehouse_core.sql.slots import Numbering, Slots
    from lakehouse_core.sql.usage import Usage

MAX_VALUES = 32  # kept of a list

_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_NEGATED = (exp.NEQ, exp.NullSafeNEQ)
_FLIPPED: dict[str, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INVERSE: dict[str, Operator] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_UNKNOWN = LiteralValue("unknown")
_NAMES: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Date, exp.TsOrDsToDate), "CAST AS DATE"),
    ((exp.DateTrunc, exp.TimestampTrunc, exp.DatetimeTrunc), "DATE_TRUNC"),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A predicate without its values.

    Attributes:
        programs: one per value.
        list_slot: where a list stands whose length differs from text to text; -1: nowhere.
        is_secret: the values must not be kept.
        others: see `Predicate`.
    """

    table: str
    column: str
    role: Role
    operator: Operator
    programs: tuple[Program, ...]
    list_slot: int
    function: str | None
    is_negated: bool
    is_conjunct: bool
    or_group: int | None
    is_secret: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What a predicate says about one of its columns; see `Shape`."""

    operator: Operator
    programs: tuple[Program, ...]
    is_negated: bool
    list_slot: int = -1


def evaluate(shapes: Sequence[Shape], slots: Slots) -> tuple[Predicate, ...]:
    """The predicates of a text."""
    return tuple(_evaluate(shape, slots) for shape in shapes)


def _evaluate(shape: Shape, slots: Slots) -> Predicate:
    items = slots.lists.get(shape.list_slot) if shape.list_slot >= 0 else None
    count = len(items) if items is not None else len(shape.programs)
    if shape.is_secret:
        values: tuple[LiteralValue, ...] = (_UNKNOWN,)
        is_complete = False
    else:
        constants: Iterable[Constant]
        if items is not None:
            constants = map(item_value, dict.fromkeys(items))
        else:
            constants = [program(slots) for program in shape.programs]
        values, is_complete = _bounded(constants, is_list=shape.operator == "in")
    return Predicate(
        shape.table,
        shape.column,
        shape.role,
        shape.operator,
        values,
        shape.function,
        shape.is_negated,
        shape.is_conjunct,
        shape.or_group,
        count,
        is_complete,
    )


def _bounded(
    constants: Iterable[Constant], *, is_list: bool
) -> tuple[tuple[LiteralValue, ...], bool]:
    """Values to keep, and whether they are all. A list is a set: ordered, each value once."""
    given = list(constants)
    is_complete = all(is_whole(value) for value in given)
    values = [canonical(value) for value in given]
    if not is_list:
        return tuple(values), is_complete
    distinct = sorted(set(values), key=_order)
    if len(distinct) <= MAX_VALUES:
        return tuple(distinct), is_complete
    kept = sorted(distinct[1:-1], key=_lot)[: MAX_VALUES - 2]
    return (distinct[0], *sorted(kept, key=_order), distinct[-1]), False


def _order(value: LiteralValue) -> tuple[str, Decimal, str]:
    """Numbers by size, everything else by its text, which orders dates and times, too."""
    is_number = value.kind == "number" and value.text is not None
    return value.kind, Decimal(value.text or 0) if is_number else Decimal(), value.text or ""


def _lot(value: LiteralValue) -> int:
    """Chooses among values by chance, but always the same way."""
    return zlib.crc32((value.text or "").encode("utf-8", "replace"))


def shapes_of(bound: Bound, usage: Usage, lexed: Lexed, numbering: Numbering) -> tuple[Shape, ...]:
    """The shapes of a statement's predicates, in the order of the text.

    Args:
        bound: the bound statement.
        usage: its resolved references.
        lexed: its tokens.
        numbering: where its literals will be found.
    """
    return Shapes(bound, usage, lexed, numbering).shapes()


class Shapes:
    """Reads the shapes of one bound statement."""

    def __init__(self, bound: Bound, usage: Usage, lexed: Lexed, numbering: Numbering) -> None:
        self._bound = bound
        self._usage = usage
        self._lexed = lexed
        self._numbering = numbering
        self._folder = Folder(lexed.literals, numbering.slots)
        self.scope_of = {id(s): scope for scope in bound.scopes for s in scope.sources}

    def shapes(self) -> tuple[Shape, ...]:
        """The shapes in the order of the text."""
        found: list[Shape] = []
        for condition in self._bound.conditions:
            for ref in condition.refs:
                is_own = ref.scope is condition.scope and not ref.is_inner
                if is_own and ref.role in FILTERS and ref.node is not None:
                    found += self._of(condition, ref, ref.role)
        return tuple(found)

    def _of(self, condition: Condition, ref: Ref, role: Role) -> list[Shape]:
        node = condition.node.this if isinstance(condition.node, exp.Escape) else condition.node
        path = column_path(ref, node)
        if path is None:
            return []
        reading = self.reading(node, path, is_negated=condition.is_negated)
        is_plain, is_pushed = self._through(ref)
        function = wrapping(path, ref) if is_plain else "EXPRESSION"
        is_conjunct = (
            condition.or_group < 0 and is_pushed and self._prunes(condition, ref, reading, function)
        )
        return [
            Shape(
                table,
                column,
                role,
                reading.operator,
                reading.programs,
                reading.list_slot,
                function,
                reading.is_negated,
                is_conjunct,
                condition.or_group if condition.or_group >= 0 else None,
                is_secret_column(column),
            )
            for table, column in sorted(self._usage.bases(ref))
        ]

    # --- whether it spares reading -----------------------------------------------------------

    def _through(self, ref: Ref) -> tuple[bool, bool]:
        """Whether a column reaches the predicate unchanged, and the predicate the column."""
        is_plain = is_pushed = True
        stack: list[Output] = [ref.output] if ref.output is not None else []
        seen: set[int] = set()
        while stack:
            output = stack.pop()
            if id(output) in seen:
                continue
            seen.add(id(output))
            is_plain = is_plain and (output.is_plain or not output.refs)
            for inner in output.refs:
                is_pushed = is_pushed and not inner.scope.is_barrier
                if inner.output is not None:
                    stack.append(inner.output)
            stack += output.parts
        return is_plain, is_pushed

    def _prunes(
        self, condition: Condition, ref: Ref, reading: Reading, function: str | None
    ) -> bool:
        source = ref.source
        if source is None:
            return ref.output is not None and condition.prunes is None
        owner = self.scope_of.get(id(source))
        if owner is not None and owner is not ref.scope:
            if _is_around(owner, ref.scope) or owner.is_barrier:
                return False
        elif condition.prunes is not None and all(s is not source for s in condition.prunes):
            return False
        is_for_nulls = reading.operator in ("is_null", "<=>") and not reading.is_negated
        return not (source.is_nullable and (is_for_nulls or function is not None))

    # --- operator and values -----------------------------------------------------------------

    def reading(self, node: exp.Expr, path: list[exp.Expr], *, is_negated: bool) -> Reading:
        """Operator and values of a predicate, seen from the column at the end of a path."""
        if not path:  # the column is the whole predicate
            truth = not is_negated
            return Reading("=", (lambda _: truth,), is_negated=False)
        if node.args.get("negate"):
            is_negated = not is_negated
        place = path[-1].arg_key
        if node.__class__ in _OPERATORS:
            return self._comparison(node, place, is_negated=is_negated)
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            return self._between(node, place, is_negated=is_negated)
        if isinstance(node, exp.In) and place == "this":
            return self._in(node, is_negated=is_negated)
        return self._special(node, place, is_negated=is_negated)

    def _special(self, node: exp.Expr, place: str | None, *, is_negated: bool) -> Reading:
        operator: Operator = "other"
        if isinstance(node, exp.Is):
            operator = "is_null" if isinstance(node.expression, exp.Null) else "<=>"
        elif isinstance(node, exp.Like):
            operator = "like"
        is_read = isinstance(node, exp.Binary) and place == "this"
        is_read = is_read and not isinstance(node.parent, exp.Escape)
        program = self._folder.program(node.expression) if is_read else unknown
        return Reading(operator if place == "this" else "other", (program,), is_negated)

    def _comparison(self, node: exp.Expr, place: str | None, *, is_negated: bool) -> Reading:
        operator = _OPERATORS[node.__class__]
        if isinstance(node, _NEGATED):
            is_negated = not is_negated
        value = node.expression
        if place != "this":
            operator, value = _FLIPPED.get(operator, operator), node.this
        if is_negated and operator in _INVERSE:
            operator, is_negated = _INVERSE[operator], False
        return Reading(operator, (self._folder.program(value),), is_negated)

    def _between(self, node: exp.Expr, place: str | None, *, is_negated: bool) -> Reading:
        program = self._folder.program
        if place == "this":
            limits = (program(node.args.get("low")), program(node.args.get("high")))
            return Reading("between", limits, is_negated)
        if is_negated:
            return Reading("other", (unknown,), is_negated)
        return Reading("<=" if place == "low" else ">=", (program(node.this),), is_negated)

    def _in(self, node: exp.Expr, *, is_negated: bool) -> Reading:
        items = node.expressions
        if not items or isinstance(node.this, exp.Tuple):
            return Reading("in", (unknown,), is_negated)
        programs = tuple(self._folder.program(item) for item in items)
        number = self._number(items[0]) if len(items) == 1 else -1
        if number < 0:
            return Reading("in", programs, is_negated)
        slot = self._numbering.slots[number]
        tokens = self._lexed.lists.get(self._lexed.literals[number].start)
        if tokens is not None and slot not in self._numbering.lists:
            programs = tuple(self._items(tokens))
        return Reading("in", programs, is_negated, slot)

    def _items(self, tokens: Sequence[Token]) -> Iterator[Program]:
        """The items of a list that every text of the key has in the same form."""
        numbers = {token.start: number for number, token in enumerate(self._lexed.literals)}
        sign = ""
        for token, code in zip(tokens, codes_of(list(tokens)), strict=True):
            if code == Code.SIGN:
                sign = token.text
                continue
            if code == Code.LITERAL:
                yield _item(sign, self._numbering.slots[numbers[token.start]])
            elif code == Code.CONSTANT:
                yield _fixed(token.text)
            sign = ""

    def _number(self, node: exp.Expr) -> int:
        """The number of the literal in an item of a list."""
        inner = node.this if isinstance(node, exp.Neg) else node
        return self._folder.number_of(inner) if isinstance(inner, exp.Literal) else -1


def _fixed(raw: str) -> Program:
    value = item_value(raw)
    return lambda _: value


def _item(sign: str, slot: int) -> Program:
    return lambda slots: item_value(sign + slots.texts[slot])


def column_path(ref: Ref, predicate: exp.Expr) -> list[exp.Expr] | None:
    """The nodes from a column up to the predicate, without brackets; None when it is elsewhere."""
    node: Any = ref.node.parent if ref.node is not None else None
    path: list[exp.Expr] = []
    while node is not None and node is not predicate:
        path.append(node)
        node = node.parent
    return path if node is predicate else None


def wrapping(path: list[exp.Expr], ref: Ref) -> str | None:
    """What a column is wrapped in on its way to the predicate."""
    if not path:
        return None
    column, *around = path
    wrappers = [node for node in around if not isinstance(node, exp.Paren)]
    is_field = isinstance(column, exp.Column) and column.this is not ref.node
    if not wrappers and not is_field:
        return None
    if len(wrappers) != 1 or is_field:
        return "EXPRESSION"
    return _name_of(wrappers[0])


def _name_of(wrapper: exp.Expr) -> str:
    if isinstance(wrapper, (exp.Cast, exp.TryCast)):
        return f"CAST AS {wrapper.args['to'].this.value}"
    if isinstance(wrapper, (exp.Extract, exp.Anonymous)):
        inner = wrapper.this if isinstance(wrapper, exp.Extract) else wrapper
        return inner.name.upper()
    for kinds, name in _NAMES:
        if isinstance(wrapper, kinds):
            return name
    return str(wrapper.sql_name()) if isinstance(wrapper, exp.Func) else "EXPRESSION"


def _is_around(outer: Scope, inner: Scope) -> bool:
    scope: Scope | None = inner.parent
    while scope is not None and scope is not outer:
        scope = scope.parent
    return scope is outer
