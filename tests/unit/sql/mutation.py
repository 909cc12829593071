"""Texts that mean the same: other literals, layout, comments, case of words.

Written on characters with sqlglot's tokens as the only guide, so that it shares nothing with the
code under test but the place where tokens begin and end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

if TYPE_CHECKING:
    import random

    from sqlglot.tokenizer_core import Token

STRINGS = (
    "",
    "a",
    "b c",
    "2020-01-01",
    "%x%",
    "5",
    "day",
    "--x",
    "/*",
    "$1",
    "NULL",
    "select",
    "#",
)
NUMBERS = ("0", "1", "7", "99", "12345", "3.25", "0.001")
GAPS = (" ", "  ", "\n", "\t ", " /* c 'x */ ", " -- q ' \n", " /* 1 */ ", "\r\n")
_KEPT_CASE = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.HINT)


def mutate(sql: str, dialect: str, choice: random.Random, *, literals: bool = True) -> str:
    """Another text with the same meaning, but for the values of its literals."""
    tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    out: list[str] = []
    position = 0
    for index, token in enumerate(tokens):
        if token.start < position:  # Spark's 10L is three tokens at one place
            continue
        gap, text = sql[position : token.start], sql[token.start : token.end + 1]
        position = token.end + 1
        before = tokens[index - 1] if index else None
        out.append(_gap(gap, choice))
        out.append(_token(text, token, choice, literals=literals and _is_free(before)))
    return "".join(out) + sql[position:]


def _gap(gap: str, choice: random.Random) -> str:
    is_layout = bool(gap) and not gap.strip()
    return choice.choice(GAPS) if is_layout and choice.random() < 0.4 else gap


def _token(text: str, token: Token, choice: random.Random, *, literals: bool) -> str:
    if token.token_type == TokenType.NUMBER and text.isdecimal() and literals:
        return choice.choice(NUMBERS) if choice.random() < 0.5 else text
    if token.token_type == TokenType.STRING and text.startswith("'") and literals:
        return f"'{choice.choice(STRINGS)}'" if choice.random() < 0.5 else text
    if token.token_type not in _KEPT_CASE and choice.random() < 0.3:
        return choice.choice((text.upper(), text.lower(), text.title()))
    return text


def _is_free(before: Token | None) -> bool:
    """Whether a literal here is a mere value: no position, no part of a name or an interval."""
    return before is not None and before.text.upper() not in (
        "GROUP BY",
        "ORDER BY",
        ",",
        "(",
        "{",
        ".",
        "INTERVAL",
        "TIMESTAMP",
        "AS OF",
    )
