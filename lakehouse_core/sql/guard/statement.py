"""One statement, read and judged: what kind it is, what it uses, what must be changed in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from lakehouse_core.sql.guard import nodes
from lakehouse_core.sql.guard.metadata import is_metadata, table_of
from lakehouse_core.sql.guard.names import is_information_schema
from lakehouse_core.sql.guard.parse import lexed_of, tree_of, unknown_statement
from lakehouse_core.sql.guard.records import NO_RULES, RefusedError, Rule
from lakehouse_core.sql.guard.required import is_filtered
from lakehouse_core.sql.guard.rewrite import Rewriter, RowLimit, row_limit
from lakehouse_core.sql.guard.views import inside_view
from lakehouse_core.sql.guard.walk import forbidden
from lakehouse_core.sql.usage import Defaults

if TYPE_CHECKING:
    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.guard.edits import Edit
    from lakehouse_core.sql.guard.names import Tables
    from lakehouse_core.sql.guard.records import Access, Policy, StatementClass
    from lakehouse_core.sql.guard.walk import Found, TableUse, Walk
    from lakehouse_core.sql.lex import Lexed
    from lakehouse_core.sql.tree import Tree

_WRITES = (exp.Insert, exp.Update, exp.Delete, exp.Merge)
_DEFINES = (exp.Create, exp.Drop, exp.Alter, exp.Comment)
_DEFINED = frozenset({"TABLE", "VIEW", "SCHEMA", "COLUMN"})


@dataclass(frozen=True, slots=True)
class Reading:
    """In whose name and with what knowledge a statement is read."""

    dialect: SqlDialect
    policy: Policy
    tables: Tables
    catalog: str | None
    namespace: tuple[str, ...]

    def complete(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """A table's name with what the session adds to it, in lower case."""
        defaults = Defaults(self.catalog, self.namespace)
        return tuple(part.lower() for part in defaults.parts(parts))


@dataclass(slots=True)
class Judged:
    """A statement that may run.

    Attributes:
        lexed: its tokens.
        edits: what must be changed in its text.
        limit: what its row limit becomes.
        reads: it reads rows, so there is something to estimate.
    """

    lexed: Lexed
    edits: list[Edit] = field(default_factory=list)
    limit: RowLimit | None = None
    reads: bool = True


def read(sql: str, reading: Reading, walk: Walk, user: str | None, depth: int = 0) -> Judged:
    """Judge a statement.

    Args:
        sql: the statement.
        reading: in whose name it is read.
        walk: the lists it is held against.
        user: the value of `:user`.
        depth: how many views were opened on the way to it.

    Raises:
        RefusedError: it may not run.
    """
    lexed = lexed_of(sql, reading.dialect)
    if reading.policy.forbidden_functions:
        _refuse_forbidden(lexed, reading.policy.forbidden_functions)
    if _is_about_a_table(lexed, reading):
        return Judged(lexed, reads=False)
    tree = tree_of(lexed, reading.dialect)
    root = _judged_root(tree, lexed, reading.policy, reading.dialect)
    found = walk.run(root)
    _refuse_recursion(found, reading)
    uses = [(use, _access(use, reading)) for use in found.tables]
    _refuse_unfiltered(uses, reading.policy)
    views = {use: _inside(use, reading, user, depth) for use, _ in uses if not use.is_target}
    judged = Judged(lexed, reads=not lexed.explained)
    if any(access.hides for _, access in uses) or any(views.values()):
        if isinstance(root, exp.Table):
            raise RefusedError(Rule.MASK, f"{tree.root.key.upper()} a query on the table instead")
        _refuse_hidden(found, uses, reading)
        judged.edits = Rewriter(sql, root, reading, user).edits(uses, views)
    if root is tree.root and isinstance(root, nodes.QUERIES) and not lexed.explained:
        at_most = None if depth else reading.policy.max_rows
        judged.limit = row_limit(root, lexed, reading.dialect, at_most)
        if judged.limit is not None:
            judged.edits += judged.limit.around
    return judged


def _inside(use: TableUse, reading: Reading, user: str | None, depth: int) -> str | None:
    return inside_view(
        reading.complete(use.parts),
        reading,
        depth,
        lambda sql, inner, walk: read(sql, inner, walk, user, depth + 1),
    )


def _refuse_forbidden(lexed: Lexed, names: frozenset[str]) -> None:
    """Look for calls by the very name that was written: sqlglot has one class for several names."""
    for token, following in zip(lexed.tokens, [*lexed.tokens[1:], None], strict=True):
        is_call = following is not None and following.token_type == TokenType.L_PAREN
        if is_call and token.text.lower() in names:
            raise forbidden(token.text)


