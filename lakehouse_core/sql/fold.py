"""Constant expressions of a template as small programs that read a text's literals.

A program is made once from the tree, whose literals are tags, and run on the literals of every text
of the template: DATE '1998-12-01' - INTERVAL '90' DAY costs no parse the second time.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from lakehouse_core.sql import literal
from lakehouse_core.sql.literal import UNKNOWN, Constant
from lakehouse_core.sql.slots import Slots, is_text, unquoted
from lakehouse_core.sql.tree import number_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token

Program = Callable[[Slots], Constant]

_MAX_DEPTH = 20
_MAX_PART = 10_000  # of a date: no year, month or day is larger
_ISO_FORMATS = frozenset(
    {"%y-%m-%d", "yyyy-mm-dd", "%y-%m-%d %h:%i:%s", "%y-%m-%d %h:%m:%s", "yyyy-mm-dd hh24:mi:ss"}
)
_DATES = (exp.Date, exp.TsOrDsToDate, exp.FromISO8601Date, exp.DateStrToDate)
_TIMESTAMPS = (exp.FromISO8601Timestamp, exp.TimeStrToTime, exp.Timestamp)
_FORMATTED = (exp.StrToTime, exp.StrToDate, exp.TsOrDsToTimestamp)
_LATER = (exp.DateAdd, exp.TsOrDsAdd, exp.TimestampAdd, exp.DatetimeAdd)
_EARLIER = (exp.DateSub, exp.TimestampSub, exp.DatetimeSub)
_NOW, _NOW_LOCAL = (exp.CurrentTimestamp,), (exp.Localtimestamp, exp.CurrentDatetime)
_MAKE_DATE = ("make_date", "date_from_parts", "datefromparts")
_PLAIN_TOKENS = frozenset(
    {
        TokenType.NUMBER,
        TokenType.STRING,
        TokenType.RAW_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.HEREDOC_STRING,
    }
)


def unknown(_: Slots) -> Constant:
    """The program of what cannot be told."""
    return UNKNOWN


def item_value(raw: str) -> Constant:
    """The value of one item of a list, from its raw text."""
    word = raw.lower()
    if word in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[word]
    return unquoted(raw) if is_text(raw) else literal.to_number(raw.replace(" ", ""))


class Folder:
    """Makes the programs of one statement.

    Attributes:
        literals: the literals of the statement, as its tags number them.
        numbers: number of a literal → its number among the slots; -1 when it is not there.
    """

    def __init__(self, literals: Sequence[Token], numbers: Sequence[int]) -> None:
        self._literals = literals
        self._numbers = numbers

    def number_of(self, node: exp.Expr) -> int:
        """The number of the literal whose tag a node holds; -1 when it holds none."""
        text: Any = node.args.get("this")
        return number_of(text, len(self._literals)) if isinstance(text, str) else -1

    def program(self, node: Any, depth: int = 0) -> Program:
        """The program of an expression; `unknown` when it is no constant."""
        while isinstance(node, exp.Paren):
            node = node.this
        if depth > _MAX_DEPTH or not isinstance(node, exp.Expr):
            return unknown
        if isinstance(node, exp.Literal):
            return self._literal(node)
        if isinstance(node, exp.Null):
            return lambda _: None
        if isinstance(node, exp.Boolean):
            truth = bool(node.this)
            return lambda _: truth
        for kinds, make in _MAKERS:
            if isinstance(node, kinds):
                return make(self, node, depth + 1)
        return unknown

    def _literal(self, node: exp.Literal) -> Program:
        number = self.number_of(node)
        if number < 0:
            return self._own(node)
        token, slot = self._literals[number], self._numbers[number]
        if slot < 0:
            return unknown
        if token.token_type not in _PLAIN_TOKENS:
            return unknown
        is_negative, is_fraction = str(node.this).startswith("-"), self._is_fraction(node)
        sign = ("-" if is_negative else "") + ("0." if is_fraction else "")

        def run(slots: Slots) -> Constant:
            # The key does not tell numbers from strings, so each text is asked anew.
            raw = slots.texts[slot]
            return unquoted(raw) if is_text(raw) else literal.to_number(sign + raw)

        return run

    def _own(self, node: exp.Literal) -> Program:
        """A literal the parser made, or one that is part of the template."""
        text, is_string = str(node.this), bool(node.is_string)
        value: Constant = text if is_string else literal.to_number(text)
        return lambda _: value

    def _is_fraction(self, node: exp.Literal) -> bool:
        """Whether the point before a number is a token of its own, as in `.5`."""
        return str(node.this).removeprefix("-").count(".") > 1

    def _negative(self, node: exp.Expr, depth: int) -> Program:
        inner = self.program(node.this, depth)
        return lambda slots: literal.negated(inner(slots))

    def _sum(self, node: exp.Expr, depth: int) -> Program:
        left, right = self.program(node.this, depth), self.program(node.expression, depth)
        if isinstance(node, exp.Sub):
            return lambda slots: literal.add(left(slots), literal.negated(right(slots)))
        return lambda slots: literal.add(left(slots), right(slots))

    def _product(self, node: exp.Expr, depth: int) -> Program:
        left, right = self.program(node.this, depth), self.program(node.expression, depth)
        return lambda slots: literal.product(left(slots), right(slots))

    def _interval(self, node: exp.Expr, depth: int) -> Program:
        unit = node.args.get("unit")
        if unit is None:
            slot = self._slot_of_kept(node.this)
            if slot >= 0:
                return lambda slots: literal.to_span(unquoted(slots.texts[slot]))
            return unknown
        amount, word = self.program(node.this, depth), self.unit(unit)
        return lambda slots: literal.to_span(amount(slots), word(slots))

    def _slot_of_kept(self, node: Any) -> int:
        """The slot of an interval's text; the tree has the text itself, its unit has meaning."""
        number = node.meta.get("literal", -1) if isinstance(node, exp.Literal) else -1
        return self._numbers[number] if number >= 0 else -1

    def unit(self, node: Any) -> Callable[[Slots], str]:
        """The program of a unit of time."""
        if not isinstance(node, (exp.Var, exp.Literal)):
            return lambda _: "?"
        number, name = self.number_of(node), str(node.this)
        slot = self._numbers[number] if number >= 0 else -1
        if number >= 0:
            return lambda slots: unquoted(slots.texts[slot]) if slot >= 0 else "?"
        return lambda _: name

    def _cast(self, node: exp.Expr, depth: int) -> Program:
        return _converted(self.program(node.this, depth), _converter(node.args.get("to")))

    def _of_one_argument(self, node: exp.Expr, depth: int) -> Program:
        given = [v for n, v in node.args.items() if n != "this" and v and not isinstance(v, bool)]
        if given:
            return unknown
        convert = literal.to_date if isinstance(node, _DATES) else literal.to_timestamp
        return _converted(self.program(node.this, depth), convert)

    def _formatted(self, node: exp.Expr, depth: int) -> Program:
        text, form = self.program(node.this, depth), node.args.get("format")
        pattern = self.program(form, depth) if form is not None else None
        convert = literal.to_date if isinstance(node, exp.StrToDate) else literal.to_timestamp

        def run(slots: Slots) -> Constant:
            written = pattern(slots) if pattern else "yyyy-mm-dd"
            is_iso = isinstance(written, str) and written.lower() in _ISO_FORMATS
            return convert(text(slots)) if is_iso else UNKNOWN

        return run

    def _moved(self, node: exp.Expr, depth: int) -> Program:
        start, amount = (
            self.program(node.this, depth),
            self.program(node.args.get("expression"), depth),
        )
        word = self.unit(node.args.get("unit")) if node.args.get("unit") is not None else _days
        is_earlier = isinstance(node, _EARLIER)

        def run(slots: Slots) -> Constant:
            moved = amount(slots)
            span = moved if isinstance(moved, literal.Span) else literal.to_span(moved, word(slots))
            return literal.add(_time(start(slots)), literal.negated(span) if is_earlier else span)

        return run

    def _months_later(self, node: exp.Expr, depth: int) -> Program:
        start, amount = self.program(node.this, depth), self.program(node.expression, depth)
        return lambda slots: literal.add(
            _time(start(slots)), literal.to_span(amount(slots), "month")
        )

    def _now(self, node: exp.Expr, _depth: int) -> Program:
        if isinstance(node, exp.CurrentDate):
            return lambda slots: UNKNOWN if slots.at is None else slots.at.date()
        is_local = isinstance(node, _NOW_LOCAL)

        def run(slots: Slots) -> Constant:
            if slots.at is None:
                return UNKNOWN
            return slots.at.replace(tzinfo=None) if is_local else slots.at

        return run

    def _called(self, node: exp.Expr, depth: int) -> Program:
        is_now = node.name.lower() == "now" and not node.expressions
        return self._now(node, depth) if is_now else self._date_of_parts(node, depth)

    def _date_of_parts(self, node: exp.Expr, depth: int) -> Program:
        if isinstance(node, exp.Anonymous):
            parts = node.expressions if node.name.lower() in _MAKE_DATE else []
        else:
            parts = [node.args.get(name) for name in ("year", "month", "day")]
        programs = [self.program(part, depth) for part in parts]

        def run(slots: Slots) -> Constant:
            values = [program(slots) for program in programs]
            numbers = [int(v) for v in values if isinstance(v, Decimal) and abs(v) < _MAX_PART]
            return literal.make_date(*numbers) if len(numbers) == 3 else UNKNOWN

        return run


