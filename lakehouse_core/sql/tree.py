"""The tree of a statement, parsed blind to its literals.

Before parsing, every literal is replaced by a tag with its number. So the tree cannot depend on a
literal's value, and after parsing each tag tells where its literal went. A literal whose place
gives it meaning keeps its text; every other one becomes `?` in the template:

- `GROUP BY 1`, `ORDER BY 1`: the position of a SELECT item;
- table functions, `FROM 'file'`, time travel (`FOR VERSION AS OF 1`): what is read;
- `INTERVAL '3 days'`: the unit inside it (`INTERVAL '? days'`), its number is a literal;
- what the parser swallowed: nobody can tell, so it counts as meaning.

LIMIT, OFFSET, TABLESAMPLE, frames (`ROWS 3 PRECEDING`) and the parameters of a type
(`DECIMAL(10, 2)`) hold plain literals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from lakehouse_core.sql.lex import Code, positions

if TYPE_CHECKING:
    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.lex import Lexed

_TAG = "\ue000"  # a private-use character: no engine's keyword, unit or format contains it
_NUMBER_TAG = ".0250717"  # no integer, or the parser would compute with it; as Decimal shows it
_DIGITS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_MEANINGFUL_PARENTS = (exp.Group, exp.Ordered, exp.Rollup, exp.Cube)
# Parts of a table whose literals say what is read.
_TABLE_PARTS = frozenset({"this", "version", "when", "changes", "rows_from"})
_TABLES = (exp.Table, exp.TableFromRows)
# Nodes that the parser makes from a literal: units, paths.
_NAMED = (exp.Var, exp.JSONPathPart)


@dataclass(slots=True)
class Tree:
    """A parsed statement.

    Attributes:
        root: the tree; literals are tags, but for those with meaning.
        kept: numbers of the literals with meaning.
        intervals: numbers of those among them that stand in an interval.
        names: where an identifier begins in the text → how templates spell it.
    """

    root: exp.Expr
    kept: set[int] = field(default_factory=set)
    intervals: set[int] = field(default_factory=set)
    names: dict[int, str] = field(default_factory=dict)


def parse(lexed: Lexed, dialect: SqlDialect) -> Tree | None:
    """The tree of a single statement; None when sqlglot has no model for it.

    Raises:
        sqlglot.errors.SqlglotError: it does not parse.
    """
    first = lexed.explained
    roots = dialect.parse(lexed.prefix + _tagged(lexed)[first:], lexed.text)
    root = roots[0] if roots else None
    if root is None or isinstance(root, exp.Command):
        return None
    tree = Tree(root)
    seen = _place_literals(tree, lexed, dialect)
    if len(seen) < lexed.codes.count(Code.LITERAL, first):
        parsed = {id(token) for token in lexed.tokens[first:]}
        numbers = {n for n, token in enumerate(lexed.literals) if id(token) in parsed}
        tree.kept |= numbers - seen  # what the parser swallowed
    return tree


def interval_form(text: str) -> str:
    """The text of an interval with its numbers taken out."""
    return " ".join(_DIGITS.sub("?", text).lower().split())


def _tagged(lexed: Lexed) -> list[Token]:
    """The tokens with tags in place of literals; the originals stay as they are."""
    number_of = {id(token): number for number, token in enumerate(lexed.literals)}
    tagged = list(lexed.tokens)
    for index in positions(lexed.codes, Code.LITERAL):
        token = tagged[index]
        is_number = token.token_type == TokenType.NUMBER
        number = number_of[id(token)]
        tagged[index] = Token(
            TokenType.NUMBER if is_number else TokenType.STRING,
            f"{number}{_NUMBER_TAG}" if is_number else f"{_TAG}{number}",
            token.line,
            token.col,
            token.start,
            token.end,
            token.comments,
        )
    return tagged


def _place_literals(tree: Tree, lexed: Lexed, dialect: SqlDialect) -> set[int]:
    """Find every tag; put the text back where it has meaning. Returns the numbers found."""
    seen: set[int] = set()
    names, spell, count = tree.names, dialect.spell, len(lexed.literals)
    for node in _leaves(tree.root):
        text: Any = node.args.get("this")
        if node.__class__ is exp.Identifier:
            meta = node._meta
            if meta and "start" in meta:
                names[meta["start"]] = spell(text, bool(node.args.get("quoted")))
            if text[:1] != _TAG:
                continue
        number = number_of(text, count) if text.__class__ is str else -1
        if number >= 0:
            seen.add(number)
            if _has_meaning(node):
                _keep(tree, node, number, lexed.literals[number].text)
    return seen


def _leaves(root: exp.Expr) -> list[exp.Expr]:
    """Nodes with a text of their own. Faster than sqlglot's walk, which yields every node."""
    leaves: list[exp.Expr] = []
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        kind = node.__class__
        if kind is exp.Identifier or kind is exp.Literal:
            leaves.append(node)
        elif kind is exp.Column:
            for part in node.args.values():
                (leaves if part.__class__ is exp.Identifier else stack).append(part)
        elif kind is list:
            stack.extend(node)
        elif kind is bool or kind is str or kind is exp.Hint or not isinstance(node, exp.Expr):
            continue  # positions within a hint are those of its own text
        else:
            if isinstance(node, _NAMED):
                leaves.append(node)
            stack.extend(node.args.values())
    return leaves


def _keep(tree: Tree, node: exp.Expr, number: int, text: str) -> None:
    """Put the text of a literal back into the tree."""
    tree.kept.add(number)
    node.args["this"] = text
    if node.parent.__class__ is exp.Interval:
        tree.intervals.add(number)
        node.meta["literal"] = number


def number_of(text: str, count: int) -> int:
    """The number of the literal a text stands for; -1 when it is no tag."""
    if text[:1] == _TAG:
        digits = text[1:]
    elif text.endswith(_NUMBER_TAG):
        digits = text[: -len(_NUMBER_TAG)].removeprefix("-").removeprefix("0.")
    else:
        return -1
    number = int(digits) if digits.isdecimal() else -1
    return number if number < count else -1


def _has_meaning(node: exp.Expr) -> bool:
    parent: Any = node.parent
    if isinstance(parent, exp.Interval):
        return parent.args.get("unit") is None
    # A name was made from it: `FROM 'file'`, `AS 'alias'`.
    if isinstance(parent, _MEANINGFUL_PARENTS) or isinstance(node, exp.Identifier):
        return True
    return _is_read(node)


def _is_read(node: exp.Expr) -> bool:
    """Whether a literal says what is read: inside a table function or a time to travel to."""
    parent = node.parent
    while parent is not None and not isinstance(parent, exp.Query):
        if isinstance(parent, _TABLES):
            return node.arg_key in _TABLE_PARTS
        node, parent = parent, parent.parent
    return False
