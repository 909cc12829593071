"""A text as sqlglot's tokens, brought into one shape: commands opened, lists of literals shortened.

sqlglot reads what follows a command word (CALL, SHOW, EXPLAIN, …) as one string. Here it becomes
tokens too, so that every statement has a template of the same kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import Token, TokenType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.sql.dialect import SqlDialect


class Code:
    """What this room wants to know of a token.

    Plain integers that fit a byte: members of an Enum cost more to look up than the work done
    with them.
    """

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
    SIGN = 23
    COLON = 24
    EQ = 25
    NEQ = 26
    HINT = 27
    WINDOW = 28


_CODES: dict[int, Iterable[TokenType]] = {
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
    Code.UNARY: (TokenType.NOT, TokenType.TILDE),
    Code.SIGN: (TokenType.DASH, TokenType.PLUS),
    Code.NESTED_TYPE: (TokenType.ARRAY, TokenType.STRUCT, TokenType.MAP, TokenType.NESTED),
    Code.EQ: (TokenType.EQ,),
    Code.NEQ: (TokenType.NEQ,),
    Code.HINT: (TokenType.HINT,),
    Code.WINDOW: (TokenType.WINDOW,),
    Code.GT: (TokenType.GT,),
    Code.LT: (TokenType.LT,),
    Code.QUERY: (TokenType.SELECT, TokenType.WITH, TokenType.FROM),
    Code.VAR: (TokenType.VAR,),
    Code.IDENTIFIER: (TokenType.IDENTIFIER,),
    Code.DOT: (TokenType.DOT,),
    Code.COLON: (TokenType.COLON, TokenType.DCOLON),
    Code.CONSTANT: (TokenType.NULL, TokenType.TRUE, TokenType.FALSE),
}


def _table() -> bytes:
    table = bytearray(max(TokenType) + 1)
    for code, kinds in _CODES.items():
        for kind in kinds:
            table[kind] = code
    return bytes(table)


_TABLE = _table()
_COMMA = bytes((Code.COMMA,))
_L_PAREN = bytes((Code.L_PAREN,))
_LITERALS_IN_A_ROW = bytes((Code.LITERAL, Code.LITERAL))

_COMMANDS_DEEP = 3  # EXPLAIN ANALYZE EXECUTE …; each level is tokenized anew
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
        has_items: there is a list that holds more than literals.
        lists: first literal that stays of an IN list → the tokens of the whole list.
        prefix: what tells the parser of Athena which of its two languages follows.
    """

    text: str
    tokens: list[Token]
    codes: bytes = b""
    literals: list[Token] = field(default_factory=list)
    statements: int = 0
    is_command: bool = False
    explained: int = 0
    has_items: bool = False
    lists: dict[int, list[Token]] = field(default_factory=dict)
    prefix: list[Token] = field(default_factory=list)


def lex(text: str, dialect: SqlDialect) -> Lexed:
    """Tokens of a text.

    Raises:
        sqlglot.errors.TokenError: a quote or comment is never closed.
    """
    prefix, tokens = _without_prefix(dialect.tokenize(text))
    is_command = _is_command(tokens, dialect)
    if is_command:
        tokens = _opened(text, tokens, dialect)
    lexed = Lexed(text, tokens, codes_of(tokens), is_command=is_command, prefix=prefix)
    if Code.WINDOW in lexed.codes:
        _name_functions(lexed)
    if _LITERALS_IN_A_ROW in lexed.codes:
        _join_strings(lexed)
    _split(lexed)
    codes = lexed.codes
    lexed.literals = [lexed.tokens[index] for index in positions(codes, Code.LITERAL)]
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


def end_of(token: Token) -> int:
    """Where a literal ends in the text; the L of Spark's 10L is a token of its own."""
    is_number = token.token_type == TokenType.NUMBER
    return token.start + len(token.text) - 1 if is_number else token.end


def positions(codes: bytes, code: int) -> list[int]:
    """Where a code stands."""
    found: list[int] = []
    index = codes.find(code)
    while index >= 0:
        found.append(index)
        index = codes.find(code, index + 1)
    return found


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
    """The tokens with the string after a leading command word opened."""
    opened: list[Token] = []
    rest: list[Token] = tokens
    while len(opened) < _COMMANDS_DEEP and len(rest) > 1 and _is_command(rest, dialect):
        head, tail = rest[0], rest[1]
        start = text.find(tail.text, head.end + 1)
        if tail.token_type != TokenType.STRING or start < 0:
            break
        opened.append(head)
        _, inner = _without_prefix(dialect.tokenize(tail.text))
        rest = [*_shifted(inner, start), *rest[2:]]
    return opened + rest


