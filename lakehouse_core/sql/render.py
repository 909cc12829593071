"""Tokens to template text: one spelling for everything that does not matter.

Keywords and functions are upper case, names folded, literals `?`, aliases canonical; equal items
of an IN list and equal rows of VALUES appear once; the usual order of NULLs is not written; the
layout is always the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from lakehouse_core.sql.lex import Code, close_of

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.lex import Lexed

PLACEHOLDER = "?"
_NAME = re.compile(r"[^\W\d]\w*")

# Where a sign belongs to the number after it, and where NULL or TRUE is a value like any other.
_VALUE_FOLLOWS = frozenset(
    {
        TokenType.L_PAREN,
        TokenType.L_BRACKET,
        TokenType.COMMA,
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.THEN,
        TokenType.ELSE,
        TokenType.SELECT,
        TokenType.BETWEEN,
    }
)
_SIGN_FOLLOWS = _VALUE_FOLLOWS | {
    TokenType.AND,
    TokenType.OR,
    TokenType.WHEN,
    TokenType.STAR,
    TokenType.SLASH,
    TokenType.PLUS,
    TokenType.DASH,
    TokenType.LIMIT,
    TokenType.LIKE,
}
_FIXED = {
    Code.L_PAREN: "(",
    Code.R_PAREN: ")",
    Code.COMMA: ",",
    Code.EQ: "=",
    Code.NEQ: "<>",
}
_SILENT = frozenset({Code.SIGN, Code.DOT})
_NULL_PLACES = ("FIRST", "LAST")
_OPENING = frozenset({Code.L_PAREN, Code.L_BRACKET})
_NO_SPACE_BEFORE = frozenset(
    {Code.COMMA, Code.R_PAREN, Code.R_BRACKET, Code.DOT, Code.COLON, Code.SEMICOLON}
)
_NO_SPACE_AFTER = frozenset({Code.L_PAREN, Code.L_BRACKET, Code.DOT, Code.COLON})


@dataclass(slots=True)
class Spelling:
    """How single tokens are written, by their position in the text.

    Attributes:
        names: identifiers.
        aliases: identifiers that define an alias and want an AS before them.
        literals: literals that keep a text.
        is_parsed: whether a tree told names from other words.
        in_hints: folded alias → its canonical name, for hints, which have no tree.
    """

    names: dict[int, str] = field(default_factory=dict)
    aliases: set[int] = field(default_factory=set)
    literals: dict[int, str] = field(default_factory=dict)
    is_parsed: bool = False
    in_hints: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Pieces:
    """What the template is made of: texts, and the code of each."""

    texts: list[str] = field(default_factory=list)
    codes: bytearray = field(default_factory=bytearray)


def render(lexed: Lexed, spelling: Spelling, dialect: SqlDialect) -> str:
    """The template of a statement."""
    pieces = _pieces(lexed, spelling, dialect)
    if spelling.is_parsed and "NULLS" in pieces.texts:
        _drop_usual_null_order(pieces, dialect)
    if lexed.has_items:
        _shorten_lists(pieces)
    return _laid_out(pieces)


def quoted(text: str) -> str:
    """A string literal that keeps its text."""
    return "'" + text.replace("'", "''") + "'"


def _pieces(lexed: Lexed, spelling: Spelling, dialect: SqlDialect) -> _Pieces:
    texts: list[str] = []
    codes = bytearray()
    names, aliases = spelling.names, spelling.aliases
    for index, token in enumerate(lexed.tokens):
        start, code = token.start, lexed.codes[index]
        text = names.get(start)
        if text is not None:
            if start in aliases and texts and texts[-1] != "AS":
                texts.append("AS")
                codes.append(Code.OTHER)
            code = Code.NAME
        elif code == Code.LITERAL:
            text = spelling.literals.get(start, PLACEHOLDER)
        elif code in _FIXED:
            text = _FIXED[code]
        elif code in _SILENT and _is_part_of_literal(lexed, index, spelling):
            continue
        elif code == Code.CONSTANT and _is_value(lexed, index):
            text, code = PLACEHOLDER, Code.LITERAL
        elif code == Code.HINT:
            text = _hint(token.text, spelling, dialect)
        else:
            text, code = _word(token, code, dialect, is_parsed=spelling.is_parsed)
        texts.append(text)
        codes.append(code)
    return _Pieces(texts, codes)


def _word(token: Token, code: int, dialect: SqlDialect, *, is_parsed: bool) -> tuple[str, int]:
    """A token that is neither a literal nor a name the tree knows."""
    text = token.text
    if code == Code.OTHER:
        return text.upper(), Code.NAME if dialect.type_tokens[token.token_type] else code
    if code == Code.VAR:
        return text.upper() if is_parsed else dialect.spell(text, False), Code.NAME
    if code == Code.IDENTIFIER:
        return dialect.spell(text, True), Code.NAME
    return text.upper(), code


def _hint(text: str, spelling: Spelling, dialect: SqlDialect) -> str:
    """A hint on one line; it names tables by their aliases."""

    def name(match: re.Match[str]) -> str:
        return spelling.in_hints.get(dialect.fold(match[0], False), match[0])

    return _NAME.sub(name, " ".join(text.split()))


def _is_part_of_literal(lexed: Lexed, index: int, spelling: Spelling) -> bool:
    """Whether a minus, plus or point belongs to the number after it."""
    tokens = lexed.tokens
    if index == 0 or index + 1 >= len(tokens) or lexed.codes[index + 1] != Code.LITERAL:
        return False
    following = tokens[index + 1]
    return (
        following.token_type == TokenType.NUMBER
        and following.start not in spelling.literals
        and tokens[index - 1].token_type in _SIGN_FOLLOWS
    )


def _is_value(lexed: Lexed, index: int) -> bool:
    return index > 0 and lexed.tokens[index - 1].token_type in _VALUE_FOLLOWS


def _drop_usual_null_order(pieces: _Pieces, dialect: SqlDialect) -> None:
    """Leave out where NULLs stand when a text need not say it.

    NULLS LAST is what Trino, DuckDB and Athena do unasked, and what a translation of their texts
    adds for the others; NULLS FIRST is left out where the dialect itself does it unasked.
    """
    texts = pieces.texts
    for index in range(len(texts) - 2, 0, -1):
        if texts[index] != "NULLS" or texts[index + 1] not in _NULL_PLACES:
            continue
        is_descending = texts[index - 1] == "DESC"
        if texts[index + 1] == "LAST" or dialect.puts_nulls_first(is_descending=is_descending):
            del texts[index : index + 2]
            del pieces.codes[index : index + 2]


def _shorten_lists(pieces: _Pieces) -> None:
    """Drop repeated items, the innermost list first."""
    for index in range(len(pieces.codes) - 2, -1, -1):
        code = pieces.codes[index]
        if code == Code.IN and pieces.codes[index + 1] == Code.L_PAREN:
            first = pieces.codes[index + 2 : index + 3]
            if first and first[0] not in (Code.QUERY, Code.VALUES):
                _keep_distinct(pieces, index + 2, close_of(pieces.codes, index + 1))
        elif code == Code.VALUES:
            _keep_distinct(pieces, index + 1, _items_end(pieces.codes, index + 1))


def _items_end(codes: bytearray, start: int) -> int:
    """Where the rows after VALUES end: after the last bracket that a comma leads to."""
    end = start
    while end < len(codes) and codes[end] == Code.L_PAREN:
        end = min(close_of(codes, end) + 1, len(codes))
        if codes[end : end + 2] != bytes((Code.COMMA, Code.L_PAREN)):
            break
        end += 1
    return end


def _keep_distinct(pieces: _Pieces, start: int, end: int) -> None:
    """Keep each item of a list once, in the order they first appear."""
    items: dict[tuple[str, ...], bytes] = {}
    depth, first, count = 0, start, 0
    for index in range(start, end + 1):
        code = pieces.codes[index] if index < end else Code.COMMA
        if code in (Code.L_PAREN, Code.L_BRACKET):
            depth += 1
        elif code in (Code.R_PAREN, Code.R_BRACKET):
            depth -= 1
        elif code == Code.COMMA and (depth == 0 or index == end):
            items.setdefault(tuple(pieces.texts[first:index]), bytes(pieces.codes[first:index]))
            first, count = index + 1, count + 1
    if len(items) == count:
        return
    texts: list[str] = []
    codes = bytearray()
    for item, item_codes in items.items():
        if texts:
            texts.append(",")
            codes.append(Code.COMMA)
        texts += item
        codes += item_codes
    pieces.texts[start:end] = texts
    pieces.codes[start:end] = codes


def _laid_out(pieces: _Pieces) -> str:
    out: list[str] = []
    before = Code.L_PAREN
    for text, code in zip(pieces.texts, pieces.codes, strict=True):
        is_glued = before in _NO_SPACE_AFTER or code in _NO_SPACE_BEFORE
        if is_glued or (before == Code.NAME and code in _OPENING):
            out.append(text)
        else:
            out.append(" " + text)
        before = code
    return "".join(out)
