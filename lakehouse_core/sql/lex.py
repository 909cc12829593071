"""A text as sqlglot's tokens, brought into one shape: commands opened, lists of literals shortened.

sqlglot reads what follows a command word (CALL, SHOW, EXPLAIN, …) as one string. Here it becomes
tokens too, so that every statement has a template of the same kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlglot.tokenizer_core import Token

    from lakehouse_core.sql.dialect import SqlDialect


class Code(IntEnum):
    """What this room wants to know of a token; a byte, because sets of TokenType are slow."""

    OTHER = 0
    LITERAL = 1
    L_PAREN = 2
    R_PAREN = 3
    L_BRACKET = 4
    R_BRACKET = 5
    COMMA = 6
    IN = 7
    VALUES = 8
    SEMICOLON = 9
    JOIN = 10
    CASE = 11
    END = 12
    UNARY = 13
    NESTED_TYPE = 14
    GT = 15
    LT = 16
    QUERY = 17
    VAR = 18
    IDENTIFIER = 19
    CONSTANT = 20
    DOT = 21
    NAME = 22


_CODES: dict[Code, Iterable[TokenType]] = {
    Code.LITERAL: (
        TokenType.STRING,
        TokenType.NUMBER,
        TokenType.RAW_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.UNICODE_STRING,
        TokenType.BYTE_STRING,
        TokenType.HEX_STRING,
        TokenType.BIT_STRING,
        TokenType.HEREDOC_STRING,
    ),
    Code.L_PAREN: (TokenType.L_PAREN,),
    Code.R_PAREN: (TokenType.R_PAREN,),
    Code.L_BRACKET: (TokenType.L_BRACKET, TokenType.L_BRACE),
    Code.R_BRACKET: (TokenType.R_BRACKET, TokenType.R_BRACE),
    Code.COMMA: (TokenType.COMMA,),
    Code.IN: (TokenType.IN,),
    Code.VALUES: (TokenType.VALUES,),
    Code.SEMICOLON: (TokenType.SEMICOLON,),
    Code.JOIN: (TokenType.JOIN,),
    Code.CASE: (TokenType.CASE,),
    Code.END: (TokenType.END,),
    Code.UNARY: (TokenType.NOT, TokenType.DASH, TokenType.TILDE, TokenType.PLUS),
    Code.NESTED_TYPE: (TokenType.ARRAY, TokenType.STRUCT, TokenType.MAP, TokenType.NESTED),
    Code.GT: (TokenType.GT,),
    Code.LT: (TokenType.LT,),
    Code.QUERY: (TokenType.SELECT, TokenType.WITH, TokenType.FROM),
    Code.VAR: (TokenType.VAR,),
    Code.IDENTIFIER: (TokenType.IDENTIFIER,),
    Code.DOT: (TokenType.DOT,),
    Code.CONSTANT: (TokenType.NULL, TokenType.TRUE, TokenType.FALSE),
}


def _table() -> bytes:
    table = bytearray(max(TokenType) + 1)
    for code, kinds in _CODES.items():
        for kind in kinds:
            table[kind] = code
    return bytes(table)


_TABLE = _table()

# Words between EXPLAIN and the statement it explains, over the dialects we meet.
_EXPLAIN_WORDS = frozenset(
    {"ANALYZE", "VERBOSE", "EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL", "PLAN", "FOR"}
)


@dataclass(slots=True)
class Lexed:
    """The tokens of one text.

    Attributes:
        text: the text.
        tokens: tokens without semicolons; of a list of literals only the first stays.
        codes: the `Code` of each of them.
        literals: every literal token in order, those of shortened lists too.
        statements: how many statements there are.
        is_command: sqlglot has no tree for it.
        explained: how many leading tokens are EXPLAIN and its options.
    """

    text: str
    tokens: list[Token]
    codes: bytes = b""
    literals: list[Token] = field(default_factory=list)
    statements: int = 0
    is_command: bool = False
    explained: int = 0


def lex(text: str, dialect: SqlDialect) -> Lexed:
    """Tokens of a text.

    Raises:
        sqlglot.errors.TokenError: a quote or comment is never closed.
    """
    tokens = dialect.tokenize(text)
    is_command = _is_command(tokens, dialect)
    if is_command:
        tokens = _opened(text, tokens, dialect)
    lexed = Lexed(text, tokens, codes_of(tokens), is_command=is_command)
    _split(lexed)
    codes = lexed.codes
    lexed.literals = [t for t, c in zip(lexed.tokens, codes, strict=True) if c == Code.LITERAL]
    if lexed.tokens and lexed.tokens[0].text.upper() == "EXPLAIN":
        lexed.explained = _explain_length(lexed)
        lexed.is_command = False
    if Code.IN in codes or Code.VALUES in codes:
        _shorten_lists(lexed)
    return lexed


def codes_of(tokens: list[Token]) -> bytes:
    """The `Code` of each token."""
    table = _TABLE
    return bytes([table[token.token_type] for token in tokens])


def close_of(codes: bytes | bytearray, start: int) -> int:
    """Index of the `)` that closes the `(` at `start`, or the number of tokens."""
    depth = 0
    for index in range(start, len(codes)):
        code = codes[index]
        if code == Code.L_PAREN:
            depth += 1
        elif code == Code.R_PAREN:
            depth -= 1
            if depth == 0:
                return index
    return len(codes)


def _is_command(tokens: list[Token], dialect: SqlDialect) -> bool:
    return bool(tokens) and tokens[0].token_type in dialect.base.tokenizer_class.COMMANDS


def _opened(text: str, tokens: list[Token], dialect: SqlDialect) -> list[Token]:
    """The tokens with the string after a leading command word opened, however deep."""
    opened: list[Token] = []
    rest: list[Token] = tokens
    while len(rest) > 1 and _is_command(rest, dialect):
        head, tail = rest[0], rest[1]
        start = text.find(tail.text, head.end + 1)
        if tail.token_type != TokenType.STRING or start < 0:
            break
        opened.append(head)
        rest = [*_shifted(dialect.tokenize(tail.text), start), *rest[2:]]
    return opened + rest


def _shifted(tokens: list[Token], offset: int) -> list[Token]:
    for token in tokens:
        token.start += offset
        token.end += offset
    return tokens


def _split(lexed: Lexed) -> None:
    """Count statements and drop the semicolons of a single one."""
    if Code.SEMICOLON not in lexed.codes:
        lexed.statements = 1 if lexed.tokens else 0
        return
    in_statement = False
    for code in lexed.codes:
        if code == Code.SEMICOLON:
            in_statement = False
        elif not in_statement:
            in_statement = True
            lexed.statements += 1
    if lexed.statements <= 1:
        lexed.tokens = [t for t in lexed.tokens if t.token_type != TokenType.SEMICOLON]
        lexed.codes = codes_of(lexed.tokens)


def _explain_length(lexed: Lexed) -> int:
    tokens, codes, index = lexed.tokens, lexed.codes, 1
    while index < len(tokens):
        if codes[index] == Code.L_PAREN:
            if index + 1 < len(tokens) and codes[index + 1] in (Code.QUERY, Code.VALUES):
                break
            index = close_of(codes, index) + 1
        elif tokens[index].text.upper() in _EXPLAIN_WORDS:
            index += 1
        else:
            break
    return min(index, len(tokens))


def _shorten_lists(lexed: Lexed) -> None:
    """Keep one literal of `IN (1, 2, 3)` and one row of `VALUES (1, 2), (3, 4)`."""
    tokens, codes = lexed.tokens, lexed.codes
    kept: list[Token] = []
    index = 0
    while index < len(tokens):
        code = codes[index]
        kept.append(tokens[index])
        index += 1
        if code not in (Code.IN, Code.VALUES):
            continue
        end = _row_end(codes, index)
        if end and code == Code.IN:
            kept += (tokens[index], tokens[index + 1], tokens[end])
            index = end + 1
        elif end:
            kept += tokens[index : end + 1]
            index = _rows_end(codes, end, end - index) + 1
    if len(kept) < len(tokens):
        lexed.tokens, lexed.codes = kept, codes_of(kept)


def _row_end(codes: bytes, start: int) -> int:
    """Index of the `)` when a bracket holding only literals opens at `start`; else 0."""
    index = start
    if index >= len(codes) or codes[index] != Code.L_PAREN:
        return 0
    while index + 2 < len(codes) and codes[index + 1] == Code.LITERAL:
        index += 2
        if codes[index] == Code.R_PAREN:
            return index
        if codes[index] != Code.COMMA:
            return 0
    return 0


def _rows_end(codes: bytes, end: int, length: int) -> int:
    """Index of the last token of the rows that follow one ending at `end` and are as long."""
    while end + 1 < len(codes) and codes[end + 1] == Code.COMMA:
        next_end = _row_end(codes, end + 2)
        if not next_end or next_end - (end + 2) != length:
            break
        end = next_end
    return end
