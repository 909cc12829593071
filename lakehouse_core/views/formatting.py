"""Numbers as people read them; what is not known is said to be unknown, never shown as zero."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

UNKNOWN = "unknown"
_THIN = "\u202f"  # narrow no-break space, so that a grouped number never wraps
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def count(value: float | None) -> str:
    """`1 214`; a part of one keeps its decimals (`0.4`)."""
    if value is None:
        return UNKNOWN
    if value and abs(value) < 10 and value != int(value):
        return f"{value:.1f}" if abs(value) >= 0.1 else f"{value:.2g}"
    return f"{value:,.0f}".replace(",", _THIN)


def size(value: float | None) -> str:
    """Bytes in binary units: `1.5 GiB`."""
    if value is None:
        return UNKNOWN
    amount = float(value)
    unit = 0
    while abs(amount) >= 1023.95 and unit < len(_BINARY) - 1:
        amount /= 1024
        unit += 1
    return f"{amount:.0f} B" if unit == 0 else f"{amount:.1f} {_BINARY[unit]}"


def amount(byte_count: float | None, rows: float | None) -> str:
    """Bytes and rows together, as far as they are known: `1.5 GiB, 20 rows`."""
    parts = [] if byte_count is None else [size(byte_count)]
    if rows is not None:
        parts.append("1 row" if rows == 1 else f"{count(rows)} rows")
    return ", ".join(parts) or UNKNOWN


def duration(milliseconds: float | None) -> str:
    """`480 ms`, `1.8 s`, `2 m 04 s`, `1 h 03 m`, `3 d 04 h`."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms" if milliseconds >= 9.95 else f"{milliseconds:.2g} ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f} s"
    seconds = round(milliseconds / 1000)
    if seconds < 3_600:
        return f"{seconds // 60} m {seconds % 60:02d} s"
    if seconds < 86_400:
        return f"{seconds // 3_600} h {seconds % 3_600 // 60:02d} m"
    return f"{seconds // 86_400} d {seconds % 86_400 // 3_600:02d} h"


def span(length: timedelta | None) -> str:
    """A timedelta like `duration`, in whole seconds below a minute: `8 s`."""
    if length is None:
        return UNKNOWN
    seconds = max(length.total_seconds(), 0.0)
    return f"{seconds:.0f} s" if seconds < 59.5 else duration(round(seconds) * 1000)


def money(amount: Decimal | None, currency: str, *, signed: bool = False) -> str:
    """`12.34 USD`, below one with four decimals; what is less than that is said to be."""
    if amount is None:
        return UNKNOWN
    places = 2 if abs(amount) >= 1 or not amount else 4
    if 0 < abs(amount) < Decimal("0.00005"):
        return f"{'-' if amount < 0 else ''}< 0.0001 {currency}"
    return f"{amount:{'+' if signed else ''},.{places}f} {currency}".replace(",", _THIN)


def percent(ratio: float | None) -> str:
    """A ratio of 0 to 1 as a percentage: `1.2 %`."""
    if ratio is None:
        return UNKNOWN
    value = ratio * 100
    if 0 < value < 0.1:
        return "< 0.1 %"
    return f"{value:.1f} %"


def share(part: float | None, whole: float | None) -> str:
    """A percentage with its base: `1.2 % of 1 214`; without a base nothing can be said."""
    if part is None or not whole:
        return UNKNOWN
    return f"{percent(part / whole)} of {count(whole)}"


def change(now: float | None, before: float | None) -> str | None:
    """By how much a figure moved: `+12 %`; None when there is nothing to compare with."""
    if now is None or not before:
        return None
    ratio = now / before - 1
    if abs(ratio) < 0.0005:
        return "0 %"
    return (
        f"{ratio * 100:+.1f} %"
        if abs(ratio) < 0.1
        else f"{ratio * 100:+,.0f} %".replace(",", _THIN)
    )


def moment(at: datetime | None) -> str:
    """`2026-11-16 06:05:12 UTC`."""
    return UNKNOWN if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def ago(at: datetime | None, now: datetime) -> str:
    """`8 s ago`, or `in 4 s` for what is still to come."""
    if at is None:
        return "never"
    if at > now:
        return f"in {span(at - now)}"
    return f"{span(now - at)} ago"


def both(at: datetime | None, now: datetime) -> str:
    """Relative and absolute time together."""
    return "never" if at is None else f"{ago(at, now)} ({moment(at)})"
