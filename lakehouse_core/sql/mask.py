"""The hot path's key: a text with its literals masked and its comments gone, in one scan.

This is a lexer, not understanding: it only says "these two texts differ in nothing but literals
and comments". It masks what it is sure of and gives up (None) on everything else, and an entry
is stored under a key only after sqlglot's own tokens were seen to agree with the scan
(`Mask.ends`). Whatever is not masked stays in the key as written, so a doubt costs a parse, never
a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.sql.limits import MAX_CHARACTERS

if TYPE_CHECKING:
    from lakehouse_core.sql.dialect import SqlDialect

MASK = "\x00"

_QUOTES = frozenset("'\"`")

# Outside literals: `@` opens parameters, `{` Jinja (or a struct, which is no doubt), `$` dollar
# strings where there are any. Each changes what the characters after it mean.
_JINJA = re.compile(r"\{[{%#]")

# Each alternative starts after its first character (the set in `_scanner` has taken it) and ends
# with an empty group, whose number tells which one matched.
# sqlglot takes `1e3+1` for one number, so an exponent before a sign stays as it is.
_NUMBER = (
    r"(?:(?<=[\s(,=<>+\-*/%\[|][0-9])|(?<=[\s(,=<>+\-*/%\[|]\.[0-9]))"
    r"[0-9]*+(?:\.[0-9]++)?+"
    r"(?:[eE][+-]?[0-9]++(?![+\-]))?+"
)
_SUFFIX = r"(?=(?i:{letters})?+(?![\w.]))"  # 10L: the letter stays, it is a type
_DASHES = r"(?<=-)-[^\n\r]*+()"
_SLASHES = r"(?<=/)/[^\n\r]*+()"
_HINT = r"(?<=/)\*\+(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/()"
_BLOCK = r"(?<=/)\*(?!\+)(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/()"
# An open comment, or one within another, which nests in some dialects only.
_OPEN_BLOCK = r"(?<=/)\*()"

# `IN (?, ?, ?)` and rows of `VALUES (?, ?), (?, ?)` count as one.
LISTS = re.compile(
    r"\x00(?i:(?<=[\s)]in \(\x00)|(?<=[\s)]in\(\x00))"
    r"(?:\s*+,\s*+(?:[+-]?+\x00|(?i:null|true|false)))++(?=\s*+\))"
    r"|\x00(?i:(?<=[\s)]values \(\x00)|(?<=[\s)]values\(\x00))"
    r"((?:\s*+,\s*+\x00)*+\s*+)\)(?:\s*+,\s*+\(\x00\1\))++"
)


class _DoubtError(Exception):
    """Raised when the scan meets something it does not decide on."""


def _literal(_: re.Match[str]) -> str:
    return MASK


def _comment(_: re.Match[str]) -> str:
    return " "


def _verbatim(match: re.Match[str]) -> str:
    return match[0]


def _doubt(_: re.Match[str]) -> str:
    raise _DoubtError


_Action = Callable[[re.Match[str]], str]


@dataclass(frozen=True, slots=True)
class Mask:
    """A masked text.

    Attributes:
        full_key: literals masked; the masks line up with `literals`.
        literals: the masked literals, in order.
        ends: where each of them ends in the text (position of the last character).
    """

    full_key: str
    literals: tuple[str, ...]
    ends: tuple[int, ...]


class Masker:
    """Masks texts of one dialect."""

    def __init__(self, dialect: SqlDialect) -> None:
        tokenizer = dialect.base.tokenizer_class
        self._is_able = _is_plain(dialect)
        self._pattern, self._actions = _scanner(dialect)
        self._literal = {at for at, action in enumerate(self._actions) if action is _literal}
        escapes = {*tokenizer.STRING_ESCAPES, *tokenizer.BYTE_STRING_ESCAPES}
        self._escape = "\\" if "\\" in escapes else MASK
        self._has_dollars = any(
            "$" in word for word in (*tokenizer._FORMAT_STRINGS, *tokenizer.KEYWORDS)
        )

    def full_key(self, text: str) -> str | None:
        """The masked text; None when it has something the scan does not decide on."""
        if not self._is_able or len(text) > MAX_CHARACTERS or MASK in text or self._escape in text:
            return None
        actions = self._actions
        try:
            full = self._pattern.sub(lambda m: actions[m.lastindex or 0](m), text)
        except _DoubtError:
            return None
        if "@" in full or ("$" in full and self._has_dollars):
            return None
        return None if "{" in full and _JINJA.search(full) else full

    def mask(self, text: str, full_key: str) -> Mask:
        """The literals of a text that has a key."""
        literal, literals, ends = self._literal, [], []
        for match in self._pattern.finditer(text):
            if match.lastindex in literal:
                literals.append(match[0])
                ends.append(match.end() - 1)
        return Mask(full_key, tuple(literals), tuple(ends))

    def comments(self, text: str) -> list[tuple[int, int]]:
        """Where the comments of a text that has a key begin and end (exclusive)."""
        actions, found = self._actions, self._pattern.finditer(text)
        return [m.span() for m in found if actions[m.lastindex or 0] is _comment]

    def evened_out(self, text: str) -> str:
        """A text that has no tokens, with as much evened out as can be seen without them."""
        actions = self._actions

        def replace(match: re.Match[str]) -> str:
            action = actions[match.lastindex or 0]
            return "?" if action is _literal else match[0] if action is _doubt else action(match)

        return " ".join(self._pattern.sub(replace, text).lower().split())


def shorten_lists(full_key: str) -> str:
    """A masked text in which a list of literals counts as one literal."""
    return LISTS.sub(_shortened, full_key)


def _shortened(match: re.Match[str]) -> str:
    row = match[1]
    return MASK if row is None else f"{MASK}{row})"


def _is_plain(dialect: SqlDialect) -> bool:
    """Whether the dialect's lexical rules are among those the scan knows."""
    tokenizer = dialect.base.tokenizer_class
    quotes, names = tokenizer._QUOTES, tokenizer._IDENTIFIERS
    return (
        all(start == end and start in _QUOTES for start, end in {**quotes, **names}.items())
        and not set(quotes) & set(names)
        and set(tokenizer._COMMENTS) <= {"--", "/*", "/*+", "//", "{#"}
        and not tokenizer._IDENTIFIER_ESCAPES
        and not tokenizer.DASH_COMMENT_REQUIRES_BOUNDARY
        and set(tokenizer.STRING_ESCAPES) <= {"'", "\\"}
    )


