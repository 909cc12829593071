"""Tokens and tree of one statement; what cannot be read for sure is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.errors import SqlglotError

from lakehouse_core.sql import limits
from lakehouse_core.sql.guard.records import RefusedError, Rule
from lakehouse_core.sql.guard.text import refuse_ambiguous
from lakehouse_core.sql.kind import is_bare_command
from lakehouse_core.sql.lex import Lexed, lex
from lakehouse_core.sql.listing import words
from lakehouse_core.sql.tree import Tree, parse

if TYPE_CHECKING:
    from lakehouse_core.sql.dialect import SqlDialect

# EXPLAIN with any other word is refused: ANALYZE runs the statement.
_EXPLAIN_WORDS = words("""
    ( ) , CODEGEN COST DISTRIBUTED EXPLAIN EXTENDED FOR FORMAT FORMATTED GRAPHVIZ IO JSON
    LOGICAL PLAN TEXT TYPE VALIDATE VERBOSE
""")


def lexed_of(sql: str, dialect: SqlDialect) -> Lexed:
    """The tokens of one statement that is fit to be parsed.

    Raises:
        RefusedError: it is none, or more than one, or cannot be read for sure.
    """
    known = dialect.recall(sql)
    try:
        lexed = known[0] if known else lex(sql, dialect)
    except SqlglotError as error:
        raise RefusedError(
            Rule.NOT_UNDERSTOOD, "a quote or a comment is opened and never closed"
        ) from error
    if lexed.statements != 1:
        raise RefusedError(Rule.ONE_STATEMENT, f"one statement at a time: found {lexed.statements}")
    refusal = limits.refusal(lexed, dialect)
    if refusal is not None:
        raise RefusedError(Rule.NOT_UNDERSTOOD, refusal)
    refuse_ambiguous(lexed, dialect)
    unknown = {t.text.upper() for t in lexed.tokens[: lexed.explained]} - _EXPLAIN_WORDS
    if unknown:
        raise RefusedError(
            Rule.STATEMENT, f"EXPLAIN with {sorted(unknown)[0][:40]} may run the statement"
        )
    return lexed


def tree_of(lexed: Lexed, dialect: SqlDialect) -> Tree:
    """The tree of a statement.

    Raises:
        RefusedError: sqlglot cannot read it, or has no model for it.
    """
    word = lexed.tokens[lexed.explained].text.upper()[:40] if _has_more(lexed) else "EXPLAIN"
    if lexed.is_command or is_bare_command(lexed) or not _has_more(lexed):
        raise unknown_statement(word)
    known = dialect.recall(lexed.text)
    if known is not None and known[0] is lexed:
        return known[1]
    try:
        tree = parse(lexed, dialect)
    except SqlglotError as error:
        raise RefusedError(Rule.NOT_UNDERSTOOD, "the statement cannot be parsed") from error
    if tree is None:
        raise unknown_statement(word)
    return tree


def _has_more(lexed: Lexed) -> bool:
    return lexed.explained < len(lexed.tokens)


def unknown_statement(word: str) -> RefusedError:
    """The refusal of a statement that is on no list."""
    return RefusedError(
        Rule.STATEMENT,
        f"{word} is not among the statements the guard knows: send a query, or use the engine "
        "directly",
    )