def _is_about_a_table(lexed: Lexed, reading: Reading) -> bool:
    """SHOW and DESCRIBE of a table, whose forms are listed."""
    tokens = lexed.tokens[lexed.explained :]
    if not is_metadata(tokens):
        return False
    is_known, named = table_of(tokens)
    if not is_known:
        if tokens[0].text.upper() == "SHOW":
            raise RefusedError(Rule.STATEMENT, "this form of SHOW is not among the known ones")
        return False  # DESCRIBE of a query
    if named:
        written = tuple(token.text.lower() for token in named)
        parts = reading.complete(written)
        if not is_information_schema(parts):
            reading.tables.access(parts, written, reading.dialect.name)
    return True


def _judged_root(tree: Tree, lexed: Lexed, policy: Policy, dialect: SqlDialect) -> exp.Expr:
    """The root below EXPLAIN, DESCRIBE and SUMMARIZE, if the role may run such a statement."""
    root = tree.root
    if isinstance(root, (exp.Describe, exp.Summarize)):
        extras = {key for key, value in root.args.items() if value and key not in ("this", "table")}
        if extras or not isinstance(root.this, (exp.Table, *nodes.QUERIES)):
            raise unknown_statement(root.key.upper())
        return root.this
    if isinstance(root, nodes.QUERIES):
        return root
    needed: tuple[tuple[tuple[type[exp.Expr], ...], StatementClass], ...] = (
        (_WRITES, "write"),
        (_DEFINES, "define"),
    )
    for types, kind in needed:
        if isinstance(root, types):
            if kind not in policy.statements:
                raise RefusedError(
                    Rule.READ_ONLY,
                    f"{root.key.upper()} is not allowed: the role {policy.role} may only "
                    f"{' and '.join(sorted(policy.statements))}",
                )
            _refuse_definition(root, dialect)
            return root
    raise unknown_statement(lexed.tokens[lexed.explained].text.upper()[:40])


def _refuse_definition(root: exp.Expr, dialect: SqlDialect) -> None:
    """Definitions of schemas, tables and views in the lake's own format only."""
    for node in root.find_all(*_DEFINES):
        kind = str(node.args.get("kind") or "").upper()
        if kind not in _DEFINED or node.args.get("clone") or node.args.get("indexes"):
            raise unknown_statement(f"{node.key.upper()} {kind}".strip())
    for form in root.find_all(exp.FileFormatProperty):
        # In Trino it is the format of an Iceberg table's files, elsewhere that of the table.
        is_of_files = dialect.name == "trino" and isinstance(form.this, exp.Literal)
        if not is_of_files and form.name.lower() != "iceberg":
            raise RefusedError(Rule.STATEMENT, "only tables of the format iceberg are made here")


def _access(use: TableUse, reading: Reading) -> Access:
    """What the role sees of a table.

    Raises:
        RefusedError: nothing, or it writes what it does not see in full.
    """
    if use.node.this is None:  # a schema
        reading.tables.refuse_ungranted(use.parts)
        return NO_RULES
    parts = reading.complete(use.parts)
    if is_information_schema(parts):
        return NO_RULES
    if use.is_defined:
        reading.tables.refuse_ungranted(parts)
        access = reading.policy.access(parts)
    else:
        access = reading.tables.access(parts, use.parts, reading.dialect.name)
    if use.is_target and access.hides:
        raise RefusedError(
            Rule.MASK,
            f"the role {reading.policy.role} does not see all of {'.'.join(parts)} and may not "
            "change it",
        )
    return access


def _refuse_unfiltered(uses: list[tuple[TableUse, Access]], policy: Policy) -> None:
    for use, access in uses:
        for columns in access.required_filter:
            if not use.is_target and not is_filtered(use.node, columns):
                raise RefusedError(
                    Rule.REQUIRED_FILTER,
                    f"{'.'.join(use.parts)} may be read by the role {policy.role} only with a "
                    f"condition on {' or '.join(columns)} in the same SELECT",
                )


def _refuse_recursion(found: Found, reading: Reading) -> None:
    """Within a recursive CTE its own name may be the table's: engines differ."""
    for name in found.recursive:
        if reading.policy.access(reading.complete((name,))).hides:
            raise RefusedError(
                Rule.MASK, f"a recursive CTE has the name of the masked table {name}: rename it"
            )


def _refuse_hidden(found: Found, uses: list[tuple[TableUse, Access]], reading: Reading) -> None:
    """Say in words what the engine would only call an unknown column."""
    seen: set[str] = set()
    hidden: dict[str, str] = {}
    for use, access in uses:
        parts = reading.complete(use.parts)
        relation = reading.tables.relation(parts)
        columns = {column.lower() for column in relation.columns} if relation else set()
        seen |= {column for column in columns if access.sees(column)}
        hidden |= {
            column: ".".join(parts)
            for column in (columns | access.denied)
            if not access.sees(column)
        }
    for column in found.columns & (hidden.keys() - seen):
        raise RefusedError(
            Rule.COLUMN_GRANT,
            f"the column {column} of {hidden[column]} is not granted to the role "
            f"{reading.policy.role}",
        )
