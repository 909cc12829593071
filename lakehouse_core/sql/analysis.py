"""The slow path: tokens, tree, names, template.

Answers never depend on the hot path; it only remembers them (see `inspector`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import TokenType

from lakehouse_core.domain.query import StatementKind, TemplateId
from lakehouse_core.domain.text import well_formed
from lakehouse_core.sql import limits
from lakehouse_core.sql.kind import is_bare_command, is_statement, kind_of
from lakehouse_core.sql.lex import Code, Lexed, end_of, lex
from lakehouse_core.sql.link import canonical_names, link, start_of
from lakehouse_core.sql.records import Fingerprint, UnparsedReason
from lakehouse_core.sql.render import Spelling, quoted, render
from lakehouse_core.sql.statement import bind
from lakehouse_core.sql.tree import Tree, interval_form, parse

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.scope import Bound

# A parser is a program fed with strangers' text: what it raises beyond its own errors is its
# failure on this text, told in `error`, and no reason to stop.
PARSER_FAILURES = (
    SqlglotError,
    RecursionError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    AssertionError,
)
_SHOWN = 1_000
# sqlglot shows its own classes and tokens in what it says.
_CLASS = re.compile(r"<class '[\w.]*?(\w+)'>")
_TOKEN = re.compile(r"<Token token_type: TokenType\.(\w+), text: (.*?), line: .*?>")


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything the slow path finds out about a text.

    Attributes:
        fingerprint: the answer.
        bound: the bound names; None when the statement was not understood or has none.
        ends: where each literal ends in the text.
        kept: numbers of the literals that are part of the template, and how they are compared.
        lexed: its tokens; None when it has no tree.
        root: its tree.
    """

    fingerprint: Fingerprint
    bound: Bound | None = None
    ends: tuple[int, ...] = ()
    kept: tuple[tuple[int, bool], ...] = ()
    lexed: Lexed | None = None
    root: exp.Expr | None = None


def analyse(text: str, dialect: SqlDialect) -> Analysis:
    """Analyse a text; never raises on account of the text."""
    text = well_formed(text)
    if len(text) > limits.MAX_CHARACTERS:
        # Big statements are inserts and lists: what they begin with tells them apart.
        template = dialect.masker.evened_out(text[:_SHOWN])
        return _failed(f"{template} …", _too_long(text), UnparsedReason.TOO_LONG)
    try:
        lexed = lex(text, dialect)
    except PARSER_FAILURES as error:
        return _failed(
            dialect.masker.evened_out(text),
            f"cannot be split into tokens: {_message(error)}",
            UnparsedReason.UNCLOSED,
        )
    problem = _problem(lexed, dialect)
    if problem is None:
        try:
            return _understood(lexed, dialect)
        except PARSER_FAILURES as error:
            problem = (_message(error), _class_of(error))
    return _failed(render(lexed, Spelling(), dialect), *problem)


def template_id(template: str) -> TemplateId:
    """The id of a template."""
    return TemplateId(hashlib.blake2b(template.encode(), digest_size=8).hexdigest())


