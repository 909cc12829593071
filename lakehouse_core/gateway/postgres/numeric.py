"""PostgreSQL's binary form of exact numbers: groups of four decimal digits."""

from __future__ import annotations

import struct
from decimal import Decimal

from lakehouse_core.gateway.postgres.messages import Reader, WireError

_POSITIVE, _NEGATIVE, _NAN = 0x0000, 0x4000, 0xC000
_GROUP = 4


def numeric_bytes(value: Decimal) -> bytes:
    """A number as PostgreSQL sends it."""
    if value.is_nan():
        return struct.pack("!hhHh", 0, 0, _NAN, 0)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 only NaN and infinity have letters there
    scale = max(0, -exponent)
    text = "".join(map(str, digits)) + "0" * max(0, exponent)
    whole, fraction = (
        (text[: len(text) - scale], text[len(text) - scale :]) if scale else (text, "")
    )
    if len(text) < scale:
        whole, fraction = "", text.rjust(scale, "0")
    whole = whole.lstrip("0")
    whole = whole.rjust(-(-len(whole) // _GROUP) * _GROUP, "0")
    fraction = fraction.ljust(-(-len(fraction) // _GROUP) * _GROUP, "0")
    every = whole + fraction
    groups = [int(every[at : at + _GROUP]) for at in range(0, len(every), _GROUP)]
    weight = len(whole) // _GROUP - 1
    while groups and groups[0] == 0:
        groups, weight = groups[1:], weight - 1
    while groups and groups[-1] == 0:
        groups.pop()
    head = (
        len(groups),
        weight if groups else 0,
        _NEGATIVE if sign and groups else _POSITIVE,
        scale,
    )
    return struct.pack(f"!hhHh{len(groups)}h", *head, *groups)


def numeric_value(raw: bytes) -> Decimal:
    """The number that PostgreSQL's binary form tells.

    Raises:
        WireError: it is cut off, or infinite.
    """
    reader = Reader(raw)
    count, weight, sign, _ = (reader.short() for _ in range(4))
    sign &= 0xFFFF
    if sign == _NAN:
        return Decimal("NaN")
    if sign not in (_POSITIVE, _NEGATIVE):
        raise WireError("A numeric parameter is neither positive nor negative")
    digits = "".join(f"{reader.short():04d}" for _ in range(count)) or "0"
    places = (weight - count + 1) * _GROUP
    return Decimal((int(sign == _NEGATIVE), tuple(map(int, digits)), places))