def _scanner(dialect: SqlDialect) -> tuple[re.Pattern[str], tuple[_Action, ...]]:
    tokenizer = dialect.base.tokenizer_class
    quotes = [quote for quote in tokenizer._QUOTES if quote in _QUOTES]
    names = [quote for quote in tokenizer._IDENTIFIERS if quote in _QUOTES and quote not in quotes]
    letters = "|".join(sorted(tokenizer.NUMERIC_LITERALS, key=len, reverse=True))
    after = _SUFFIX.format(letters=letters) if letters else r"(?![\w.])"
    parts: list[tuple[str, _Action]] = [
        (_NUMBER + after + "()", _literal),
        (_DASHES, _comment),
        (_HINT, _verbatim),
        (_BLOCK, _comment),
        (_OPEN_BLOCK, _doubt),
    ]
    if "//" in tokenizer._COMMENTS:
        parts.append((_SLASHES, _comment))
    escapes = tokenizer.STRING_ESCAPES
    parts += [(_quoted(quote, doubles=quote in escapes), _literal) for quote in quotes]
    parts += [(_quoted(quote, doubles=True), _verbatim) for quote in names]
    starts = "".join(quotes + names)
    parts.append((rf"(?<=[{starts}])()", _doubt))  # a quote that is never closed
    # The first character is one set, so that the search leaps from candidate to candidate.
    pattern = rf"[0-9{starts}/\-](?:{'|'.join(part for part, _ in parts)})"
    return re.compile(pattern), (_doubt, *(action for _, action in parts))


def _quoted(quote: str, *, doubles: bool) -> str:
    inner = rf"[^{quote}]*+"
    more = rf"(?:{quote}{quote}{inner})*+" if doubles else ""
    return rf"(?<={quote}){inner}{more}{quote}()"
