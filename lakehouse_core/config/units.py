"""Durations and sizes with units, as people write them: `90d`, `5m`, `2GiB`."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_SECONDS: dict[str, int | Decimal] = {
    "ms": Decimal("0.001"),
    "s": 1,
    "m": 60,
    "h": 3_600,
    "d": 86_400,
    "w": 604_800,
}
_BYTES: dict[str, int | Decimal] = {
    "B": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}


def _number_and_unit(text: str, units: dict[str, int | Decimal], example: str) -> Decimal:
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ").strip()
    unit = text.strip()[len(digits) :].strip()
    try:
        number = Decimal(digits)
    except InvalidOperation:
        number = Decimal("NaN")
    if unit not in units or not number.is_finite() or number < 0:
        raise ValueError(f"expected a number and a unit of {', '.join(units)}, e.g. {example}")
    return number * units[unit]


def parse_duration(value: object) -> timedelta:
    """`90d`, `5m`, `1.5h` → timedelta."""
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError("expected a duration with a unit, e.g. 30s")  # noqa: TRY004 pydantic wants ValueError
    return timedelta(seconds=float(_number_and_unit(value, _SECONDS, "30s")))


def parse_bytes(value: object) -> int:
    """`2GiB`, `500 MB` → bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError("expected a size with a unit, e.g. 512MiB")  # noqa: TRY004 pydantic wants ValueError
    return int(_number_and_unit(value, _BYTES, "512MiB"))


def format_duration(value: timedelta) -> str:
    """The shortest exact spelling: `5m` for 300 seconds."""
    seconds = Decimal(str(value.total_seconds()))
    for unit in ("w", "d", "h", "m", "s"):
        if seconds % _SECONDS[unit] == 0:
            return f"{int(seconds / _SECONDS[unit])}{unit}"
    return f"{int(seconds * 1000)}ms"


def format_bytes_unit(value: int) -> str:
    """The shortest exact binary spelling: `2GiB`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if value and value % _BYTES[unit] == 0:
            return f"{value // int(_BYTES[unit])}{unit}"
    return f"{value}B"


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration),
    WithJsonSchema(
        {"type": "string", "pattern": r"^\d+(\.\d+)?(ms|s|m|h|d|w)$", "examples": ["30s"]}
    ),
]
ByteSize = Annotated[
    int,
    BeforeValidator(parse_bytes),
    PlainSerializer(format_bytes_unit),
    WithJsonSchema(
        {
            "type": ["string", "integer"],
            "pattern": r"^\d+(\.\d+)?\s*([KMGT]i?)?B$",
            "examples": ["2GiB"],
        }
    ),
]
