"""Connections to the owner that are kept between reads.

`quack_query` connects, asks and disconnects: three requests. A connection that is kept, which in
DuckDB's words is an attached database, needs one. Writes do not come this way: a script that fails
in its middle must take its connection with it.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import TYPE_CHECKING

import duckdb

from lakehouse_core.store.literals import identifier, literal

if TYPE_CHECKING:
    import pyarrow as pa

_ASK = "FROM quack_query_by_name($name, $text)"
_MOST_IDLE = 8


class Sessions:
    """A pool of connections to one address with one token; any thread may ask."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, address: str, token: str) -> None:
        self._connection = connection
        self._address = address
        self._token = token
        self._numbers = itertools.count()
        self._idle: deque[str] = deque()

    def ask(self, text: str) -> pa.Table:
        """Run one statement on the owner.

        Raises:
            duckdb.Error: it failed; the connection it came through is given up, because nobody
                knows its state.
        """
        with self._connection.cursor() as cursor:
            name = self._take(cursor)
            try:
                found = cursor.execute(_ASK, {"name": name, "text": text}).to_arrow_table()
            except duckdb.Error:
                _detach(cursor, name)
                raise
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(name)
            else:
                _detach(cursor, name)
            return found

    def ask_afresh(self, text: str) -> pa.Table:
        """The same, after giving up all idle connections: the owner that had them is gone."""
        with self._connection.cursor() as cursor:
            while self._idle:
                _detach(cursor, self._idle.pop())
        return self.ask(text)

    def _take(self, cursor: duckdb.DuckDBPyConnection) -> str:
        try:
            return self._idle.pop()
        except IndexError:
            name = f"owner_{next(self._numbers)}"
            place, token = literal(self._address), literal(self._token)
            cursor.execute(f"ATTACH {place} AS {identifier(name)} (TYPE quack, TOKEN {token})")
            return name


def _detach(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    cursor.execute(f"DETACH DATABASE IF EXISTS {identifier(name)}")
