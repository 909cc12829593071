"""The tree of a statement, parsed blind to its literals.

Before parsing, every literal is replaced by a tag with its number. So the tree cannot depend on a
literal's value, and after parsing each tag tells where its literal went. A literal whose place
gives it meaning keeps its text; every other one becomes `?` in the template:

- `GROUP BY 1`, `ORDER BY 1`: the position of a SELECT item;
- `DECIMAL(10, 2)`: a type's parameters;
- table functions, `FROM 'file'`, time travel (`FOR VERSION AS OF 1`): what is read;
- `INTERVAL '3 days'`: the unit inside it (`INTERVAL '? days'`), its number is a literal;
- what the parser swallowed: nobody can tell, so it counts as meaning.

LIMIT, OFFSET, TABLESAMPLE and frames (`ROWS 3 PRECEDING`) hold plain literals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from lakehouse_core.sql.lex import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.lex import Lexed

_TAG = "\ue000"  # a private-use character: no engine's keyword, unit or format contains it
_NUMBER_TAG = ".25e7"  # not an integer, or the parser would compute with it (array offsets)
_DIGITS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_MEANINGFUL_PARENTS = (exp.Group, exp.Ordered, exp.DataTypeParam, exp.Rollup, exp.Cube)
# Parts of a table whose literals say what is read.
_TABLE_PARTS = ("this", "version", "when", "changes", "rows_from")


@dataclass(slots=True)
class Tree:
    """A parsed statement.

    Attributes:
        root: the tree; literals are tags, but for those with meaning.
        kept: numbers of the literals with meaning.
        intervals: numbers of those among them that stand in an interval.
        identifiers: every identifier that has a position in the text.
    """

    root: exp.Expr
    kept: set[int] = field(default_factory=set)
    intervals: set[int] = field(default_factory=set)
    identifiers: list[exp.Expr] = field(default_factory=list)


def parse(lexed: Lexed, dialect: SqlDialect) -> Tree | None:
    """The tree of a single statement; None when sqlglot has no model for it.

    Raises:
        sqlglot.errors.SqlglotError: it does not parse.
    """
    first = lexed.explained
    texts = [token.text for token in lexed.literals]
    roots = dialect.parse(_tagged(lexed)[first:], lexed.text)
    root = roots[0] if roots else None
    if root is None or isinstance(root, exp.Command):
        return None
    tree = Tree(root)
    seen = _place_literals(tree, texts)
    skipped = _numbers(lexed, lexed.tokens[:first])
    tree.kept |= _numbers(lexed, lexed.tokens) - seen - skipped
    return tree


def interval_form(text: str) -> str:
    """The text of an interval with its numbers taken out."""
    return " ".join(_DIGITS.sub("?", text).lower().split())


def _numbers(lexed: Lexed, tokens: list[Token]) -> set[int]:
    here = {id(token) for token in tokens}
    return {number for number, token in enumerate(lexed.literals) if id(token) in here}


def _tagged(lexed: Lexed) -> list[Token]:
    """The tokens with tags in place of literals; the originals stay as they are."""
    number_of = {id(token): number for number, token in enumerate(lexed.literals)}
    tagged: list[Token] = []
    for token, code in zip(lexed.tokens, lexed.codes, strict=True):
        if code != Code.LITERAL:
            tagged.append(token)
            continue
        is_number = token.token_type == TokenType.NUMBER
        number = number_of[id(token)]
        tagged.append(
            Token(
                TokenType.NUMBER if is_number else TokenType.STRING,
                f"{number}{_NUMBER_TAG}" if is_number else f"{_TAG}{number}",
                token.line,
                token.col,
                token.start,
                token.end,
                token.comments,
            )
        )
    return tagged


def _place_literals(tree: Tree, texts: list[str]) -> set[int]:
    """Find every tag; put the text back where it has meaning. Returns the numbers found."""
    seen: set[int] = set()
    identifiers = tree.identifiers
    stack: list[tuple[exp.Expr, bool]] = [(tree.root, False)]
    while stack:
        node, in_table = stack.pop()
        kind = node.__class__
        if kind is exp.Identifier:
            if node._meta and "start" in node._meta:
                identifiers.append(node)
            if node.args["this"][:1] != _TAG:
                continue
        elif kind is exp.Column:  # most nodes are columns: their children are identifiers
            stack += [(c, in_table) for c in node.args.values() if isinstance(c, exp.Expr)]
            continue
        text = node.args.get("this")
        if text.__class__ is str:
            number = _number_of(text)
            if number is not None and number < len(texts):
                seen.add(number)
                if kind is exp.Interval or in_table or _has_meaning(node):
                    tree.kept.add(number)
                    node.args["this"] = texts[number]
                    if node.parent.__class__ is exp.Interval:
                        tree.intervals.add(number)
        stack.extend(_children(node, kind, in_table=in_table))
    return seen


def _children(
    node: exp.Expr, kind: type[exp.Expr], *, in_table: bool
) -> Iterator[tuple[exp.Expr, bool]]:
    is_table = kind is exp.Table
    is_function = kind is exp.TableFromRows
    for name, value in node.args.items():
        inside = in_table or is_function or (is_table and name in _TABLE_PARTS)
        if value.__class__ is list:
            for child in value:
                if isinstance(child, exp.Expr):
                    yield child, inside
        elif isinstance(value, exp.Expr):
            yield value, inside


def _number_of(text: str) -> int | None:
    if text[:1] == _TAG:
        digits = text[1:]
    elif text.endswith(_NUMBER_TAG):
        digits = text[: -len(_NUMBER_TAG)].removeprefix("0.")
    else:
        return None
    return int(digits) if digits.isdecimal() else None


def _has_meaning(node: exp.Expr) -> bool:
    parent: Any = node.parent
    if isinstance(parent, exp.Interval):
        return parent.args.get("unit") is None
    # A name was made from it: `FROM 'file'`, `AS 'alias'`.
    return isinstance(parent, _MEANINGFUL_PARENTS) or isinstance(node, exp.Identifier)
