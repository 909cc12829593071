"""From Arrow rows to frozen records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


def records(kind: type[T], table: pa.Table, **more: Any) -> tuple[T, ...]:
    """One record per row; column names are field names, lists become tuples."""
    return tuple(
        kind(**{name: _frozen(value) for name, value in row.items()}, **more)
        for row in table.to_pylist()
    )


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
