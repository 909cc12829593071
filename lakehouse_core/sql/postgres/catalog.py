"""Questions about PostgreSQL's system catalog, turned into DuckDB's words.

Only a statement that reads nothing but the system catalog is turned, or one without a table that
calls a function only PostgreSQL has (`version()`, `pg_backend_pid()`).
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakehouse_core.sql.guard.functions import TABLE_CLASSES, harmless_names

TARGET = "duckdb"
SCHEMAS = ("pg_catalog", "information_schema")
# Tables that catalog.sql keeps itself: DuckDB has none of the name, or one that lacks columns.
OWN = frozenset(
    [
        "pg_class",
        "pg_namespace",
        "pg_attribute",
        "pg_tables",
        "pg_views",
        "pg_proc",
        "pg_settings",
        "pg_database",
        "pg_roles",
        "pg_user",
        "pg_authid",
        "pg_auth_members",
        "pg_am",
        "pg_language",
        "pg_extension",
        "pg_policy",
        "pg_inherits",
        "pg_statistic_ext",
        "pg_publication",
        "pg_publication_rel",
        "pg_publication_namespace",
        "pg_trigger",
        "pg_rewrite",
        "pg_foreign_table",
        "pg_foreign_server",
        "pg_foreign_data_wrapper",
        "pg_collation",
        "pg_stat_activity",
        "pg_partitioned_table",
        "pg_shdescription",
        "pg_range",
        "pg_opclass",
        "pg_operator",
        "pg_cast",
        "pg_event_trigger",
        "pg_locks",
        "pg_stat_user_tables",
        "pg_matviews",
        "pg_user_mapping",
        "pg_default_acl",
        "pg_seclabel",
        "pg_conversion",
        "pg_aggregate",
        "pg_ts_config",
        "pg_available_extensions",
        "pg_stat_ssl",
        "pg_replication_slots",
        "pg_prepared_xacts",
        "pg_attrdef",
        "pg_tablespace",
        "pg_timezone_names",
    ]
)
# Tables of things a lake has none of; what is read from them, or joined with them, is nothing.
EMPTY = frozenset(
    [
        "pg_auth_members",
        "pg_extension",
        "pg_available_extensions",
        "pg_policy",
        "pg_inherits",
        "pg_statistic_ext",
        "pg_publication",
        "pg_publication_rel",
        "pg_publication_namespace",
        "pg_subscription",
        "pg_trigger",
        "pg_event_trigger",
        "pg_rewrite",
        "pg_foreign_table",
        "pg_foreign_server",
        "pg_foreign_data_wrapper",
        "pg_user_mapping",
        "pg_collation",
        "pg_conversion",
        "pg_partitioned_table",
        "pg_opclass",
        "pg_operator",
        "pg_cast",
        "pg_ts_config",
        "pg_locks",
        "pg_matviews",
        "pg_default_acl",
        "pg_seclabel",
        "pg_replication_slots",
        "pg_prepared_xacts",
        "pg_attrdef",
        "pg_enum",
    ]
)
_OWN_INFORMATION = frozenset({"schemata", "tables", "columns", "views"})
_FUNCTIONS = frozenset(
    [
        "version",
        "current_version",
        "current_database",
        "current_schema",
        "current_schemas",
        "current_catalog",
        "current_user",
        "session_user",
        "user",
        "current_role",
        "current_setting",
        "set_config",
        "inet_server_addr",
        "inet_server_port",
        "inet_client_addr",
        "txid_current",
        "obj_description",
        "col_description",
        "format_type",
        "has_table_privilege",
        "has_schema_privilege",
        "has_database_privilege",
        "to_regclass",
        "to_regtype",
    ]
)
_OURS = ("pg_", "_pg_", "has_")
_ROW_SOURCES = frozenset({"unnest", "generate_series", "generate_subscripts", "current_schemas"})
_KNOWN = (harmless_names("postgres") | _FUNCTIONS | _ROW_SOURCES) | {
    "shobj_description",
    "quote_nullable",
    "array_ndims",
    "aclexplode",
    "any",
    "all",
    "some",
}
_REGISTERED = frozenset({"regclass", "regtype", "regproc", "regprocedure", "regnamespace",
                         "regrole", "regoper", "regconfig"})  # fmt: skip
_TEXTS = frozenset({"name", "char", "aclitem", "xid", "pg_node_tree", "xml", "cstring"})


def turned(tree: exp.Expr) -> str | None:
    """The statement for the mirror; None: it is about something else."""
    if not isinstance(tree, exp.Query) or tree.find(exp.DML, exp.DDL, exp.Command, exp.Into):
        return None
    common = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    tables = [
        one
        for one in tree.find_all(exp.Table)
        if isinstance(one.this, exp.Identifier) and (one.db or one.name.lower() not in common)
    ]
    if tables:
        if not all(_is_system(one) for one in tables):
            return None
    elif not any(_is_system_call(one) for one in tree.find_all(exp.Func, exp.Column)):
        return None
    if not all(_is_computing(one) for one in tree.find_all(exp.Anonymous, exp.Table, exp.Lateral)):
        return None
    try:
        return _turned(tree.copy()).sql(dialect=TARGET)
    except (SqlglotError, RecursionError):
        return None


def names_of_nothing(tree: exp.Expr) -> list[str] | None:
    """The columns of a question whose answer has no rows, whatever else it says; else None."""
    if isinstance(tree, exp.SetOperation):
        right = names_of_nothing(tree.expression)
        return None if right is None else names_of_nothing(tree.this)
    if not isinstance(tree, exp.Select) or any(
        call.parent_select is tree for call in tree.find_all(exp.AggFunc)
    ):
        return None  # a count of nothing is a row
    source = tree.args.get("from_") or tree.args.get("from")
    joined = [one.this for one in tree.args.get("joins") or () if not one.side]
    read = [*([source.this] if source is not None else []), *joined]
    if not any(isinstance(one, exp.Table) and one.name.lower() in EMPTY for one in read):
        return None
    return [one.alias_or_name or _function_name(one) or "?column?" for one in tree.expressions]


def _is_system(table: exp.Table) -> bool:
    schema, name = table.db.lower(), table.name.lower()
    return schema in SCHEMAS or (not schema and name.startswith("pg_"))


def _is_system_call(node: exp.Expr) -> bool:
    name = _function_name(node)
    return name in _FUNCTIONS or name.startswith("pg_")


def _is_computing(node: exp.Expr) -> bool:
    """Whether a call computes on names and nothing else: no files, no settings, no endless rows."""
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        return name in _KNOWN or name.startswith(_OURS)
    source = node.this
    if isinstance(source, exp.Dot):
        source = source.expression
    if not isinstance(source, exp.Func) or source.__class__ in TABLE_CLASSES:
        return True
    name = _function_name(source)
    return name in _ROW_SOURCES or name.startswith(_OURS)


_VERSION = "current_version"  # what sqlglot calls version()


def _function_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, exp.Column):  # current_user and session_user need no parentheses
        name = node.name.lower()
        return name if not node.table and name in ("session_user", "user", "current_role") else ""
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def _turned(tree: exp.Expr) -> exp.Expr:
    _name_columns(tree)
    for node in reversed(list(tree.walk())):  # children before their parents
        for turn in _TURNS:
            other = turn(node)
            if other is not node:
                node.replace(other)
                break
    return tree


def _name_columns(tree: exp.Expr) -> None:
    """PostgreSQL calls the column of an unnamed call by the function's name."""
    if not isinstance(tree, exp.Select):
        return
    for one in tree.expressions:
        call = one.expression if isinstance(one, exp.Dot) else one
        name = _function_name(call.this if isinstance(call, exp.Cast) else call)
        if name:
            told = "version" if name == _VERSION else name
            one.replace(exp.alias_(one.copy(), told, quoted=True))