def _days(_: Slots) -> str:
    return "day"


def _time(value: Constant) -> Constant:
    """A text where a time is wanted."""
    if not isinstance(value, str):
        return value
    day = literal.to_date(value) if len(value.strip()) <= len("0000-00-00") else UNKNOWN
    return literal.to_timestamp(value) if day is UNKNOWN else day


def _converted(inner: Program, convert: Callable[[Constant], Constant]) -> Program:
    if inner is unknown:
        return unknown
    return lambda slots: convert(inner(slots))


def _converter(kind: Any) -> Callable[[Constant], Constant]:
    name = kind.this if isinstance(kind, exp.DataType) else None
    for kinds, convert in _CONVERTERS:
        if name in kinds:
            return convert
    return lambda _: UNKNOWN


_CONVERTERS: tuple[tuple[frozenset[Any], Callable[[Constant], Constant]], ...] = (
    (frozenset({exp.DType.DATE, exp.DType.DATE32}), literal.to_date),
    (
        frozenset(exp.DataType.TEMPORAL_TYPES) - {exp.DType.TIME, exp.DType.TIMETZ},
        literal.to_timestamp,
    ),
    (frozenset(exp.DataType.INTEGER_TYPES), literal.to_whole),
    (frozenset(exp.DataType.NUMERIC_TYPES), literal.to_number),
    (frozenset(exp.DataType.TEXT_TYPES), literal.to_text),
    (frozenset({exp.DType.BOOLEAN}), literal.to_boolean),
)
_MAKERS: tuple[tuple[Any, Callable[[Folder, exp.Expr, int], Program]], ...] = (
    ((exp.Cast, exp.TryCast), Folder._cast),
    ((exp.Neg,), Folder._negative),
    ((exp.Add, exp.Sub), Folder._sum),
    ((exp.Mul,), Folder._product),
    ((exp.Interval,), Folder._interval),
    ((*_DATES, *_TIMESTAMPS), Folder._of_one_argument),
    (_FORMATTED, Folder._formatted),
    ((*_LATER, *_EARLIER), Folder._moved),
    ((exp.AddMonths,), Folder._months_later),
    ((exp.CurrentDate, *_NOW, *_NOW_LOCAL), Folder._now),
    ((exp.DateFromParts,), Folder._date_of_parts),
    ((exp.Anonymous,), Folder._called),
)
