"""What a statement does, from its tree or, without one, from its first word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from lakehouse_core.domain.query import StatementKind

if TYPE_CHECKING:
    from lakehouse_core.sql.lex import Lexed

_BY_NODE: tuple[tuple[tuple[type[exp.Expr], ...], StatementKind], ...] = (
    ((exp.Query, exp.Values, exp.Table, exp.Pivot, exp.From), StatementKind.SELECT),
    ((exp.Insert, exp.MultitableInserts), StatementKind.INSERT),
    ((exp.Update,), StatementKind.UPDATE),
    ((exp.Delete, exp.TruncateTable), StatementKind.DELETE),
    ((exp.Merge,), StatementKind.MERGE),
    ((exp.Create,), StatementKind.CREATE),
    ((exp.Alter, exp.Comment), StatementKind.ALTER),
    ((exp.Drop,), StatementKind.DROP),
    ((exp.Describe, exp.Show, exp.Summarize), StatementKind.DESCRIBE),
    (
        (
            exp.Set,
            exp.Use,
            exp.Pragma,
            exp.Transaction,
            exp.Commit,
            exp.Rollback,
            exp.Attach,
            exp.Detach,
        ),
        StatementKind.SESSION,
    ),
)

_BY_WORD: dict[str, StatementKind] = {
    "SELECT": StatementKind.SELECT,
    "WITH": StatementKind.SELECT,
    "INSERT": StatementKind.INSERT,
    "UPDATE": StatementKind.UPDATE,
    "DELETE": StatementKind.DELETE,
    "TRUNCATE": StatementKind.DELETE,
    "MERGE": StatementKind.MERGE,
    "CREATE": StatementKind.CREATE,
    "ALTER": StatementKind.ALTER,
    "COMMENT": StatementKind.ALTER,
    "DROP": StatementKind.DROP,
    "CALL": StatementKind.CALL,
    "EXEC": StatementKind.CALL,
    "EXECUTE": StatementKind.CALL,
    "EXPLAIN": StatementKind.EXPLAIN,
    "DESC": StatementKind.DESCRIBE,
    "DESCRIBE": StatementKind.DESCRIBE,
    "SHOW": StatementKind.DESCRIBE,
    "SUMMARIZE": StatementKind.DESCRIBE,
} | dict.fromkeys(
    (
        "SET",
        "RESET",
        "UNSET",
        "USE",
        "PRAGMA",
        "START",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "ATTACH",
        "DETACH",
        "LOAD",
        "INSTALL",
        "PREPARE",
        "DEALLOCATE",
    ),
    StatementKind.SESSION,
)

_BARE = frozenset({"CHECKPOINT", "VACUUM", "ANALYZE", "ABORT"})
# An expression alone parses, but no engine takes it for a statement.
_EXPRESSIONS = (exp.Condition, exp.Alias, exp.Aliases, exp.Tuple, exp.Identifier, exp.DataType)


def kind_of(lexed: Lexed, root: exp.Expr | None) -> StatementKind:
    """The kind of a statement."""
    if lexed.explained:
        return StatementKind.EXPLAIN
    if root is None:
        return _BY_WORD.get(lexed.tokens[0].text.upper(), StatementKind.OTHER)
    for nodes, kind in _BY_NODE:
        if isinstance(root, nodes):
            return kind
    return StatementKind.OTHER


def is_bare_command(lexed: Lexed) -> bool:
    """Whether the text is one word that an engine takes for a statement and sqlglot for a name."""
    return len(lexed.tokens) == 1 and lexed.tokens[0].text.upper() in _BARE


def is_statement(root: exp.Expr) -> bool:
    """Whether a tree is a statement and not a mere expression or the bare word SELECT."""
    if isinstance(root, exp.Select):
        return bool(root.expressions or root.args.get("from_"))
    return isinstance(root, exp.Query) or not isinstance(root, _EXPRESSIONS)
