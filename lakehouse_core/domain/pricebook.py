"""The price book: which prices count for an engine, at any moment. Pure.

Of the prices that fit an engine the most particular count: those of the engine itself, else those
of its type, else those for all; at each step the configuration's before public list prices. An
engine may have several units at that step (nodes and bytes); each is a charge of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise

from lakehouse_core.domain.cost import TB, Price

ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
COMPUTE_UNITS = frozenset(
    {"cluster_hour", "node_hour", "core_hour", "tb_scanned", "credit", "slot_hour"}
)
MS_PER_HOUR = Decimal(3_600_000)
DEFAULT_EDITION = "standard"
DEFAULT_CLASS = "standard"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which the same prices count."""

    start: datetime
    end: datetime
    prices: tuple[Price, ...]


@dataclass(frozen=True, slots=True)
class EngineRates:
    """What an engine's work costs; None is what it is not paid by.

    Attributes:
        tb_scanned: of a TB read.
        core_hour: of a core at work.
        engine_hour: of the whole engine while it works: nodes, a cluster, a credit of the smallest
            warehouse, a slot.
    """

    tb_scanned: Decimal | None = None
    core_hour: Decimal | None = None
    engine_hour: Decimal | None = None

    @classmethod
    def of(cls, prices: Sequence[Price]) -> EngineRates:
        """The rates of the prices that count for an engine."""
        found: dict[str, Decimal] = {}
        for one in prices:
            name = one.unit if one.unit in ("tb_scanned", "core_hour") else "engine_hour"
            found[name] = found.get(name, Decimal(0)) + one.effective_rate
        return cls(**found)

    @property
    def is_known(self) -> bool:
        """Whether the engine is priced at all."""
        return (self.tb_scanned, self.core_hour, self.engine_hour) != (None, None, None)

    def of_bytes(self, read: float | None) -> Decimal | None:
        """What reading costs; None where it is paid for and nobody knows how much was read."""
        if self.tb_scanned is None:
            return Decimal(0)
        return None if read is None else self.tb_scanned * Decimal(read) / TB

    def of_time(self, core_ms: float | None, engine_ms: float | None) -> Decimal | None:
        """What time costs; None where it is paid for and nobody knows how much it was."""
        total = Decimal(0)
        for rate, taken in ((self.core_hour, core_ms), (self.engine_hour, engine_ms)):
            if rate is None:
                continue
            if taken is None:
                return None
            total += rate * Decimal(taken) / MS_PER_HOUR
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBook:
    """Prices with their validity.

    Attributes:
        prices: all that is known, also of the past.
        engine_types: engine → its type.
        editions: engine → edition its credits are priced by.
        storage_classes: catalog → class of its files.
        currency: of what is not priced at all.
    """

    prices: tuple[Price, ...]
    engine_types: Mapping[str, str]
    editions: Mapping[str, str] = field(default_factory=dict)
    storage_classes: Mapping[str, str] = field(default_factory=dict)
    currency: str = "USD"
    _lines: dict[str, tuple[list[datetime], list[tuple[Price, ...]]]] = field(default_factory=dict)

    def stretches(self, engine_id: str, start: datetime, end: datetime) -> Iterator[Stretch]:
        """The prices of an engine's computing from a moment to another, in order."""
        cuts, found = self._line(engine_id)
        at = start
        while at < end:
            place = bisect_right(cuts, at)
            until = min(end, cuts[place]) if place < len(cuts) else end
            yield Stretch(at, until, found[place - 1])
            at = until

    def compute(self, engine_id: str, at: datetime) -> tuple[Price, ...]:
        """What an engine's computing costs at a moment; empty when it is not priced."""
        cuts, found = self._line(engine_id)
        return found[bisect_right(cuts, at) - 1]

    def storage(self, catalog: str, at: datetime) -> Price | None:
        """What a GB of a catalog's files costs in a month."""
        sku = self.storage_classes.get(catalog, DEFAULT_CLASS)
        fitting = [p for p in self._valid(at) if p.unit == "gb_month" and p.sku in (None, sku)]
        order = sorted(fitting, key=lambda p: (p.origin == "config", p.valid_from))
        return order[-1] if order else None

    def storage_stretches(self, catalog: str, start: datetime, end: datetime) -> Iterator[Stretch]:
        """The prices of a catalog's files from a moment to another, in order; at most one each."""
        mine = [p for p in self.prices if p.unit == "gb_month"]
        changes = {p.valid_from for p in mine} | {p.valid_to for p in mine if p.valid_to}
        cuts = [start, *sorted(at for at in changes if start < at < end), end]
        for at, until in pairwise(cuts):
            price = self.storage(catalog, at)
            yield Stretch(at, until, () if price is None else (price,))

    def _line(self, engine_id: str) -> tuple[list[datetime], list[tuple[Price, ...]]]:
        if engine_id not in self._lines:
            mine = [p for p in self.prices if self._rank(p, engine_id) is not None]
            moments = {ALWAYS, *(p.valid_from for p in mine)}
            moments |= {p.valid_to for p in mine if p.valid_to is not None}
            cuts = sorted(moments)
            self._lines[engine_id] = cuts, [self._choose(engine_id, mine, at) for at in cuts]
        return self._lines[engine_id]

    def _choose(self, engine_id: str, mine: Sequence[Price], at: datetime) -> tuple[Price, ...]:
        ranked = [(self._rank(p, engine_id), p) for p in mine if is_valid(p, at)]
        if not ranked:
            return ()
        best = min(rank for rank, _ in ranked if rank is not None)
        newest: dict[str, Price] = {}  # of two that overlap the later one counts
        for price in sorted((p for rank, p in ranked if rank == best), key=lambda p: p.valid_from):
            newest[price.unit] = price
        return tuple(newest.values())

    def _rank(self, price: Price, engine_id: str) -> tuple[int, int] | None:
        """How particular a price is for an engine, 0 the most; None when it is for others."""
        if price.unit not in COMPUTE_UNITS:
            return None
        if price.unit == "credit" and price.sku not in (
            None,
            self.editions.get(engine_id, DEFAULT_EDITION),
        ):
            return None
        by_origin = 0 if price.origin == "config" else 1
        if price.engine is not None:
            return (0, by_origin) if price.engine == engine_id else None
        if price.engine_type is not None:
            return (1, by_origin) if price.engine_type == self.engine_types.get(engine_id) else None
        return 2, by_origin

    def _valid(self, at: datetime) -> Iterator[Price]:
        return (p for p in self.prices if is_valid(p, at))


def is_valid(price: Price, at: datetime) -> bool:
    """Whether a price counts at a moment."""
    return price.valid_from <= at and (price.valid_to is None or at < price.valid_to)


def price_id(name: str, start: datetime) -> str:
    """The id of a price that counts from a moment on."""
    return f"{name}@{start:%Y%m%dT%H%M%S.%fZ}"
