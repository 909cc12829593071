"""Statements about tables instead of rows: SHOW and DESCRIBE, of which few forms are known.

sqlglot has no tree for most of them, so their words are matched one by one; a form that is not
listed is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot.tokenizer_core import Token

# NAME: a dotted name of a table; SCOPE: one of a catalog or schema; TEXT: a string. A form may end
# at each `?`.
_FORMS = tuple(
    form.split()
    for form in (
        "SHOW CATALOGS ? LIKE TEXT",
        "SHOW SCHEMAS ? FROM SCOPE ? LIKE TEXT",
        "SHOW SCHEMAS ? LIKE TEXT",
        "SHOW DATABASES ? LIKE TEXT",
        "SHOW NAMESPACES ? FROM SCOPE ? LIKE TEXT",
        "SHOW TABLES ? FROM SCOPE ? LIKE TEXT",
        "SHOW TABLES ? LIKE TEXT",
        "SHOW VIEWS ? FROM SCOPE ? LIKE TEXT",
        "SHOW COLUMNS FROM NAME ? LIKE TEXT",
        "SHOW CREATE TABLE NAME",
        "SHOW CREATE VIEW NAME",
        "SHOW FUNCTIONS ? LIKE TEXT",
        "DESCRIBE NAME",
        "DESCRIBE TABLE NAME",
        "DESCRIBE EXTENDED NAME",
        "DESCRIBE FORMATTED NAME",
        "DESCRIBE TABLE EXTENDED NAME",
    )
)
_SAME = {"IN": "FROM", "DESC": "DESCRIBE"}
_WORDS = frozenset({"SHOW", "DESCRIBE", "DESC"})


def is_metadata(tokens: Sequence[Token]) -> bool:
    """Whether a statement asks about objects."""
    return bool(tokens) and tokens[0].text.upper() in _WORDS


def table_of(tokens: Sequence[Token]) -> tuple[bool, tuple[Token, ...]]:
    """Whether the form is known, and the parts of the table it names."""
    pieces = list(_pieces(tokens))
    for form in _FORMS:
        found = _match(pieces, form)
        if found is not None:
            return True, found
    return False, ()


def _pieces(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """Dotted names as one piece, every other token as its own."""
    index = 0
    while index < len(tokens):
        parts = [tokens[index]]
        while index + 2 < len(tokens) and tokens[index + 1].token_type == TokenType.DOT:
            index += 2
            parts.append(tokens[index])
        yield tuple(parts)
        index += 1


def _match(pieces: Sequence[tuple[Token, ...]], form: Sequence[str]) -> tuple[Token, ...] | None:
    """The table's parts when the pieces have this form, an empty tuple when it names none."""
    table: tuple[Token, ...] = ()
    index = 0
    for wanted in form:
        if wanted == "?":
            if index == len(pieces):
                return table
            continue
        if index == len(pieces) or not _fits(pieces[index], wanted):
            return None
        if wanted == "NAME":
            table = pieces[index]
        index += 1
    return table if index == len(pieces) else None


def _fits(piece: tuple[Token, ...], wanted: str) -> bool:
    first = piece[0]
    if wanted == "TEXT":
        return len(piece) == 1 and first.token_type == TokenType.STRING
    if wanted in ("NAME", "SCOPE"):
        return all(token.token_type != TokenType.STRING and _is_name(token) for token in piece)
    word = first.text.upper()
    return len(piece) == 1 and _SAME.get(word, word) == wanted


def _is_name(token: Token) -> bool:
    is_quoted = token.token_type == TokenType.IDENTIFIER
    return is_quoted or token.text.replace("_", "a").isalnum()
