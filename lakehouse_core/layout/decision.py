"""Whether a layout pays: what readers save in a month on their engines' prices, less the rewrite.

A reader's scan costs bytes and opened files at the price of its engine. Of a file it reads the
columns it needs: the share is measured, bytes scanned per run over bytes planned now. A file is
opened whole, however few of its columns are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from lakehouse_core.domain.layout import Layout
    from lakehouse_core.layout.simulate import Replay
    from lakehouse_core.layout.workload import Pattern, Reader, Workload

MONTH_DAYS = 30.0
_MICRO = Decimal("0.000001")
_SEED = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPrice:
    """What an engine takes for reading, in USD."""

    per_byte: Decimal
    per_file: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """When a layout is proposed.

    Attributes:
        margin: the share of the scan cost that must be saved, also if the estimate is off.
        min_runs: with fewer runs in the window nothing is said.
        min_files: a table of fewer files has nothing to skip.
        tie: layouts within this share of the best serve alike; the simplest is taken.
        hold: what was advised before is kept unless another is better by this share.
        payback_months: within which the rewrite must have paid.
    """

    margin: float = 0.20
    min_runs: int = 20
    min_files: int = 2
    tie: float = 0.03
    hold: float = 0.10
    payback_months: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the evidence: a template on an engine, now and then, per run."""

    template_id: str
    template: str
    engine_id: str
    runs: int
    bytes_now: float
    files_now: float
    bytes_then: float
    files_then: float
    usd_month_now: Decimal | None
    usd_month_then: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What comes of it.

    Attributes:
        layout: what is advised; None: leave the table as it is.
        reason: why, in words.
    """

    layout: Layout | None
    reason: str


class Pricing:
    """Puts a price on what a workload reads."""

    def __init__(self, workload: Workload, prices: Mapping[str, ScanPrice], now: Replay) -> None:
        self._workload = workload
        self._prices = prices
        self._now = now
        self._default = _mean_price(prices)
        self.per_byte, self.per_file = self._weights()
        self.is_priced = any(
            reader.engine_id in prices for one in workload.patterns for reader in one.readers
        )

    def cost(self, replay: Replay) -> float:
        """Of the whole workload, per month: USD, or bytes where nothing is priced."""
        return float(self.per_byte @ replay.size + self.per_file @ replay.files)

    def drawn(self, most: int) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Conditions by lot that stand for all, and how much each counts; None: they are few.

        A condition is drawn as often as it has a share in what is paid now.
        """
        paid = self.per_byte * self._now.size + self.per_file * self._now.files
        if len(paid) <= most or paid.sum() <= 0:
            return None
        lot = np.random.default_rng(_SEED).choice(len(paid), most, p=paid / paid.sum())
        places, times = np.unique(lot, return_counts=True)
        return places, times * paid.sum() / most / paid[places]

    def _weights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What a byte and a file cost per month, per condition."""
        count = len(self._workload.conditions)
        per_byte, per_file = np.zeros(count), np.zeros(count)
        for pattern in self._workload.patterns:
            size = files = 0.0
            for reader in pattern.readers:
                often, price = self._month(reader), self._price(reader)
                size += often * self._projected(pattern, reader) * float(price.per_byte)
                files += often * float(price.per_file)
            for scan in pattern.scans:
                place = self._workload.place(scan.condition)
                per_byte[place] += scan.weight * size
                per_file[place] += scan.weight * files
        return per_byte, per_file

    def per_run(self, pattern: Pattern, replay: Replay) -> tuple[float, float]:
        """Bytes and files that one run of a template reads."""
        places = [self._workload.place(scan.condition) for scan in pattern.scans]
        weights = np.array([scan.weight for scan in pattern.scans])
        return float(weights @ replay.size[places]), float(weights @ replay.files[places])

    def rows(self, then: Replay) -> list[Row]:
        """The evidence, the largest saving first."""
        found: list[Row] = []
        for pattern in self._workload.patterns:
            now_size, now_files = self.per_run(pattern, self._now)
            size, files = self.per_run(pattern, then)
            found += [
                Row(
                    template_id=pattern.template_id,
                    template=pattern.template,
                    engine_id=reader.engine_id,
                    runs=reader.runs,
                    bytes_now=now_size,
                    files_now=now_files,
                    bytes_then=size,
                    files_then=files,
                    usd_month_now=self._usd(pattern, reader, now_size, now_files),
                    usd_month_then=self._usd(pattern, reader, size, files),
                )
                for reader in pattern.readers
            ]
        return sorted(found, key=lambda row: -(row.bytes_now - row.bytes_then) * row.runs)

    def usd(self, replay: Replay) -> Decimal | None:
        """Of the whole workload per month; None where nothing is priced."""
        if not self.is_priced:
            return None
        parts = [
            self._usd(pattern, reader, *self.per_run(pattern, replay))
            for pattern in self._workload.patterns
            for reader in pattern.readers
        ]
        return sum((part for part in parts if part is not None), Decimal(0))

    def _usd(self, pattern: Pattern, reader: Reader, size: float, files: float) -> Decimal | None:
        price = self._prices.get(reader.engine_id)
        if price is None:
            return None
        read = Decimal(size * self._projected(pattern, reader))
        per_run = price.per_byte * read + price.per_file * Decimal(files)
        return (per_run * Decimal(self._month(reader))).quantize(_MICRO)

    def _price(self, reader: Reader) -> ScanPrice:
        return self._prices.get(reader.engine_id, self._default)

    def _month(self, reader: Reader) -> float:
        return reader.runs * MONTH_DAYS / self._workload.observed_days

    def _projected(self, pattern: Pattern, reader: Reader) -> float:
        """The share of a planned byte that is read: queries take some of the columns."""
        planned = self.per_run(pattern, self._now)[0]
        if not reader.bytes_scanned or not reader.runs or planned <= 0:
            return 1.0
        return min(1.0, reader.bytes_scanned / reader.runs / planned)


def _mean_price(prices: Mapping[str, ScanPrice]) -> ScanPrice:
    if not prices:
        return ScanPrice(per_byte=Decimal(1))
    count = Decimal(len(prices))
    return ScanPrice(
        per_byte=sum((one.per_byte for one in prices.values()), Decimal(0)) / count,
        per_file=sum((one.per_file for one in prices.values()), Decimal(0)) / count,
    )


@dataclass(frozen=True, slots=True)
class Costs:
    """What reading costs in a month.

    Attributes:
        now: with the files as they are.
        together: with the rows as they lie, in files as large as the layout's.
        then: under the layout.
        worst: the same if the estimate is as far off as it may be.
    """

    now: float
    together: float
    then: float
    worst: float

    @property
    def without(self) -> float:
        """What an order must beat: larger files can be had without one."""
        return min(self.now, self.together)


def decide(
    layout: Layout,
    costs: Costs,
    *,
    rewrite: float | None,
    rules: Rules,
) -> Verdict:
    """Whether the best layout beats the present one by enough.

    Args:
        layout: the best.
        costs: with it and without.
        rewrite: what it costs once, in the unit of the others; None: not known.
        rules: by how much.
    """
    now = costs.now
    if now <= 0:
        return Verdict(layout=None, reason="Nothing is read")
    saved, at_least = ((costs.without - one) / now for one in (costs.then, costs.worst))
    if saved < rules.margin or at_least < rules.margin / 2:
        beyond = " beyond what larger files alone would" if costs.together < now else ""
        return Verdict(
            layout=None,
            reason=f"The best layout found, {layout}, saves {saved:.0%} of what reading costs"
            f"{beyond} (at least {at_least:.0%}): less than the {rules.margin:.0%} that are worth "
            "a rewrite",
        )
    gained = costs.without - costs.then
    if rewrite is not None and gained * rules.payback_months <= rewrite:
        return Verdict(
            layout=None,
            reason=f"{layout} saves {gained:,.6f} USD a month, and the rewrite costs "
            f"{rewrite:,.6f}: it does not pay within {rules.payback_months:g} months",
        )
    return Verdict(
        layout=layout, reason=f"{layout} saves {1 - costs.then / now:.0%} of what reading costs"
    )
