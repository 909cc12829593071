"""Sizes and times as Trino writes them: `3.1GB`, `1.20s`.

Trino's (Airlift's) size units are binary whatever their letters say: `1kB` is 1024 bytes.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

_BYTES = {
    "B": 1,
    "kB": 2**10,
    "KB": 2**10,
    "MB": 2**20,
    "GB": 2**30,
    "TB": 2**40,
    "PB": 2**50,
    "EB": 2**60,
}
_MILLISECONDS = {
    "ns": Decimal("0.000001"),
    "us": Decimal("0.001"),
    "ms": Decimal(1),
    "s": Decimal(1_000),
    "m": Decimal(60_000),
    "h": Decimal(3_600_000),
    "d": Decimal(86_400_000),
}


def parse_size(value: object) -> int:
    """A data size in bytes.

    Raises:
        ValueError: it is neither a size with a unit nor a count of bytes.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number, unit = _split(value)
    if unit not in _BYTES:
        raise ValueError(f"{value!r} is no data size")
    return int(number * _BYTES[unit])


def parse_milliseconds(value: object) -> float:
    """A duration in milliseconds.

    Raises:
        ValueError: it is no duration with a unit.
    """
    number, unit = _split(value)
    if unit not in _MILLISECONDS:
        raise ValueError(f"{value!r} is no duration")
    return float(number * _MILLISECONDS[unit])


def _split(value: object) -> tuple[Decimal, str]:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit")  # noqa: TRY004 callers treat every misfit alike
    digits = value.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    try:
        number = Decimal(digits.strip())
    except InvalidOperation as error:
        raise ValueError(f"{value!r} has no number") from error
    if not number.is_finite() or number < 0:
        raise ValueError(f"{value!r} is not a size or a time")
    return number, value.strip()[len(digits) :]
