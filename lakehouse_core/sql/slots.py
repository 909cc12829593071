"""The literals of a text as its predicates find them: numbered, with lists taken together.

The hot path's key counts a list of literals as one literal (`mask.shorten_lists`), so literals are
numbered there as in the shortened key, and a list has all its items under one number. Texts are
raw: `'it''s'`, `24`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from lakehouse_core.sql.mask import LISTS, MASK
from lakehouse_core.sql.render import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from sqlglot.tokenizer_core import Token

_QUOTES = frozenset("'\"")


@dataclass(slots=True)
class Slots:
    """The literals of one text.

    Attributes:
        texts: raw literals by number; of a list its first.
        lists: number of a list's first literal → its raw items: literals with their sign, words.
        at: when the text runs, in UTC; None: not known, nor what CURRENT_DATE and the like are.
    """

    texts: Sequence[str]
    lists: dict[int, list[str]] = field(default_factory=dict)
    at: datetime | None = None


def unquoted(raw: str) -> str:
    """The text a raw literal stands for."""
    quote = raw[:1]
    if quote not in _QUOTES:
        return raw
    inner = raw[1:-1]
    return inner.replace(quote + quote, quote) if quote in inner else inner


def is_text(raw: str) -> bool:
    """Whether a raw literal is a string."""
    return raw[:1] in _QUOTES


def raw_of(token: Token) -> str:
    """The raw form of a literal token."""
    return token.text if token.token_type == TokenType.NUMBER else quoted(token.text)


def shortened(full_key: str, literals: Sequence[str]) -> Slots:
    """The literals as the shortened key numbers them."""
    slots = Slots([])
    texts: list[str] = []
    done = 0
    for first, count, kept, items in _lists(full_key):
        texts += literals[done:first]
        if items:
            slots.lists[len(texts)] = _items(items, literals[first : first + count])
        texts += literals[first : first + kept]
        done = first + count
    texts += literals[done:]
    slots.texts = texts
    return slots


@dataclass(frozen=True, slots=True)
class Numbering:
    """Where the literals of an analysed text stand among the slots of its key.

    Attributes:
        slots: number of a literal in the text → its slot; -1 for an item of a list but its first.
        lists: slots whose list may have any length.
    """

    slots: Sequence[int]
    lists: frozenset[int] = frozenset()


def as_written(count: int) -> Numbering:
    """Every literal has a slot of its own."""
    return Numbering(range(count))


def as_shortened(full_key: str, count: int) -> Numbering:
    """The numbering of the shortened key."""
    slots: list[int] = []
    lists: set[int] = set()
    following = 0
    for first, masks, kept, items in _lists(full_key):
        before = first - len(slots)
        slots += range(following, following + before)
        following += before
        if items:
            lists.add(following)
        slots += [*range(following, following + kept), *[-1] * (masks - kept)]
        following += kept
    slots += range(following, following + count - len(slots))
    return Numbering(slots, frozenset(lists))


def _lists(full_key: str) -> Iterator[tuple[int, int, int, str]]:
    """Of each list: first literal, how many, how many stay, and its items (none for VALUES)."""
    number = position = 0
    for match in LISTS.finditer(full_key):
        number += full_key.count(MASK, position, match.start())
        position = match.end()
        text, row = match[0], match[1]
        count = text.count(MASK)
        yield number, count, 1 if row is None else 1 + row.count(MASK), text if row is None else ""
        number += count


def _items(text: str, literals: Sequence[str]) -> list[str]:
    following = iter(literals)
    return [
        item.replace(MASK, next(following)) if MASK in item else item
        for item in (piece.strip() for piece in text.split(","))
    ]
