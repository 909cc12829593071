"""Table names as the target says them: completed by the session, under the target's catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.translate.records import Setting

# Spark takes the whole of `RENAME TO a.b.c` for a name below the table's own catalog.
_RENAMES_WITHIN_CATALOG = frozenset({"spark"})


def adapt_names(root: exp.Expr, dialect: SqlDialect, setting: Setting) -> bool:
    """Complete and rename the tables of a tree in place; whether anything changed."""
    if not (setting.catalogs or setting.schema or setting.catalog):
        return False
    catalogs = {name.lower(): new for name, new in setting.catalogs.items()}
    changed = False
    for table in list(_tables(root, dialect)):
        changed |= _complete(table, setting)
        changed |= _rename(table, catalogs)
    for column in root.find_all(exp.Column):
        changed |= _rename(column, catalogs)
    return changed


def relative_renames(root: exp.Expr, target: SqlDialect) -> None:
    """Where a new name of a table is relative to its catalog, leave the catalog out of it."""
    if target.name not in _RENAMES_WITHIN_CATALOG:
        return
    for rename in root.find_all(exp.AlterRename):
        owner, table = rename.parent, rename.this
        if isinstance(owner, exp.Alter) and isinstance(table, exp.Table):
            is_same = owner.this.args.get("catalog") == table.args.get("catalog")
            if is_same and table.args.get("db"):
                table.set("catalog", None)


def _tables(root: exp.Expr, dialect: SqlDialect) -> Iterator[exp.Table]:
    """Tables that are no CTE where they stand."""
    stack: list[tuple[Any, frozenset[str]]] = [(root, frozenset())]
    while stack:
        node, ctes = stack.pop()
        if isinstance(node, list):
            stack += [(item, ctes) for item in node]
            continue
        if not isinstance(node, exp.Expr):
            continue
        clause = node.args.get("with_")
        if clause is not None:
            for cte in clause.expressions:
                name = dialect.fold(cte.alias, False)
                seen = ctes | {name} if clause.args.get("recursive") else ctes
                stack.append((cte.this, seen))
                ctes = ctes | {name}
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            is_cte = len(node.parts) == 1 and dialect.fold(node.name, False) in ctes
            if not is_cte:
                yield node
        stack += [(value, ctes) for key, value in node.args.items() if key != "with_"]


def _complete(table: exp.Table, setting: Setting) -> bool:
    parts = len(table.parts)
    if parts == 1 and setting.schema:
        table.set("db", exp.to_identifier(setting.schema))
        parts = 2
    elif parts > 2 or not setting.catalog:
        return False
    if parts == 2 and setting.catalog:
        table.set("catalog", exp.to_identifier(setting.catalog))
    return parts == 2


def _rename(node: exp.Expr, catalogs: dict[str, str]) -> bool:
    catalog = node.args.get("catalog")
    if not isinstance(catalog, exp.Identifier):
        return False
    new = catalogs.get(catalog.name.lower())
    if new is None or new == catalog.name:
        return False
    node.set("catalog", exp.to_identifier(new))
    return True
