"""Reading statements for an engine that has no catalog: which lake tables they name, and where.

The text is kept as it was written; only the names of lake tables are replaced, at their place, by
whatever reads them. Rendering the whole tree again could change what the statement means.

    scan = parse_scan("SELECT kind FROM demo.events", dialect="duckdb", catalog="lake")
    scan.tables                    # (TableName("lake", ("demo",), "events"),)
    scan.render({scan.tables[0]: "iceberg_scan('…')"})
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import Dialect, exp
from sqlglot.errors import SqlglotError

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.domain.table import TableName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NOT_READ_ONLY = "NOT_READ_ONLY"
NOT_A_LAKE_TABLE = "NOT_A_LAKE_TABLE"
SYNTAX_ERROR = "SYNTAX_ERROR"

_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
_WRITES = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Copy, exp.Attach, exp.Detach)
_TABLE_FUNCTIONS = frozenset({"generate_series", "range", "unnest"})


@dataclass(frozen=True, slots=True)
class _Edit:
    """Characters `start` to `end` (exclusive) give way to a table, or to nothing."""

    start: int
    end: int
    table: TableName | None = None
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Scan:
    """A statement that only reads."""

    sql: str
    tables: tuple[TableName, ...]
    edits: tuple[_Edit, ...]

    def render(self, sources: Mapping[TableName, str]) -> str:
        """The statement with each table replaced by the expression that reads it."""
        pieces: list[str] = []
        position = 0
        for edit in self.edits:
            pieces.append(self.sql[position : edit.start])
            if edit.table is not None:
                pieces.append(f"{sources[edit.table]}{edit.alias}")
            position = edit.end
        return "".join([*pieces, self.sql[position:]])


def parse_scan(sql: str, *, dialect: str, catalog: str) -> Scan:
    """Understand a statement of an engine that may read lake tables and nothing else.

    Args:
        sql: one statement.
        dialect: sqlglot's name of its dialect.
        catalog: the catalog's name; tables are `catalog.namespace.table` or `namespace.table`.

    Raises:
        QueryFailedError: it is not one reading statement, or names something that is no lake table;
            says what to do.
    """
    tree = _parse(sql, dialect)
    if isinstance(tree, exp.Command) and tree.name.upper() == "EXPLAIN":
        tokenize = Dialect.get_or_raise(dialect).tokenize
        start = tokenize(sql)[0].end + 1
        if [token.text.upper() for token in tokenize(sql[start:])[:1]] != ["ANALYZE"]:
            tree = _parse(" " * start + sql[start:], dialect)  # every name stays where it is
    _refuse_writes(tree)
    common = {cte.alias_or_name.casefold() for cte in tree.find_all(exp.CTE)}
    edits = [*_table_edits(tree, dialect, catalog, common), *_column_edits(tree)]
    edits.sort(key=lambda edit: edit.start)
    tables = dict.fromkeys(edit.table for edit in edits if edit.table is not None)
    return Scan(sql=sql, tables=tuple(tables), edits=tuple(edits))


def quote_text(text: str, dialect: str) -> str:
    """A string literal."""
    return exp.Literal.string(text).sql(dialect=dialect)


def _parse(sql: str, dialect: str) -> exp.Expr:
    try:
        statements = [tree for tree in sqlglot.parse(sql, dialect=dialect) if tree is not None]
    except (SqlglotError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise QueryFailedError(
            f"The statement cannot be parsed: {reason}", code=SYNTAX_ERROR
        ) from error
    if len(statements) != 1:
        raise QueryFailedError(
            f"Expected one statement, got {len(statements)}: send them one by one",
            code=SYNTAX_ERROR,
        )
    return statements[0]


def _refuse_writes(tree: exp.Expr) -> None:
    root = tree.this if isinstance(tree, exp.Describe) else tree
    if not isinstance(root, _QUERIES):
        raise _not_read_only(_word(tree))
    writing = next(iter(tree.find_all(*_WRITES)), None)
    if writing is not None:
        raise _not_read_only(_word(writing))
    for lateral in tree.find_all(exp.Lateral):
        if not isinstance(lateral.this, exp.Subquery | exp.Unnest):
            raise _not_a_table(lateral.this.name or lateral.this.key)


def _word(tree: exp.Expr) -> str:
    """How people call the statement: INSERT, EXPLAIN, SELECT INTO."""
    if isinstance(tree, exp.Command):
        return str(tree.this).upper()
    return "SELECT INTO" if isinstance(tree, exp.Into) else tree.key.upper()


def _not_read_only(word: str) -> QueryFailedError:
    return QueryFailedError(
        f"{word} is not possible here: this engine reads lake tables only (SELECT, VALUES, "
        "DESCRIBE and EXPLAIN of a query). Send it to an engine that writes, such as Spark or "
        "Trino",
        code=NOT_READ_ONLY,
    )


def _not_a_table(name: str) -> QueryFailedError:
    return QueryFailedError(
        f"{name} is not a table of the lake: name tables as namespace.table or "
        "catalog.namespace.table; functions that read files are not available",
        code=NOT_A_LAKE_TABLE,
    )


def _table_edits(tree: exp.Expr, dialect: str, catalog: str, common: set[str]) -> Iterator[_Edit]:
    for node in tree.find_all(exp.Table):
        if isinstance(node.this, exp.Func):
            is_known = isinstance(node.this, exp.GenerateSeries | exp.Unnest)
            if not is_known and node.this.name.casefold() not in _TABLE_FUNCTIONS:
                raise _not_a_table(f"{node.this.name or node.this.key}()")
            continue
        parts = node.parts
        names = [part.name for part in parts]
        if len(names) == 1 and names[0].casefold() in common:
            continue
        name = _table_name(names, catalog)
        start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
        alias = (
            "" if node.alias else f" AS {exp.to_identifier(name.name, quoted=True).sql(dialect)}"
        )
        yield _Edit(start, end, name, alias)


def _table_name(names: list[str], catalog: str) -> TableName:
    if len(names) > 2 and names[0].casefold() == catalog.casefold():
        return TableName(catalog, tuple(names[1:-1]), names[-1])
    if len(names) == 2:
        return TableName(catalog, (names[0],), names[1])
    raise _not_a_table(".".join(names))


def _column_edits(tree: exp.Expr) -> Iterator[_Edit]:
    """Cut `lake.demo.` off `lake.demo.events.kind`: behind the table's alias it has no meaning.

    `e.payload.x.y` looks the same but goes into a struct: only the names of tables are cut.
    """
    tables = {_folded(node.parts) for node in tree.find_all(exp.Table) if not node.alias}
    for column in tree.find_all(exp.Column):
        *owner, _ = column.parts
        if len(owner) > 1 and _folded(owner) in tables:
            yield _Edit(owner[0].meta["start"], owner[-1].meta["start"])


def _folded(parts: Sequence[exp.Expr]) -> tuple[str, ...]:
    return tuple(part.name.casefold() for part in parts)