def squeezed(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def failed(template: str, error: str, reason: UnparsedReason) -> Fingerprint:
    """The fingerprint of a text that was not understood."""
    return Fingerprint(template_id(template), template, StatementKind.OTHER, error, reason)


def _failed(template: str, error: str, reason: UnparsedReason) -> Analysis:
    return Analysis(failed(template, error, reason))


def _problem(lexed: Lexed, dialect: SqlDialect) -> tuple[str, UnparsedReason] | None:
    if lexed.statements == 0:
        return "empty statement", UnparsedReason.EMPTY
    if lexed.statements > 1:
        message = f"one statement at a time: found {lexed.statements}"
        return message, UnparsedReason.SEVERAL_STATEMENTS
    refusal = limits.refusal(lexed, dialect)
    return None if refusal is None else (refusal, UnparsedReason.TOO_COMPLEX)


def _understood(lexed: Lexed, dialect: SqlDialect) -> Analysis:
    tree = None if lexed.is_command or is_bare_command(lexed) else parse(lexed, dialect)
    if tree is None:
        return _command(lexed, dialect)
    dialect.remember(lexed, tree)
    if not is_statement(tree.root):
        word = lexed.tokens[0].text[:40]
        template = render(lexed, Spelling(), dialect)
        message = f"not a statement: it starts with {word!r}"
        return _failed(template, message, UnparsedReason.NOT_A_STATEMENT)
    bound = bind(tree.root, dialect)
    link(bound, dialect)
    spelling = _spelling(lexed, tree, bound, dialect)
    return _analysis(lexed, tree, bound, render(lexed, spelling, dialect))


def _analysis(lexed: Lexed, tree: Tree | None, bound: Bound | None, template: str) -> Analysis:
    kept = tree.kept if tree else set()
    intervals = tree.intervals if tree else set()
    kind = kind_of(lexed, tree.root if tree else None)
    return Analysis(
        Fingerprint(template_id(template), template, kind),
        bound,
        tuple(end_of(token) for token in lexed.literals),
        tuple((number, number in intervals) for number in sorted(kept)),
        lexed if tree else None,
        tree.root if tree else None,
    )


def _command(lexed: Lexed, dialect: SqlDialect) -> Analysis:
    """A statement without a tree. The text EXECUTE IMMEDIATE runs is its meaning."""
    spelling = Spelling()
    is_dynamic = _is_dynamic(lexed)
    if is_dynamic:
        spelling.literals = {token.start: _verbatim(token) for token in lexed.literals}
    analysis = _analysis(lexed, None, None, render(lexed, spelling, dialect))
    if not is_dynamic:
        return analysis
    kept = tuple((number, False) for number in range(len(lexed.literals)))
    return Analysis(analysis.fingerprint, None, analysis.ends, kept)


def _is_dynamic(lexed: Lexed) -> bool:
    """Whether a text is run that stands in a literal; `EXECUTE name USING 5` runs a known one."""
    if lexed.tokens[0].token_type != TokenType.EXECUTE:
        return False
    is_named = len(lexed.tokens) > 1 and lexed.codes[1] in (Code.VAR, Code.IDENTIFIER)
    return not is_named or lexed.tokens[1].text.upper() == "IMMEDIATE"


def _spelling(lexed: Lexed, tree: Tree, bound: Bound, dialect: SqlDialect) -> Spelling:
    names = tree.names | canonical_names(bound)
    literals: dict[int, str] = {}
    for number in tree.kept:
        token = lexed.literals[number]
        is_interval = number in tree.intervals
        literals[token.start] = (
            quoted(interval_form(token.text)) if is_interval else _verbatim(token)
        )
        names.pop(token.start, None)
    spelling = Spelling(names, _wanting_as(bound), literals, is_parsed=True)
    if Code.HINT in lexed.codes:
        spelling.in_hints = {
            dialect.fold(node.name, False): names[start_of(node)]
            for node, kind in bound.aliases
            if kind in ("table", "cte") and start_of(node) in names
        }
    return spelling


def _wanting_as(bound: Bound) -> set[int]:
    """Aliases that may be written with or without AS."""
    wanting = set()
    for node, kind in bound.aliases:
        parent = node.parent
        if isinstance(parent, exp.TableAlias):
            is_optional = kind == "table" and not isinstance(parent.parent, exp.Lateral)
        else:
            is_optional = isinstance(parent, exp.Alias)
        if is_optional and start_of(node) >= 0:
            wanting.add(start_of(node))
    return wanting


def _verbatim(token: Token) -> str:
    return token.text if token.token_type == TokenType.NUMBER else quoted(token.text)


def _class_of(error: BaseException) -> UnparsedReason:
    if isinstance(error, RecursionError):
        return UnparsedReason.TOO_COMPLEX
    if isinstance(error, TokenError):
        return UnparsedReason.UNCLOSED
    is_syntax = isinstance(error, ParseError)
    return UnparsedReason.SYNTAX if is_syntax else UnparsedReason.PARSER_FAILED


def _message(error: BaseException) -> str:
    """One line: what is wrong, and where."""
    if isinstance(error, RecursionError):
        return "nested too deeply to analyse"
    if isinstance(error, TokenError):
        return squeezed(str(error.__cause__ or error.__context__ or error))[:200]
    if not isinstance(error, ParseError) or not error.errors:
        return f"the parser failed with {type(error).__name__}: {squeezed(str(error))[:200]}"
    first = error.errors[0]
    near = squeezed(str(first.get("highlight") or ""))[:40]
    where = f"line {first.get('line')}, column {first.get('col')}"
    description = _CLASS.sub(r"\1", squeezed(str(first.get("description"))))
    description = _TOKEN.sub(lambda m: "the end" if m[1] == "SENTINEL" else repr(m[2]), description)
    reason = f"{description} at {where}"
    return f"{reason}, near {near!r}" if near else reason


def _too_long(text: str) -> str:
    return f"too much to analyse: {len(text)} characters, limit {limits.MAX_CHARACTERS}"
