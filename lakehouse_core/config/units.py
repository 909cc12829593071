"""Durations and sizes with units, as people write them: `90d`, `5m`, `2GiB`."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

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
_MAX_DIGITS = 18  # more digits than any real size; keeps Decimal arithmetic exact and small


def _number_and_unit(text: str, units: dict[str, int | Decimal], example: str) -> Decimal:
    stripped = text.strip()
    digits = stripped.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = stripped[len(digits) :]
    digits = digits.strip()
    whole, dot, fraction = digits.partition(".")
    is_plain = whole.isascii() and whole.isdecimal() and len(digits) <= _MAX_DIGITS
    if dot:
        is_plain = is_plain and fraction.isascii() and fraction.isdecimal()
    if not is_plain or unit not in units:
        raise ValueError(f"expected a number and a unit of {', '.join(units)}, e.g. {example}")
    return Decimal(digits) * units[unit]


def parse_duration(value: object) -> timedelta:
    """`90d`, `5m`, `1.5h` → timedelta."""
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError("expected a duration with a unit, e.g. 30s")  # noqa: TRY004 pydantic wants ValueError
    try:
        return timedelta(seconds=float(_number_and_unit(value, _SECONDS, "30s")))
    except OverflowError as error:
        raise ValueError("expected a duration below 999999999d") from error


def parse_bytes(value: object) -> int:
    """`2GiB`, `500 MB` → bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError("expected a size with a unit, e.g. 512MiB")  # noqa: TRY004 pydantic wants ValueError
    return int(_number_and_unit(value, _BYTES, "512MiB"))


def format_duration(value: timedelta) -> str:
    """The shortest exact spelling: `5m` for 300 seconds."""
    seconds = Decimal(value.days * 86_400 + value.seconds) + Decimal(value.microseconds) / 1_000_000
    for unit in ("w", "d", "h", "m", "s"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{int(seconds / _SECONDS[unit])}{unit}"
    return f"{(seconds * 1000).normalize():f}ms" if seconds else "0s"


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
        {"type": "string", "pattern": r"^\d+(\.\d+)?\s*(ms|s|m|h|d|w)$", "examples": ["30s"]}
    ),
]
# For intervals: a job that runs every 0 s would never let the others work.
Interval = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    Field(gt=timedelta(0)),
    PlainSerializer(format_duration),
    WithJsonSchema(
        {"type": "string", "pattern": r"^\d+(\.\d+)?\s*(ms|s|m|h|d|w)$", "examples": ["30s"]}
    ),
]
ByteSize = Annotated[
    int,
    BeforeValidator(parse_bytes),
    Field(gt=0),
    PlainSerializer(format_bytes_unit),
    WithJsonSchema(
        {
            "type": ["string", "integer"],
            "pattern": r"^\d+(\.\d+)?\s*([KMGT]i?)?B$",
            "examples": ["2GiB"],
        }
    ),
]
