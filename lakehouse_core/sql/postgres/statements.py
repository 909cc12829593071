"""Texts as clients send them, split into statements and parsed once."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.dialects import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.sql.postgres.binding import bind, count_parameters
from lakehouse_core.sql.postgres.cursors import Declare, parse_declare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.sql.postgres.binding import Value

DIALECT = "postgres"
_WRITING = frozenset(
    ("INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "CALL", "EXECUTE", "INTO")
)
_LONGEST = 4_096  # characters; none of these is longer


@dataclass(frozen=True, slots=True)
class Prepared:
    """One statement.

    Attributes:
        sql: its text; of several in one text, its own part.
        tree: what sqlglot makes of it; None when it cannot be parsed: an engine may know better.
        oids: types of its parameters as the client declared them; 0 where it did not.
        cursor: the one that is declared for it; None: it is to be run.
    """

    sql: str
    tree: exp.Expr | None
    oids: tuple[int, ...] = ()
    cursor: Declare | None = None

    def bound(self, values: Sequence[Value]) -> Prepared:
        """The statement with values in the place of its parameters.

        Raises:
            QueryFailedError: a value is missing.
        """
        if self.tree is None or not values:
            return self
        tree = bind(self.tree, values)
        return replace(self, sql=tree.sql(dialect=DIALECT), tree=tree)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.tree is None and not self.sql.strip().strip(";").strip()

    @property
    def is_reading(self) -> bool:
        """Whether running it changes nothing; False when that cannot be told from the text."""
        tree = self.tree
        if isinstance(tree, exp.Command):
            # EXPLAIN ANALYZE runs what it explains.
            words = re.findall(r"\w+", self.sql.upper())
            return words[:1] == ["EXPLAIN"] and _WRITING.isdisjoint(words)
        if not isinstance(tree, exp.Query | exp.Values | exp.Describe):
            return False
        return tree.find(exp.DML, exp.DDL, exp.Merge, exp.Into, exp.Command) is None


def split(sql: str) -> list[Prepared]:
    """The statements of a text, in order; one that cannot be parsed as a whole stays whole."""
    pieces = _pieces(sql)
    if len(pieces) <= 1:
        return [_one(sql)]
    found = [_one(piece) for piece in pieces]
    return found if all(one.tree is not None for one in found) else [Prepared(sql, None)]


def _one(sql: str) -> Prepared:
    cursor = parse_declare(sql)
    if cursor is not None:
        return replace(_one(cursor.query), cursor=cursor)
    try:
        trees = [tree for tree in sqlglot.parse(sql, dialect=DIALECT) if tree is not None]
    except (SqlglotError, RecursionError):
        trees = []
    return Prepared(sql, trees[0] if len(trees) == 1 else None)


def _pieces(sql: str) -> list[str]:
    """The texts between semicolons, as they were written; none when they cannot be told."""
    try:
        tokens = Dialect.get_or_raise(DIALECT).tokenize(sql)
    except SqlglotError:
        return []
    found, start, has_words = [], 0, False
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            has_words = True
            continue
        if has_words:
            found.append(sql[start : token.start].strip())
        start, has_words = token.end + 1, False
    return [*found, sql[start:].strip()] if has_words else found


def prepare(sql: str, oids: tuple[int, ...]) -> Prepared:
    """A statement for binding.

    Raises:
        QueryFailedError: there are several in it, or a parameter has no number.
    """
    found = split(sql)
    if len(found) > 1:
        raise QueryFailedError(
            "cannot insert multiple commands into a prepared statement", code="42601"
        )
    one = found[0]
    count = count_parameters(one.tree) if one.tree is not None else 0
    return replace(one, oids=oids + (0,) * (count - len(oids)))


def words_of(sql: str) -> list[str]:
    """The words and signs of a short statement about the session; else none."""
    if len(sql) > _LONGEST:
        return []
    try:
        tokens = Dialect.get_or_raise(DIALECT).tokenize(sql)
    except SqlglotError:
        return []
    if tokens and tokens[0].token_type is TokenType.STRING:
        return []
    words: list[str] = []
    for token in tokens:
        text = token.text
        if text == ";":
            break
        # lakehelm.team, and -5 of a number, are one word each.
        if words and (text == "." or words[-1].endswith(".") or words[-1] == "-"):
            words[-1] += text
        elif text != ",":
            words.append(text)
        elif words:
            words[-1] += ","
    return words
