"""Our values as JSON: times ISO 8601 in UTC with a `Z`, money as text, unknown as null."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class _Rows(Protocol):
    """What `pyarrow.Table` offers; named here so that printing needs no import of it."""

    def to_pylist(self) -> list[dict[str, Any]]: ...


@runtime_checkable
class _Model(Protocol):
    """What a pydantic model offers; secrets in it come out masked."""

    def model_dump(self, *, mode: str) -> dict[str, Any]: ...


def to_json(value: object, *, indent: int | None = 2) -> str:
    """Encode any value of ours.

    Raises:
        TypeError: a value has no agreed form; give it one here rather than at the caller.
    """
    return json.dumps(to_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def to_plain(value: Any) -> Any:
    """The value as dicts, lists, text, numbers, booleans and None."""
    match value:
        case None | bool() | str() if not isinstance(value, Enum):
            return value
        case Enum():
            return to_plain(value.value)
        case int():
            return value
        case float():
            return value if math.isfinite(value) else None  # JSON knows neither NaN nor infinity
    return _structure_to_plain(value)


def _structure_to_plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(to_plain(key)): to_plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | Set) and not isinstance(value, bytes | bytearray):
        items = sorted(value, key=str) if isinstance(value, Set) else value
        return [to_plain(item) for item in items]
    if isinstance(value, _Rows):
        return to_plain(value.to_pylist())
    if isinstance(value, _Model):
        return value.model_dump(mode="json")
    return _scalar_to_plain(value)


def _scalar_to_plain(value: Any) -> Any:
    match value:
        case datetime():
            # The store's clock is UTC, also where a driver drops the zone on the way.
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date() | PurePath():
            return str(value)
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return format(value, "f") if value.is_finite() else None
        case bytes() | bytearray():
            return value.hex()
    raise TypeError(f"no JSON form for a value of type {type(value).__name__}")
