"""Columns of tables, as far as somebody knows them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from lakehouse_core.domain.table import split_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Schema:
    """Tables and their columns; names are compared without regard to case.

    A table may be listed under its full name or only the end of it: `demo.lineitem` is found for
    `lake.demo.lineitem` and for `lineitem`, as long as no other table answers as well.
    """

    def __init__(self, tables: Mapping[str, Iterable[str]]) -> None:
        self._columns: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._by_name: dict[str, list[tuple[str, ...]]] = {}
        for name, columns in tables.items():
            parts = tuple(part.lower() for part in _parts(name))
            self._columns[parts] = tuple(str(column).lower() for column in columns)
            self._by_name.setdefault(parts[-1], []).append(parts)

        content = repr(sorted(self._columns.items())).encode("utf-8", "surrogatepass")
        self._key = hashlib.blake2b(content, digest_size=16).hexdigest()

    @property
    def key(self) -> str:
        """Equal for schemas with the same content."""
        return self._key

    def columns(self, table: tuple[str, ...]) -> tuple[str, ...] | None:
        """The columns of a table; None when it is not known or its name is ambiguous."""
        wanted = tuple(part.lower() for part in table)
        known = self._columns.get(wanted)
        if known is not None:
            return known
        fits = [parts for parts in self._by_name.get(wanted[-1], ()) if _is_same(parts, wanted)]
        return self._columns[fits[0]] if len(fits) == 1 else None


def _parts(name: str) -> tuple[str, ...]:
    try:
        return split_name(name)
    except ValueError:
        return (name,)


def _is_same(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    length = min(len(left), len(right))
    return left[-length:] == right[-length:]
