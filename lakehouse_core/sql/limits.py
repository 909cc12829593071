"""What sqlglot must not be asked to parse: it would take for ever or overflow the C stack.

Its compiled parser recurses without Python's recursion check, so deep nesting ends the process
instead of raising RecursionError; and it tries a type name before a bracket both as a type and as
a function, so each level of `ARRAY[ARRAY[…` doubles the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.sql.lex import Code, positions

if TYPE_CHECKING:
    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.lex import Lexed

MAX_CHARACTERS = 2 * 1024 * 1024
MAX_TOKENS = 100_000
MAX_DEPTH = 100
MAX_TYPE_DEPTH = 6
MAX_JOINS = 1_000
MAX_SUBSCRIPTS = 20  # a[1][2]…: each one makes the parser look at all before it

_ANGLE = bytes((Code.NESTED_TYPE, Code.LT))
_SUBSCRIPT = bytes((Code.R_BRACKET, Code.L_BRACKET))
_NESTING = (Code.L_PAREN, Code.L_BRACKET, Code.CASE, Code.UNARY, Code.SIGN, Code.NESTED_TYPE)


def refusal(lexed: Lexed, dialect: SqlDialect) -> str | None:
    """Why these tokens must not be parsed, or None."""
    codes = lexed.codes
    counts = [
        ("tokens", len(codes), MAX_TOKENS),
        ("joins", codes.count(Code.JOIN), MAX_JOINS),
        ("subscripts in a row", codes.count(_SUBSCRIPT), MAX_SUBSCRIPTS),
    ]
    if len(codes) <= MAX_TOKENS and not _is_harmless(lexed, dialect):
        depth, type_depth = _depths(lexed, dialect)
        counts.append(("levels of nesting", depth, MAX_DEPTH))
        counts.append(("levels of nested types or constructors", type_depth, MAX_TYPE_DEPTH))
    for what, count, limit in counts:
        if count > limit:
            return f"too much to analyse: {count} {what}, limit {limit}"
    return None


def _is_harmless(lexed: Lexed, dialect: SqlDialect) -> bool:
    """Whether there is too little that can nest; spares most statements the exact count."""
    codes, tokens, types = lexed.codes, lexed.tokens, dialect.type_tokens
    if sum(codes.count(code) for code in _NESTING) > MAX_DEPTH:
        return False
    opened = [*positions(codes, Code.L_PAREN), *positions(codes, Code.L_BRACKET)]
    typed = sum(types[tokens[index - 1].token_type] for index in opened if index)
    return typed + codes.count(Code.NESTED_TYPE) <= MAX_TYPE_DEPTH


def _depths(lexed: Lexed, dialect: SqlDialect) -> tuple[int, int]:
    """The deepest nesting of brackets, CASE and unary operators; and of types alone."""
    types, tokens, codes = dialect.type_tokens, lexed.tokens, lexed.codes
    stack = bytearray()  # of each open bracket whether a type stands before it
    deepest = deepest_type = typed = cases = run = 0
    for index, code in enumerate(codes):
        run = run + 1 if code in (Code.UNARY, Code.SIGN) else 0
        if code in (Code.L_PAREN, Code.L_BRACKET):
            stack.append(types[tokens[index - 1].token_type] if index else 0)
            typed += stack[-1]
        elif code in (Code.R_PAREN, Code.R_BRACKET):
            typed -= stack.pop() if stack else 0
        elif code in (Code.CASE, Code.END):
            cases = cases + 1 if code == Code.CASE else max(0, cases - 1)
        elif code == Code.LT and index and codes[index - 1] == Code.NESTED_TYPE:
            deepest_type = max(deepest_type, typed + _angles(codes, index))
        deepest = max(deepest, len(stack) + cases + run)
        deepest_type = max(deepest_type, typed)
    return deepest, deepest_type


def _angles(codes: bytes, start: int) -> int:
    """How many `ARRAY<` or `STRUCT<` open from here on before the first one closes."""
    end = codes.find(Code.GT, start)
    return codes.count(_ANGLE, start - 1, end if end >= 0 else len(codes))
