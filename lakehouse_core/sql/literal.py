"""Values of literals: what is known of several of them together."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.sql.records import LiteralKind, LiteralValue


def kind_of(values: Iterable[LiteralValue]) -> LiteralKind | Literal["mixed"]:
    """The kind of the values but nulls; unknown when one of them is."""
    kinds = {value.kind for value in values}
    if "unknown" in kinds or not kinds:
        return "unknown"
    if len(kinds) > 1:
        kinds.discard("null")
    return kinds.pop() if len(kinds) == 1 else "mixed"


def extremes(values: Iterable[LiteralValue]) -> tuple[str | None, str | None]:
    """Smallest and largest of the values but nulls; None when they have no common order."""
    known = [value for value in values if value.kind != "null"]
    kind = kind_of(known)
    texts = [value.text for value in known if value.text is not None]
    if kind in ("unknown", "mixed") or len(texts) < len(known):
        return None, None
    if kind == "number":
        return min(texts, key=Decimal), max(texts, key=Decimal)
    return min(texts), max(texts)
