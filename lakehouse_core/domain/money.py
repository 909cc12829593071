"""Money: an exact amount in one currency, and dividing it without losing a digit.

Amounts have nine decimals, as the store's DECIMAL(38, 9) has. `divide` is what attribution does to
each charge (`lakehouse_core.domain.attribution` says it in SQL): every share ends where the running
total of the weights ends, rounded down, so the shares add up to the amount whatever they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from lakehouse_core.domain.errors import LakehouseError, Terminal

PLACES = Decimal("0.000000001")
NANOS = 10**9
_CURRENCY = re.compile(r"[A-Z]{3}")


class MoneyError(Terminal, LakehouseError):
    """Raised when amounts cannot be put together: two currencies, or a currency that is none."""


@dataclass(frozen=True, slots=True)
class Money:
    """An amount with its ISO 4217 currency."""

    amount: Decimal
    currency: str

    def __post_init__(self) -> None:
        """Refuse a currency that is none; keep nine decimals."""
        if not _CURRENCY.fullmatch(self.currency):
            raise MoneyError(f"{self.currency!r} is no ISO 4217 currency, e.g. USD")
        object.__setattr__(self, "amount", rounded(self.amount))

    def __add__(self, other: Money) -> Money:
        if other.currency != self.currency:
            raise MoneyError(
                f"{self.currency} and {other.currency} do not add up: no exchange rate is assumed"
            )
        return Money(self.amount + other.amount, self.currency)

    def __str__(self) -> str:
        return f"{self.amount:f} {self.currency}"


def rounded(amount: Decimal) -> Decimal:
    """The amount with the nine decimals that are kept; halves go to the even neighbour."""
    return amount.quantize(PLACES, rounding=ROUND_HALF_EVEN)


def per_thousand(amount: Decimal) -> str:
    """A thousand times an amount, with the three digits that tell small amounts apart."""
    thousand = 1000 * amount
    last = min(max(2 - thousand.adjusted(), 2), 9) if thousand else 2
    return f"{thousand:.{last}f}"


def divide(amount: Decimal, weights: Sequence[int]) -> list[Decimal]:
    """The amount in proportion to the weights, to the last digit.

    Args:
        amount: not negative, at most nine decimals.
        weights: not negative; their order decides who gets the odd digits.

    Returns:
        One share per weight; their sum is the amount, or 0 when all weights are 0.
    """
    whole, total = int(amount.scaleb(9)), sum(weights)
    shares, before, reached = [], 0, 0
    for weight in weights:
        reached += weight
        after = whole * reached // total if total else 0
        shares.append(Decimal(after - before).scaleb(-9))
        before = after
    return shares
