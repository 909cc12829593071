"""Statements about the session and the catalog: what a gateway answers itself.

    parse_session("EXECUTE p USING 1, 'x'", "trino")   # Execute("p", ("1", "'x'"))
    bind_parameters("SELECT ?", ("1",), "trino")        # SELECT 1
    parse_session("SELECT 1", "trino")                  # None: a statement for an engine

Read from sqlglot's tokens: it has no tree for these statements, and of most of them it keeps the
text behind the first word as one lump.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from lakehouse_core.domain.errors import QueryFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlglot.tokenizer_core import Token

_VERBS = (
    "PREPARE", "EXECUTE", "DEALLOCATE", "DESC", "SHOW", "SET", "RESET", "USE", "START", "COMMIT",
    "ROLLBACK",
)  # fmt: skip
_SHOWN = ("catalogs", "schemas", "tables", "columns", "session", "functions")
_COMMENTS = ("--", "/*")
_PREFIX = "SELECT "  # behind it no word is taken for a command
_DEEPER = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE})
_SHALLOWER = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END})


@dataclass(frozen=True, slots=True)
class Prepare:
    """Keep a statement under a name."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a statement that was kept, or one that comes along, with values for its parameters."""

    name: str | None
    arguments: tuple[str, ...] = ()  # SQL texts
    sql: str | None = None  # of EXECUTE IMMEDIATE


@dataclass(frozen=True, slots=True)
class Deallocate:
    """Forget a statement that was kept."""

    name: str


@dataclass(frozen=True, slots=True)
class DescribePrepared:
    """Tell parameters or columns of a statement that was kept."""

    name: str
    is_output: bool


