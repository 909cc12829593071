"""Texts for people who look: a query cut to its first rows, a text laid out in lines."""

from __future__ import annotations

from sqlglot import exp, parse, parse_one
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType


def previewed(sql: str, dialect: str, rows: int) -> str:
    """The text with a LIMIT behind it, when it is one query that has none; else as it is.

    Nothing before the limit is changed, so that a place an error names is the writer's own.
    """
    try:
        found = [tree for tree in parse(sql, read=dialect) if tree is not None]
        tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    except (SqlglotError, RecursionError):
        return sql
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        return sql
    if any(found[0].args.get(name) is not None for name in ("limit", "fetch", "offset")):
        return sql
    end = max(token.end for token in tokens if token.token_type != TokenType.SEMICOLON) + 1
    return f"{sql[:end]}\nLIMIT {rows}"


def laid_out(sql: str, dialect: str) -> str:
    """The text in lines, so that two of them can be compared; as it is when it does not parse."""
    try:
        return parse_one(sql, read=dialect).sql(dialect=dialect, pretty=True, comments=False)
    except (SqlglotError, RecursionError):
        return sql
