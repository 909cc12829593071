"""What sqlglot must not be asked to parse: it would take for ever or overflow the C stack.

Its compiled parser recurses without Python's recursion check, so deep nesting ends the process
instead of raising RecursionError; and it tries a type name before a bracket both as a type and as
a function, so each level of `ARRAY[ARRAY[…` doubles the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.sql.lex import Code

if TYPE_CHECKING:
    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.lex import Lexed

MAX_CHARACTERS = 8 * 1024 * 1024
MAX_TOKENS = 100_000
MAX_DEPTH = 100
MAX_TYPE_DEPTH = 6
MAX_JOINS = 1_000

_PLAIN, _TYPE, _ANGLE = range(3)
_NESTING = (Code.L_PAREN, Code.L_BRACKET, Code.CASE, Code.UNARY, Code.NESTED_TYPE)


def refusal(lexed: Lexed, dialect: SqlDialect) -> str | None:
    """Why these tokens must not be parsed, or None."""
    codes = lexed.codes
    if sum(codes.count(code) for code in _NESTING) <= MAX_TYPE_DEPTH and len(codes) <= MAX_JOINS:
        return None
    if len(codes) > MAX_TOKENS:
        return f"too long to analyse: {len(codes)} tokens, limit {MAX_TOKENS}"
    joins = codes.count(Code.JOIN)
    if joins > MAX_JOINS:
        return f"too many joins to analyse: {joins}, limit {MAX_JOINS}"
    depth, type_depth = _depths(lexed, dialect)
    if depth > MAX_DEPTH:
        return f"nested too deeply to analyse: {depth} levels, limit {MAX_DEPTH}"
    if type_depth > MAX_TYPE_DEPTH:
        return (
            "types or constructors nested too deeply to analyse: "
            f"{type_depth} levels, limit {MAX_TYPE_DEPTH}"
        )
    return None


def _depths(lexed: Lexed, dialect: SqlDialect) -> tuple[int, int]:
    """The deepest nesting of brackets, CASE and unary operators; and of types alone."""
    types, tokens, codes = dialect.type_tokens, lexed.tokens, lexed.codes
    stack = bytearray()
    deepest = deepest_type = cases = run = 0
    for index, code in enumerate(codes):
        run = run + 1 if code == Code.UNARY else 0
        if code in (Code.L_PAREN, Code.L_BRACKET):
            stack.append(_TYPE if index and types[tokens[index - 1].token_type] else _PLAIN)
        elif code == Code.LT and index and codes[index - 1] == Code.NESTED_TYPE:
            stack.append(_ANGLE)
        elif code in (Code.R_PAREN, Code.R_BRACKET):
            del stack[len(stack.rstrip(bytes([_ANGLE]))) - 1 :]
        elif code == Code.GT and stack and stack[-1] == _ANGLE:
            stack.pop()
        elif code in (Code.CASE, Code.END):
            cases = cases + 1 if code == Code.CASE else max(0, cases - 1)
        deepest = max(deepest, len(stack) + cases + run)
        deepest_type = max(deepest_type, stack.count(_TYPE) + stack.count(_ANGLE))
    return deepest, deepest_type