@dataclass(frozen=True, slots=True)
class SetSession:
    """Set a session property; `value` None: put it back."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Use:
    """Choose what completes table names."""

    catalog: str | None
    schema: str


@dataclass(frozen=True, slots=True)
class Transaction:
    """Begin or end a transaction."""

    verb: str


@dataclass(frozen=True, slots=True)
class Show:
    """Tell names: `what` is one of `_SHOWN`, or `create table`."""

    what: str
    names: tuple[str, ...] = ()
    like: str | None = None


SessionStatement = (
    Prepare | Execute | Deallocate | DescribePrepared | SetSession | Use | Transaction | Show
)


def parse_session(sql: str, dialect: str) -> SessionStatement | None:
    """The statement, when it is about the session; None: it is for an engine.

    Raises:
        QueryFailedError: it begins like one but cannot be understood.
    """
    head = sql[:64].lstrip()[:10].upper()
    if not head.startswith(_VERBS) and not head.startswith(_COMMENTS):
        return None
    words = _Words(sql, dialect)
    read = _READERS.get(" ".join(words.next_word().split()))  # some are tokens of two words
    return read(words) if read is not None else None


def bind_parameters(sql: str, arguments: Sequence[str], dialect: str) -> str:
    """The statement with values in place of its question marks; the rest of the text is kept.

    Raises:
        QueryFailedError: there are more or fewer values than parameters.
    """
    places = _places(sql, dialect)
    if len(places) != len(arguments):
        raise QueryFailedError(
            f"The statement has {len(places)} parameters, but {len(arguments)} values were given",
            code="INVALID_PARAMETER_USAGE",
        )
    pieces, position = [], 0
    for place, argument in zip(places, arguments, strict=True):
        # Spaces: `-?` and -5 must not become a comment.
        pieces += [sql[position:place], f" {_operand(argument, dialect)} "]
        position = place + 1
    return "".join([*pieces, sql[position:]])


def parameter_count(sql: str, dialect: str) -> int:
    """How many question marks a statement has."""
    return len(_places(sql, dialect))


def text_of_literal(sql: str, dialect: str) -> str:
    """The value of a literal as session properties keep it; other expressions as written."""
    try:
        tree = sqlglot.parse_one(sql, dialect=dialect)
    except SqlglotError as error:
        raise QueryFailedError(f"{sql} is no value", code="SYNTAX_ERROR") from error
    if isinstance(tree, exp.Literal):
        return str(tree.this)
    return sql.strip()


def _places(sql: str, dialect: str) -> list[int]:
    """Where the question marks are."""
    tokens = _tokens(_PREFIX + sql, dialect)
    return [t.start - len(_PREFIX) for t in tokens if t.token_type is TokenType.PLACEHOLDER]


def _operand(argument: str, dialect: str) -> str:
    """A value as it may stand anywhere: what has operators of its own is put in brackets."""
    try:
        tree = sqlglot.parse_one(argument, dialect=dialect)
    except SqlglotError as error:
        raise QueryFailedError(
            f"The value {argument} of a parameter cannot be understood", code="SYNTAX_ERROR"
        ) from error
    is_simple = not isinstance(tree, exp.Binary | exp.Connector | exp.Not | exp.Query)
    return argument if is_simple else f"({argument})"


def _tokens(sql: str, dialect: str) -> list[Token]:
    try:
        return sqlglot.tokenize(sql, dialect=dialect)
    except SqlglotError as error:
        raise QueryFailedError(
            f"The statement cannot be read: {error}", code="SYNTAX_ERROR"
        ) from error


class _Words:
    """Walks the tokens of a statement."""

    def __init__(self, sql: str, dialect: str) -> None:
        self._sql = _PREFIX + sql
        self._tokens = [
            t for t in _tokens(self._sql, dialect)[1:] if t.token_type is not TokenType.SEMICOLON
        ]
        self._at = 0

    def peek(self) -> str:
        """The next word in upper case; empty at the end."""
        return self._tokens[self._at].text.upper() if self._at < len(self._tokens) else ""

    def next_word(self) -> str:
        word = self.peek()
        self._at += 1
        return word

    def take(self, *words: str) -> bool:
        """Go past a word when it is one of these."""
        if self.peek() in words:
            self._at += 1
            return True
        return False

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            found = self.peek() or "the end"
            raise QueryFailedError(
                f"Expected {' or '.join(words)}, found {found}", code="SYNTAX_ERROR"
            )

    def name(self) -> str:
        """One identifier; in lower case unless it is quoted."""
        if self._at >= len(self._tokens):
            raise QueryFailedError("A name is missing at the end", code="SYNTAX_ERROR")
        token = self._tokens[self._at]
        self._at += 1
        is_quoted = token.token_type is TokenType.IDENTIFIER
        return token.text if is_quoted else token.text.lower()

    def names(self) -> tuple[str, ...]:
        """Identifiers joined by dots."""
        found = [self.name()]
        while self.take("."):
            found.append(self.name())
        return tuple(found)

    def text(self) -> str:
        """A string literal."""
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.token_type is TokenType.STRING:
                self._at += 1
                return token.text
        raise QueryFailedError("Expected a text in single quotes", code="SYNTAX_ERROR")

    def rest(self) -> str:
        """The text from here on."""
        if self._at >= len(self._tokens):
            return ""
        start, self._at = self._tokens[self._at].start, len(self._tokens)
        return self._sql[start : self._tokens[-1].end + 1]

    def arguments(self) -> tuple[str, ...]:
        """Expressions separated by commas, as written."""
        found: list[str] = []
        depth, start = 0, self._at
        for at in range(self._at, len(self._tokens) + 1):
            kind = self._tokens[at].token_type if at < len(self._tokens) else TokenType.COMMA
            depth += (kind in _DEEPER) - (kind in _SHALLOWER)
            if kind is TokenType.COMMA and depth == 0:
                if at == start:
                    raise QueryFailedError("A value is missing", code="SYNTAX_ERROR")
                found.append(self._sql[self._tokens[start].start : self._tokens[at - 1].end + 1])
                start = at + 1
        self._at = len(self._tokens)
        return tuple(found)


def _prepare(words: _Words) -> SessionStatement:
    name = words.name()
    words.expect("FROM")
    return Prepare(name, words.rest())


def _execute(words: _Words) -> SessionStatement:
    name, sql = None, None
    if words.take("IMMEDIATE"):
        sql = words.text()
    else:
        name = words.name()
    arguments = words.arguments() if words.take("USING") else ()
    return Execute(name, arguments, sql)


def _deallocate(words: _Words) -> SessionStatement:
    return Deallocate(words.name())


def _describe(words: _Words) -> SessionStatement | None:
    if words.peek() in ("SELECT", "WITH", "VALUES", "(", ""):
        return None
    return Show("columns", words.names())


def _set(words: _Words) -> SessionStatement | None:
    if not words.take("SESSION") or words.peek() == "AUTHORIZATION":
        return None
    name = ".".join(words.names())
    words.expect("=")
    return SetSession(name, words.rest())


def _reset(words: _Words) -> SessionStatement | None:
    if words.peek() == "AUTHORIZATION":
        return None
    return SetSession(".".join(words.names()), None)


def _use(words: _Words) -> SessionStatement:
    *catalog, schema = words.names()
    return Use(catalog[0] if catalog else None, schema)


def _show(words: _Words) -> SessionStatement | None:
    what = words.next_word().lower()
    if what == "create" and words.take("TABLE"):
        return Show("create table", words.names())
    if what not in _SHOWN:
        return None
    names = words.names() if words.take("FROM", "IN") else ()
    like = words.text() if words.take("LIKE") else None
    return Show(what, names, like)


def _transaction(verb: str) -> Callable[[_Words], SessionStatement | None]:
    return lambda _: Transaction(verb)


_READERS: dict[str, Callable[[_Words], SessionStatement | None]] = {
    "PREPARE": _prepare,
    "EXECUTE": _execute,
    "DEALLOCATE PREPARE": _deallocate,
    "DESCRIBE INPUT": lambda words: DescribePrepared(words.name(), is_output=False),
    "DESCRIBE OUTPUT": lambda words: DescribePrepared(words.name(), is_output=True),
    "DESCRIBE": _describe,
    "DESC": _describe,
    "SET": _set,
    "RESET SESSION": _reset,
    "USE": _use,
    "SHOW": _show,
    "START": _transaction("START TRANSACTION"),
    "COMMIT": _transaction("COMMIT"),
    "ROLLBACK": _transaction("ROLLBACK"),
}
