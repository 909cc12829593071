"""Which kind of number an expression is, as far as the text and known column types tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["integer", "float", "decimal", "text", "date", "timestamp", "other"]

_WORDS: tuple[tuple[tuple[str, ...], Kind], ...] = (
    (("decimal", "numeric", "number"), "decimal"),
    (("double", "float", "real"), "float"),
    (("int", "long", "short"), "integer"),
    (("varchar", "string", "text", "char"), "text"),
    (("timestamp",), "timestamp"),
    (("date",), "date"),
)
_SAME = (
    exp.Paren,
    exp.Neg,
    exp.Abs,
    exp.Sum,
    exp.Min,
    exp.Max,
    exp.Filter,
    exp.Window,
    exp.Distinct,
)
_FIXED: tuple[tuple[tuple[type[exp.Expr], ...], Kind], ...] = (
    ((exp.Count, exp.CountIf, exp.RowNumber, exp.Rank, exp.Length), "integer"),
    ((exp.Year, exp.Month, exp.Day, exp.Quarter), "integer"),
    ((exp.Upper, exp.Lower, exp.Substring, exp.Trim, exp.Concat, exp.DPipe), "text"),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod)


class Kinds:
    """Tells kinds by column name; a name that two tables give different kinds has none."""

    def __init__(self, types: Mapping[str, Mapping[str, str]]) -> None:
        self._columns: dict[str, Kind | None] = {}
        for columns in types.values():
            for name, text in columns.items():
                kind = kind_named(text)
                known = self._columns.setdefault(name.lower(), kind)
                if known != kind:
                    self._columns[name.lower()] = None

    def of(self, node: exp.Expr | None) -> Kind | None:
        """The kind of an expression; None: nobody knows."""
        if isinstance(node, exp.Literal):
            is_whole = node.this.isdecimal()
            return "text" if node.is_string else "integer" if is_whole else "decimal"
        if isinstance(node, exp.Column):
            return self._columns.get(node.name.lower())
        if isinstance(node, (exp.Cast, exp.TryCast)):
            return kind_named(node.args["to"].sql())
        fixed = next((kind for types, kind in _FIXED if isinstance(node, types)), None)
        return fixed or self._of_parts(node)

    def _of_parts(self, node: exp.Expr | None) -> Kind | None:
        if isinstance(node, _SAME):
            inner = node.expressions[0] if isinstance(node, exp.Distinct) else node.this
            return self.of(inner)
        if isinstance(node, _ARITHMETIC):
            return _combined({self.of(node.this), self.of(node.expression)})
        if isinstance(node, exp.Case):
            branches = [one.args.get("true") for one in node.args.get("ifs") or ()]
            kinds = {
                self.of(one) for one in [*branches, node.args.get("default")] if one is not None
            }
            return _combined(kinds)
        if isinstance(node, exp.Coalesce):
            return _combined({self.of(one) for one in (node.this, *node.expressions)})
        return None


def kind_named(text: str) -> Kind:
    """The kind of a type's name."""
    lowered = text.lower()
    for words, kind in _WORDS:
        if any(word in lowered for word in words):
            return kind
    return "other"


def _combined(kinds: set[Kind | None]) -> Kind | None:
    if "float" in kinds and None not in kinds:
        return "float"
    if len(kinds) == 1:
        return kinds.pop()
    return "decimal" if kinds == {"integer", "decimal"} else None