def _table(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Table) or not _is_system(node):
        return node
    schema, name = node.db.lower(), node.name.lower()
    if schema == "information_schema":
        own = f"own_is_{name}" if name in _OWN_INFORMATION else None
    else:
        own = f"own_{name}" if name in OWN else None
    if own is None:
        node.set("catalog", None)
        return node
    place = exp.table_(own, db="main")
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name))
    place.set("alias", alias)
    place.set("joins", node.args.get("joins"))
    return place


def _fewer_arguments(node: exp.Expr) -> exp.Expr:
    """DuckDB's own `pg_get_expr` does not know how to be pretty."""
    if isinstance(node, exp.Anonymous) and node.name.lower() == "pg_get_expr":
        node.set("expressions", node.expressions[:2])
    return node


def _table_function(node: exp.Expr) -> exp.Expr:
    """`FROM pg_catalog.unnest(x)`."""
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
        node.set("db", None)
    return node


def _qualified_call(node: exp.Expr) -> exp.Expr:
    """`pg_catalog.f(x)` → `f(x)`: functions of the mirror are in its own schema."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        owner = node.this
        if isinstance(owner, exp.Identifier | exp.Column) and owner.name.lower() in SCHEMAS:
            return node.expression
    return node


def _person(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.CurrentUser | exp.SessionUser) or _function_name(node) in (
        "session_user", "user", "current_role", "current_user",
    ):  # fmt: skip
        return _variable("lakehelm_user")
    if isinstance(node, exp.CurrentSchema) or _function_name(node) == "current_schema":
        return _variable("lakehelm_schema")
    return node


def _variable(name: str) -> exp.Expr:
    return exp.Anonymous(this="getvariable", expressions=[exp.Literal.string(name)])


def _version(node: exp.Expr) -> exp.Expr:
    is_version = isinstance(node, exp.Func) and _function_name(node) in ("version", _VERSION)
    return exp.Anonymous(this="own_version") if is_version else node


def _operator(node: exp.Expr) -> exp.Expr:
    """`a OPERATOR(pg_catalog.~) b`."""
    if not isinstance(node, exp.Operator):
        return node
    sign = str(node.args["operator"]).rpartition(".")[2].strip("() ")
    left, right = node.this, node.expression
    if sign in ("~", "~*", "!~", "!~*"):
        found: exp.Expr = exp.RegexpLike(this=left, expression=right)
        return exp.not_(found) if sign.startswith("!") else found
    if sign in ("~~", "!~~"):
        found = exp.Like(this=left, expression=right)
        return exp.not_(found) if sign.startswith("!") else found
    return exp.EQ(this=left, expression=right) if sign == "=" else node


def _collation(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Collate) else node


def _cast(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Cast):
        return node
    said = node.to.sql(dialect="postgres").lower()
    kind = said.rpartition(".")[2].strip('"')
    if kind.endswith("[]"):
        return exp.cast(node.this, "VARCHAR[]") if kind[:-2] in _TEXTS | _REGISTERED else node
    if kind == "regclass" and isinstance(node.this, exp.Literal):
        return exp.Anonymous(this="to_regclass", expressions=[node.this])
    if kind in _REGISTERED or kind in _TEXTS:
        return exp.cast(node.this, "VARCHAR")
    if kind == "oid":
        return exp.cast(node.this, "BIGINT")
    is_qualified = said.startswith("pg_catalog.")
    return exp.cast(node.this, kind, dialect="postgres") if is_qualified else node


_TURNS = (
    _table,
    _table_function,
    _fewer_arguments,
    _qualified_call,
    _operator,
    _collation,
    _person,
    _version,
    _cast,
)


def quoted(name: str) -> str:
    """A name as the mirror takes it."""
    return exp.to_identifier(name, quoted=True).sql(dialect=TARGET)
