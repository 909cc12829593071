"""Secrets out of SQL texts before they are stored or shown.

Three rules, all on tokens: in a statement that handles no data (CREATE SECRET, ATTACH, SET, ALTER
USER, …) and speaks of a password, secret, token or key, every literal goes; in any statement a
literal that is itself a connection string with credentials goes, and so does one that is compared
with or assigned to a column named like a secret.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot.tokenizer_core import Token

MASK = "***"

_SUSPICIOUS = ("pass", "pwd", "secret", "token", "credential", "key", "://")
_WORDS = ("password", "passwd", "secret", "token", "credential")
_WORD_PARTS = frozenset({"key", "pwd", "pass"})
_SECRET_PARTS = frozenset({"pwd", "pass", "passphrase", "apikey"})
_SECRET_KEYS = frozenset({"api", "access", "private", "encryption", "auth", "signing", "master"})
# What a literal holds, not SQL: `user:password@` of a URL, or `password=…` of a connection string.
_CREDENTIALS = re.compile(
    r"://[^/\s:@]+:[^/\s@]+@|(?:^|[^a-z])(?:password|passwd|pwd|secret|token)[a-z_]*\s*=\s*\S", re.I
)
_LITERALS = frozenset(
    {
        TokenType.STRING,
        TokenType.RAW_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.UNICODE_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.BYTE_STRING,
        TokenType.HEX_STRING,
    }
)
_DATA_STATEMENTS = frozenset(
    {
        TokenType.SELECT,
        TokenType.WITH,
        TokenType.FROM,
        TokenType.VALUES,
        TokenType.L_PAREN,
        TokenType.INSERT,
        TokenType.UPDATE,
        TokenType.DELETE,
        TokenType.MERGE,
    }
)
_VALUES = _LITERALS | {TokenType.NUMBER}
_COMPARING = frozenset(
    {
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.NULLSAFE_EQ,
        TokenType.LIKE,
        TokenType.ILIKE,
        TokenType.RLIKE,
        TokenType.IN,
        TokenType.BETWEEN,
    }
)
_BETWEEN_NAME_AND_OPERATOR = frozenset({TokenType.R_PAREN, TokenType.NOT})
_AFTER_OPERAND = frozenset(
    {
        TokenType.AND,
        TokenType.OR,
        TokenType.COMMA,
        TokenType.WHERE,
        TokenType.FROM,
        TokenType.THEN,
        TokenType.GROUP_BY,
        TokenType.ORDER_BY,
        TokenType.HAVING,
        TokenType.LIMIT,
        TokenType.UNION,
        TokenType.JOIN,
    }
)
_QUERY_STARTS = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN})


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without secrets, and the secrets it had, to hush messages that quote them."""

    text: str
    secrets: tuple[str, ...] = ()

    def hush(self, message: str) -> str:
        """A message about the statement with the same secrets masked."""
        for secret in self.secrets:
            message = message.replace(secret, MASK)
        return message


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int  # exclusive
    secret: str


def is_suspicious(text: str) -> bool:
    """Whether a text might hold a secret at all; cheap, and wrong on the safe side."""
    lowered = text.lower()
    return any(word in lowered for word in _SUSPICIOUS)


def holds_credentials(text: str) -> bool:
    """Whether a literal is itself a connection string with credentials."""
    is_possible = "=" in text or "://" in text
    return is_possible and _CREDENTIALS.search(text) is not None


def is_secret_column(name: str) -> bool:
    """Whether the values of a column of this name must not be kept.

    A key alone is no secret: tables are joined and filtered by keys everywhere.
    """
    words = re.split(r"[^a-z0-9]+", name.lower())
    if any(word in name.lower() for word in _WORDS) or not _SECRET_PARTS.isdisjoint(words):
        return True
    return "key" in words and not _SECRET_KEYS.isdisjoint(words)


def redact(sql: str, dialect: str | None) -> Redacted:
    """Mask the secrets of a SQL text; anything else stays as it was written."""
    if not is_suspicious(sql):
        return Redacted(sql)
    try:
        spans = list(_spans(sql, dialect))
    except TokenError:
        return _cut(sql)
    pieces: list[str] = []
    position = 0
    for span in spans:
        pieces += [sql[position : span.start], f"'{MASK}'"]
        position = span.end
    return Redacted(
        "".join([*pieces, sql[position:]]), tuple(s.secret for s in spans if len(s.secret) > 2)
    )


