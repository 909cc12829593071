"""The required filter: where a large table is read, one of its columns must be restricted there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPARISONS = (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between, exp.NullSafeEQ)


def is_filtered(table: exp.Table, columns: tuple[str, ...]) -> bool:
    """Whether the SELECT that reads a table restricts one of its columns by a constant.

    A condition of the WHERE clause or of an inner join counts when nothing but AND stands around
    it and no other column in it. `day = day` or `day IS NOT NULL` restricts nothing.
    """
    select = _reader(table)
    if select is None:
        return False
    name = table.alias_or_name.lower()
    is_alone = len(list(_sources(select))) == 1
    wanted = {column.lower() for column in columns}
    return any(
        _restricts(condition, wanted, name, is_alone=is_alone) for condition in _conjuncts(select)
    )


def _reader(table: exp.Table) -> exp.Select | None:
    """The SELECT in whose FROM clause a table stands."""
    node: Any = table.parent
    while isinstance(node, (exp.From, exp.Join, exp.Table, exp.Paren, exp.Subquery)):
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            return None
        node = node.parent
    return node if isinstance(node, exp.Select) else None


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    clause = select.args.get("from_")
    if clause is not None:
        yield clause.this
    yield from select.args.get("joins") or ()
    yield from select.args.get("laterals") or ()


def _conjuncts(select: exp.Select) -> Iterator[exp.Expr]:
    stack: list[Any] = [select.args["where"].this] if select.args.get("where") else []
    for join in select.args.get("joins") or ():
        is_inner = not join.args.get("side") and join.args.get("kind") in (None, "", "INNER")
        if is_inner and join.args.get("on") is not None:
            stack.append(join.args["on"])
    while stack:
        node = stack.pop()
        if isinstance(node, exp.And):
            stack += [node.this, node.expression]
        elif isinstance(node, exp.Paren):
            stack.append(node.this)
        else:
            yield node


def _restricts(condition: exp.Expr, wanted: set[str], name: str, *, is_alone: bool) -> bool:
    if not isinstance(condition, _COMPARISONS) or condition.find(exp.Query) is not None:
        return False
    columns = list(condition.find_all(exp.Column))
    if not columns or len({column.sql() for column in columns}) != 1:
        return False
    if len(columns) > 1 and isinstance(condition, exp.Binary):
        return False  # day = day
    column = columns[0]
    owner = column.table.lower()
    return column.name.lower() in wanted and (owner == name or (not owner and is_alone))
