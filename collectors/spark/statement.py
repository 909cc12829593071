"""The SQL inside a Spark Connect operation.

Spark logs the plan of an operation as protobuf text (`sql { query: "SELECT …" }`). Only its shape
is needed: which node is at the root, and which SQL texts and leaves are in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ESCAPES = {
    "n": 10,
    "t": 9,
    "r": 13,
    "a": 7,
    "b": 8,
    "f": 12,
    "v": 11,
    "\\": 92,
    "'": 39,
    '"': 34,
    "?": 63,
}
_TABLELESS_LEAVES = frozenset(
    {"local_relation", "cached_local_relation", "chunked_cached_local_relation", "catalog"}
)
_LEAVES = _TABLELESS_LEAVES | {"sql", "read", "range", "cached_remote_relation"}
_SQL_ENTRY = "org.apache.spark.sql.hive.thriftserver."
_SQL_FIELDS = frozenset({("sql", "query"), ("sql_command", "sql")})  # now, and before Spark 4
# What Spark puts behind a text of more than 65,535 characters when it cuts it.
_CUT = re.compile(r"\[truncated\(size=([\d.,\s\u00a0\u202f']+)\)\]$")
# Fields of the request's top level that say nothing about the kind of work.
_ENVELOPE = frozenset({"common"})


@dataclass(frozen=True, slots=True)
class Statement:
    """What an operation asks for.

    Attributes:
        sql: its SQL text; None when it has none, or several that the client combined. One that
            Spark cut is left so that it cannot be taken for a whole statement: it does not parse.
        is_command: it does something (`spark.sql(…)`, a write); a relation is only fetched.
        is_tableless: it reads nothing but rows the client itself sent, or names of the catalog.
    """

    sql: str | None
    is_command: bool
    is_tableless: bool


def parse_statement(text: str) -> Statement:
    """Understand a `statementText`; a text that is cut off is understood as far as it goes."""
    root: str | None = None
    queries: list[str] = []
    leaves: set[str] = set()
    path: list[str] = []
    for name, value in _fields(text):
        if name == "}":
            if path:
                path.pop()
            continue
        if not path and root is None and name not in _ENVELOPE:
            root = name
        if value is None:
            path.append(name)
            if name in _LEAVES:
                leaves.add(name)
        elif path and (path[-1], name) in _SQL_FIELDS and value not in queries:
            queries.append(value)
    return Statement(
        sql=_marked(queries[0]) if len(queries) == 1 else None,
        is_command=root is not None and (root.endswith("_command") or root in _COMMANDS),
        is_tableless=bool(leaves) and leaves <= _TABLELESS_LEAVES,
    )


def _marked(sql: str) -> str:
    cut = _CUT.search(sql)
    if cut is None:
        return sql
    size = "".join(filter(str.isdigit, cut.group(1)))
    # On a line of its own: a text that was cut inside a comment would end well otherwise.
    return f"{sql[: cut.start()]}\n[cut by Spark: of {size} characters"


def is_sql_entry(call_stack: str) -> bool:
    """Whether an execution came in as SQL text (spark-sql, Thrift), which is its description then.

    Elsewhere the description is a call site, or whatever the job's author wrote.
    """
    return _SQL_ENTRY in call_stack


def request_field(text: str, wanted: str) -> str | None:
    """A text at the top level of a logged request, e.g. its `client_type`."""
    depth = 0
    for name, value in _fields(text):
        if value is None:
            depth += -1 if name == "}" else 1
        elif depth == 0 and name == wanted:
            return value
    return None


_COMMANDS = frozenset(
    {
        "register_function",
        "write_operation",
        "write_operation_v2",
        "create_dataframe_view",
        "write_stream_operation_start",
        "register_table_function",
        "register_data_source",
        "merge_into_table_command",
    }
)


def _fields(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield (name, None) for `name {`, ("}", None), and (name, value) for `name: value`."""
    position = 0
    end = len(text)
    while position < end:
        char = text[position]
        if char == "}":
            yield "}", None
            position += 1
        elif char.isalnum() or char == "_":
            start = position
            while position < end and (text[position].isalnum() or text[position] == "_"):
                position += 1
            name = text[start:position]
            position = _spaces(text, position)
            if text.startswith("{", position):
                yield name, None
                position += 1
            elif text.startswith(":", position):
                value, position = _value(text, _spaces(text, position + 1))
                yield name, value
        else:
            position += 1


def _spaces(text: str, position: int) -> int:
    while position < len(text) and text[position] == " ":
        position += 1
    return position


def _value(text: str, position: int) -> tuple[str, int]:
    if not text.startswith('"', position):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        return text[position:end], end
    raw = bytearray()
    position += 1
    while position < len(text) and text[position] != '"':
        if text[position] == "\\" and position + 1 < len(text):
            byte, position = _escaped(text, position + 1)
            raw.append(byte)
        else:
            raw += text[position].encode()
            position += 1
    return raw.decode("utf-8", "replace"), position + 1


def _escaped(text: str, position: int) -> tuple[int, int]:
    r"""One byte written as `\n`, `\303` or `\xc3`."""
    char = text[position]
    if char in "01234567":
        end = position
        while end < min(position + 3, len(text)) and text[end] in "01234567":
            end += 1
        return int(text[position:end], 8) & 0xFF, end
    if char == "x":
        digits = text[position + 1 : position + 3]
        return int(digits, 16), position + 3
    return _ESCAPES.get(char, ord(char) & 0xFF), position + 1