def _cut(sql: str) -> Redacted:
    """A text without tokens cannot be judged: what follows its first suspicious word is dropped."""
    lowered = sql.lower()
    first = min(lowered.find(word) for word in _SUSPICIOUS if word in lowered)
    return Redacted(f"{sql[:first]}{MASK}", (sql[first:],))


def _spans(sql: str, dialect: str | None, base: int = 0) -> Iterator[_Span]:
    tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    statement: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            yield from _statement_spans(sql, statement, dialect, base)
            statement = []
        else:
            statement.append(token)
    yield from _statement_spans(sql, statement, dialect, base)


def _statement_spans(
    sql: str, tokens: Sequence[Token], dialect: str | None, base: int
) -> Iterator[_Span]:
    rest = _command_rest(sql, tokens)
    if rest is not None:
        # The tokenizer hands the rest of a command over as one piece: it is a statement of its own.
        yield from _spans(sql[rest[0] : rest[1]], dialect, base + rest[0])
        return
    is_sensitive = not _handles_data(tokens) and any(_names_secret(t) for t in tokens)
    if is_sensitive and tokens[0].token_type is TokenType.SET:
        value = _assigned(tokens)
        if value is not None:
            start, end = value.start, tokens[-1].end + 1
            yield _Span(base + start, base + end, sql[start:end].strip("'\""))
            return
    compared = set() if is_sensitive else _compared_with_secrets(tokens)
    for index, token in enumerate(tokens):
        is_secret = is_sensitive or index in compared or _CREDENTIALS.search(token.text)
        is_value = token.token_type in _LITERALS or index in compared
        if is_value and is_secret:
            yield _Span(base + token.start, base + token.end + 1, token.text)


def _compared_with_secrets(tokens: Sequence[Token]) -> set[int]:
    """Literals compared with, or assigned to, a column that is named like a secret."""
    found: set[int] = set()
    for index, token in enumerate(tokens):
        if token.token_type not in _COMPARING:
            continue
        left = index - 1
        while left > 0 and tokens[left].token_type in _BETWEEN_NAME_AND_OPERATOR:
            left -= 1
        if left >= 0 and _is_secret_name(tokens[left]):
            found |= _operand(tokens, index)
        right = index + 1
        while right + 2 < len(tokens) and tokens[right + 1].token_type is TokenType.DOT:
            right += 2
        is_value_first = index > 0 and tokens[index - 1].token_type in _VALUES
        if is_value_first and right < len(tokens) and _is_secret_name(tokens[right]):
            found.add(index - 1)
    return found


def _operand(tokens: Sequence[Token], operator: int) -> set[int]:
    """The literals on the right side of an operator."""
    found: set[int] = set()
    depth = 0
    is_between = tokens[operator].token_type is TokenType.BETWEEN
    for index in range(operator + 1, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if is_between and kind is TokenType.AND:
            is_between = False
        elif depth < 0 or (depth == 0 and kind in _AFTER_OPERAND):
            break
        elif kind in _VALUES:
            found.add(index)
    return found


def _is_secret_name(token: Token) -> bool:
    return token.token_type not in _VALUES and is_secret_column(token.text)


def _assigned(tokens: Sequence[Token]) -> Token | None:
    """The first token of a SET's value, which may be bare words: SET fs.s3a.secret.key = abc."""
    for token, after in itertools.pairwise(tokens):
        if token.token_type is TokenType.EQ:
            return after
    return None


def _command_rest(sql: str, tokens: Sequence[Token]) -> tuple[int, int] | None:
    if len(tokens) != 2 or tokens[1].token_type is not TokenType.STRING:
        return None
    command, rest = tokens
    start = sql.find(rest.text, command.end + 1)
    is_quoted = start > 0 and sql[start - 1] in "'\"" and sql[start - 1] == sql[rest.end]
    if start < 0 or is_quoted or command.token_type is TokenType.ATTACH:
        return None
    return start, start + len(rest.text)


def _handles_data(tokens: Sequence[Token]) -> bool:
    if not tokens:
        return True
    if tokens[0].token_type in _DATA_STATEMENTS:
        return True
    kinds = [token.token_type for token in tokens]
    return kinds[0] is TokenType.CREATE and any(
        kind is TokenType.ALIAS and after in _QUERY_STARTS
        for kind, after in itertools.pairwise(kinds)
    )


def _names_secret(token: Token) -> bool:
    if token.token_type in _LITERALS:
        return False
    word = token.text.lower()
    return any(w in word for w in _WORDS) or not _WORD_PARTS.isdisjoint(
        re.split(r"[^a-z0-9]+", word)
    )