def _without_prefix(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    has_prefix = bool(tokens) and tokens[0].token_type == TokenType.HIVE_TOKEN_STREAM
    return (tokens[:1], tokens[1:]) if has_prefix else ([], tokens)


def _name_functions(lexed: Lexed) -> None:
    """Let `window(` be a function: the parser takes it for a WINDOW clause after GROUP BY."""
    for index in positions(lexed.codes, Code.WINDOW):
        if lexed.codes[index + 1 : index + 2] == _L_PAREN:
            lexed.tokens[index].token_type = TokenType.VAR
    lexed.codes = codes_of(lexed.tokens)


def _join_strings(lexed: Lexed) -> None:
    """Make one token of strings without a gap: where quotes are not doubled, 'it''s' is two."""
    joined: list[Token] = []
    for token in lexed.tokens:
        last = joined[-1] if joined else None
        is_next = last is not None and last.end + 1 == token.start
        if last is not None and is_next and last.token_type == token.token_type == TokenType.STRING:
            joined[-1] = Token(
                last.token_type,
                last.text + token.text,
                last.line,
                last.col,
                last.start,
                token.end,
                last.comments + token.comments,
            )
        else:
            joined.append(token)
    lexed.tokens, lexed.codes = joined, codes_of(joined)


def _shifted(tokens: list[Token], offset: int) -> list[Token]:
    for token in tokens:
        token.start += offset
        token.end += offset
    return tokens


def _split(lexed: Lexed) -> None:
    """Count statements and drop the semicolons of a single one."""
    first = lexed.codes.find(Code.SEMICOLON)
    if first == len(lexed.codes) - 1 > 0:
        lexed.tokens.pop()
        lexed.codes = lexed.codes[:-1]
    if first < 0 or first == len(lexed.codes) > 0:
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
    """Keep one literal of `IN (1, 2, 3)` and one row of `VALUES (1, 2), (3, NULL)`."""
    tokens, codes = lexed.tokens, lexed.codes
    kept: list[Token] = []
    done = 0
    for index in sorted(positions(codes, Code.IN) + positions(codes, Code.VALUES)):
        row = _row(codes, index + 1)
        if row is None:
            lexed.has_items = True
        elif codes[index] == Code.IN:
            if row.items > 1:
                lexed.lists[tokens[row.literal_at].start] = tokens[index + 2 : row.end]
            kept += tokens[done : index + 2]
            kept += tokens[row.first : row.literal_at + 1]
            done = row.end
        else:
            kept += tokens[done : row.end + 1]
            done = _rows_end(codes, row) + 1
            lexed.has_items = lexed.has_items or codes[done : done + 1] == _COMMA
    kept += tokens[done:]
    if len(kept) < len(tokens):
        lexed.tokens, lexed.codes = kept, codes_of(kept)


@dataclass(frozen=True, slots=True)
class _Row:
    """A bracket that holds only literals.

    Attributes:
        end: its `)`.
        first: where the item begins that stays: the first one that is no NULL, TRUE or FALSE.
        literal_at: the literal of that item.
        items: how many there are.
    """

    end: int
    first: int
    literal_at: int
    items: int


def _row(codes: bytes, start: int) -> _Row | None:
    """The row that opens at `start`, if everything in it is a literal."""
    if start >= len(codes) or codes[start] != Code.L_PAREN:
        return None
    index, items, first, literal_at = start + 1, 0, 0, 0
    while index + 1 < len(codes):
        begin = index
        index += codes[index] == Code.SIGN
        if index + 1 >= len(codes) or codes[index] not in (Code.LITERAL, Code.CONSTANT):
            return None
        if not literal_at and codes[index] == Code.LITERAL:
            first, literal_at = begin, index
        index += 1
        items += 1
        if codes[index] == Code.R_PAREN:
            return _Row(index, first, literal_at, items) if literal_at else None
        if codes[index] != Code.COMMA:
            return None
        index += 1
    return None


def _rows_end(codes: bytes, row: _Row) -> int:
    """Index of the last token of the rows that follow one and have as many items."""
    end = row.end
    while end + 1 < len(codes) and codes[end + 1] == Code.COMMA:
        following = _row(codes, end + 2)
        if following is None or following.items != row.items:
            break
        end = following.end
    return end
