"""One pass over the tree: every node is on a list, every table is found with what it is.

Names of CTEs are followed by their scope, because `WITH customers AS (SELECT * FROM customers)`
reads the table inside and the CTE outside. No recursion: a chain of a thousand ANDs is a deep tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lakehouse_core.sql.guard import functions, nodes
from lakehouse_core.sql.guard.records import RefusedError, Rule
from lakehouse_core.sql.listing import node_types

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.guard.records import Policy

_PLAIN, _FUNCTION, _NAMED, _TABLE, _ROWS, _DOT, _COLUMN = range(7)
_NAMED_FUNCTIONS = (exp.Anonymous, exp.AnonymousAggFunc)
_LEAVES = node_types(
    "Literal Identifier Var Null Boolean Star Placeholder HexString BitString Hint JoinHint"
)
_ACTIONS: dict[type[exp.Expr], int] = {
    **dict.fromkeys(nodes.STRUCTURE | nodes.VALUES | nodes.OPERATORS, _PLAIN),
    **dict.fromkeys(functions.CLASSES, _FUNCTION),
    **dict.fromkeys(_NAMED_FUNCTIONS, _NAMED),
    **dict.fromkeys(_LEAVES, _PLAIN),
    exp.Column: _COLUMN,
    exp.Table: _TABLE,
    exp.Lateral: _ROWS,
    exp.TableFromRows: _ROWS,
    exp.Dot: _DOT,
    **dict.fromkeys((exp.And, exp.Or, exp.Xor, exp.Pow, exp.RegexpLike, exp.Collate), _PLAIN),
}
# What a walk need not look at: nodes without children that are listed, and what is no node.
_PASSED = frozenset((*_LEAVES, str, bool, int, Decimal, type(None), exp.DType))
# Parts of a table that change what is read beyond its name.
_TABLE_EXTRAS = ("hints", "system_time", "format", "pattern", "partition", "changes", "rows_from")
_WRITTEN = (exp.Insert, exp.Update, exp.Delete, exp.Merge)
_DEFINED = (exp.Create, exp.Drop, exp.Alter, exp.AlterRename, exp.Comment)


@dataclass(frozen=True, slots=True, eq=False)
class TableUse:
    """A table that is no CTE.

    Attributes:
        node: where it stands.
        parts: its name as written, folded to lower case.
        is_written: its rows are written, not read.
        is_defined: it is made, changed or dropped itself, and need not exist.
    """

    node: exp.Table
    parts: tuple[str, ...]
    is_written: bool
    is_defined: bool

    @property
    def is_target(self) -> bool:
        """Whether it is changed, not read."""
        return self.is_written or self.is_defined


@dataclass(slots=True)
class Found:
    """What a walk found."""

    tables: list[TableUse] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    recursive: set[str] = field(default_factory=set)  # names of CTEs that may read themselves


class Walk:
    """Walks statements of one dialect under one policy."""

    def __init__(self, dialect: SqlDialect, policy: Policy) -> None:
        self._fold = dialect.fold
        self._names = functions.harmless_names(dialect.name) | policy.functions
        self._forbidden = policy.forbidden_functions
        self._actions = dict(_ACTIONS)
        for allowed, types in (("write", nodes.WRITING), ("define", nodes.DEFINING)):
            if allowed in policy.statements:
                self._actions.update(dict.fromkeys(types, _PLAIN))
        self._by_action: dict[int, Callable[[Any, Found], None]] = {
            _FUNCTION: self._function,
            _NAMED: self._named,
            _ROWS: self._rows,
            _DOT: self._dot,
            _COLUMN: self._column,
        }

    def run(self, root: exp.Expr) -> Found:
        """Walk a tree.

        Raises:
            RefusedError: a node, function or table is on no list.
        """
        found = Found()
        actions, special = self._actions, self._by_action
        stack: list[tuple[Any, frozenset[str]]] = [(root, frozenset())]
        while stack:
            node, ctes = stack.pop()
            if node.__class__ is list:
                stack += [(item, ctes) for item in node if item.__class__ not in _PASSED]
                continue
            action = actions.get(node.__class__)
            if action is None:
                raise _not_listed(node)
            if action == _TABLE:
                self._table(node, ctes, found)
            elif action != _PLAIN:
                special[action](node, found)
            args = node.args
            if args.get("with_") is not None:
                ctes = self._ctes(args["with_"], ctes, found, stack)
            stack += [
                (child, ctes)
                for key, value in args.items()
                if value.__class__ not in _PASSED and key != "with_"
                for child in (value if value.__class__ is list else (value,))
                if child.__class__ not in _PASSED
            ]
        return found

    def _column(self, node: exp.Expr, found: Found) -> None:
        found.columns.add(node.name.lower())

    def _ctes(
        self,
        clause: exp.Expr,
        ctes: frozenset[str],
        found: Found,
        stack: list[tuple[Any, frozenset[str]]],
    ) -> frozenset[str]:
        """The CTEs visible behind a WITH; each sees those before it."""
        if clause.args.get("search") is not None:
            stack.append((clause.args["search"], ctes))
        for cte in clause.expressions:
            if cte.__class__ is not exp.CTE:
                raise _not_listed(cte)
            alias = cte.args.get("alias")
            if alias is None or alias.this is None:
                raise RefusedError(Rule.SYNTAX, "a WITH item has no name")
            name = self._fold(alias.this.name, bool(alias.this.args.get("quoted")))
            seen = ctes
            if clause.args.get("recursive"):
                found.recursive.add(name.lower())
                seen = ctes | {name}
            stack.append((cte.this, seen))
            stack.append((alias, ctes))
            ctes = ctes | {name}
        return ctes

    def _table(self, node: exp.Table, ctes: frozenset[str], found: Found) -> None:
        name = node.this
        if any(node.args.get(key) for key in _TABLE_EXTRAS):
            raise RefusedError(Rule.SYNTAX, "a table is read in a way the guard does not know")
        if isinstance(name, exp.Func):
            self._row_source(name)
            return
        parts = node.parts
        if not parts or any(part.__class__ is not exp.Identifier for part in parts):
            raise RefusedError(Rule.SYNTAX, "a table's name is not a plain name")
        if any("start" not in part.meta for part in parts):
            raise RefusedError(Rule.FILE, "a text in place of a table reads a file")
        if len(parts) == 1 and name is not None:
            folded = self._fold(name.name, bool(name.args.get("quoted")))
            if folded in ctes:
                return
        lowered = tuple(part.name.lower() for part in parts)
        found.tables.append(TableUse(node, lowered, _is(node, _WRITTEN), _is(node, _DEFINED)))

    def _row_source(self, node: exp.Expr) -> None:
        """A function in FROM."""
        if isinstance(node, _NAMED_FUNCTIONS):
            is_allowed = str(node.this).lower() in functions.TABLE_NAMES
        else:
            is_allowed = node.__class__ in functions.TABLE_CLASSES
        if not is_allowed:
            raise RefusedError(
                Rule.TABLE_FUNCTION,
                f"the table function {_name_of(node)} is not allowed; read tables of the catalog",
            )

    def _rows(self, node: exp.Expr, found: Found) -> None:
        """LATERAL, or TABLE(…)."""
        del found
        inner = node.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Subquery):
            return
        self._row_source(inner)

    def _function(self, node: exp.Func, found: Found) -> None:
        """A function sqlglot knows, perhaps written as an operator."""
        del found
        if self._forbidden and any(n.lower() in self._forbidden for n in node.sql_names()):
            raise forbidden(node.sql_names()[0])

    def _named(self, node: exp.Expr, found: Found) -> None:
        del found
        name = str(node.this).lower() if isinstance(node.this, str) else ""
        if not name or name not in self._names:
            raise RefusedError(
                Rule.FUNCTION, f"the function {_name_of(node)} is not among the allowed ones"
            )

    def _dot(self, node: exp.Expr, found: Found) -> None:
        """`a.b`: into a struct, never a function of some schema."""
        del found
        if not isinstance(node.expression, (exp.Identifier, exp.Star, exp.Literal)):
            raise RefusedError(
                Rule.FUNCTION,
                f"the function {_name_of(node.expression)} is called through a name before it",
            )


def _is(node: exp.Table, types: tuple[type[exp.Expr], ...]) -> bool:
    """Whether a table is what a statement of some kind changes."""
    target: Any = node.parent if node.parent.__class__ is exp.Schema else node
    return isinstance(target.parent, types) and target.arg_key in ("this", "tables")


def _not_listed(node: object) -> RefusedError:
    if isinstance(node, exp.Func):
        return RefusedError(
            Rule.FUNCTION, f"the function {_name_of(node)} is not among the allowed ones"
        )
    what = node.key if isinstance(node, exp.Expr) else type(node).__name__
    return RefusedError(Rule.SYNTAX, f"{what} is not among what statements may hold")


def forbidden(name: str) -> RefusedError:
    """The refusal of a function that the configuration names."""
    return RefusedError(Rule.FUNCTION, f"the function {name.upper()} is forbidden by configuration")


def _name_of(node: exp.Expr) -> str:
    name = node.this if isinstance(node, _NAMED_FUNCTIONS) else node.key
    return str(name).upper()[:64]
