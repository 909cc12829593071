"""A procedure and its arguments as the Spark statement that an approver reads.

Names come from catalogs and users: a quote, a dot, a semicolon or a newline in one is data.

>>> identifier("a`b")
'`a``b`'
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.domain.table import TableName

_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\u0000"}
)
_TIMES = frozenset({"older_than"})


def identifier(name: str) -> str:
    """A name as Spark reads it back."""
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    """A string literal of Spark SQL."""
    # Spark fills in `${name}` before it parses anything.
    return "'" + value.translate(_ESCAPES).replace("${", "\\u0024{") + "'"


def table_argument(table: TableName) -> str:
    """The table as procedures take it; with its catalog, so that no namespace is taken for one."""
    return ".".join(identifier(part) for part in (table.catalog, *table.namespace, table.name))


def call_text(catalog: str, procedure: str, arguments: Mapping[str, Any]) -> str:
    """`CALL` of one of Iceberg's procedures."""
    given = ", ".join(f"{name} => {_value(name, one)}" for name, one in arguments.items())
    return f"CALL {identifier(catalog)}.system.{procedure}({given})"


def order_text(table: TableName, sort_order: str) -> str:
    """`ALTER TABLE` that asks writers for an order."""
    return f"ALTER TABLE {table_argument(table)} WRITE ORDERED BY {sort_order}"


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, dict):
        return f"map({', '.join(text(str(one)) for pair in value.items() for one in pair)})"
    if isinstance(value, list | tuple):
        return f"array({', '.join(_value('', one) for one in value)})"
    if name in _TIMES:
        moment = datetime.fromisoformat(value)
        return f"TIMESTAMP '{moment.isoformat(sep=' ', timespec='microseconds')}'"
    return text(str(value))
