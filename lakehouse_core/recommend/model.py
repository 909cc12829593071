"""What a cure saves and costs, modelled from measured times: every figure of it is an estimate.

The time a query needs to read a table is taken to be made of opening manifests, opening data and
delete files, and reading bytes. How long each takes is not known; a likely, a low and a high value
are. Only their proportion counts: the share of the time that a cure takes away is applied to the
time that the queries were measured with.

    share saved = 1 - (manifests·m + files·f + bytes/t after) / (the same before)
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakehouse_core.config.pricebook import PricesConfig
    from lakehouse_core.domain.pricebook import EngineRates
    from lakehouse_core.domain.table import TableMetrics
    from lakehouse_core.recommend.facts import Reader

MIB = 2**20
GB = Decimal(10**9)
MONTH_DAYS = 30.0
REWRITE_BYTES_PER_CORE_SECOND = 40 * MIB
START_UP_CORE_SECONDS = 30.0
_ENTRY_MS = 0.02  # reading one entry of an open manifest
_MICRO = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Pace:
    """How long opening and reading take."""

    manifest_ms: float
    file_ms: float
    bytes_per_ms: float


# From a local disk with warm caches to an object store over a network.
LOW, LIKELY, HIGH = (
    Pace(2.0, 2.0, 50 * MIB / 1000),
    Pace(10.0, 10.0, 100 * MIB / 1000),
    Pace(30.0, 30.0, 200 * MIB / 1000),
)


@dataclass(frozen=True, slots=True)
class Span:
    """An estimate and how far it may be off."""

    likely: float
    low: float
    high: float

    def times(self, factor: float) -> Span:
        """The same in another unit."""
        return Span(self.likely * factor, self.low * factor, self.high * factor)

    def plus(self, other: Span) -> Span:
        """Two estimates together; errors are taken to go the same way."""
        return Span(self.likely + other.likely, self.low + other.low, self.high + other.high)


NOTHING = Span(0.0, 0.0, 0.0)


def time_saved(before: TableMetrics, after: TableMetrics) -> Span:
    """The share of the reading time that is saved, 0 to 1."""
    shares = [_share(_scan_ms(before, pace), _scan_ms(after, pace)) for pace in (LIKELY, LOW, HIGH)]
    return Span(shares[0], min(shares), max(shares))


def bytes_saved(before: TableMetrics, after: TableMetrics) -> Span:
    """The share of the bytes that queries need not read any more."""
    share = _share(float(before.total_bytes), float(after.total_bytes))
    return Span(share, 0.0, share)


def planning_after(measured_ms: float, before: TableMetrics, after: TableMetrics) -> Span:
    """The planning time of a query after the cure, from what it was measured with."""
    found = [
        measured_ms * (1 - _share(_plan_ms(before, pace), _plan_ms(after, pace)))
        for pace in (LIKELY, LOW, HIGH)
    ]
    return Span(found[0], min(found), max(found))


def usd_per_month(
    reader: Reader, rates: EngineRates, days: float, time_share: Span, bytes_share: Span
) -> Span | None:
    """What one reader saves in a month on its engine's own prices; None: not priced or measured.

    What is paid by bytes saves by bytes, everything else by time: of cores, or of the whole engine.
    Where an engine does not tell its processor time, one core counts for as long as the query ran.
    """
    core_ms = reader.cpu_ms if reader.cpu_ms is not None else reader.execution_ms
    by_bytes = rates.of_bytes(reader.bytes_scanned)
    by_time = rates.of_time(core_ms, reader.execution_ms)
    if not rates.is_known or by_bytes is None or by_time is None:
        return None
    saved = bytes_share.times(float(by_bytes)).plus(time_share.times(float(by_time)))
    return saved.times(MONTH_DAYS / days)


def storage_usd_per_month(freed_bytes: Span, prices: PricesConfig) -> Span | None:
    """What is not paid for storage any more."""
    if prices.gb_month is None:
        return None
    return freed_bytes.times(float(prices.gb_month / GB))


def cost_usd(input_bytes: int, prices: PricesConfig) -> Decimal | None:
    """What carrying out the plan costs: bytes through cores, and starting them."""
    if prices.core_hour is None:
        return None
    seconds = START_UP_CORE_SECONDS + input_bytes / REWRITE_BYTES_PER_CORE_SECOND
    return money(float(prices.core_hour) * seconds / 3_600)


def priority(gain: Decimal | None, cost: Decimal | None, points: float, input_bytes: int) -> float:
    """The order of work: gain ÷ cost.

    Where nobody pays, or nothing is priced: points of the score per GiB, always behind what pays.
    """
    if gain is not None and gain > 0 and cost is not None and cost > 0:
        return 1.0 + float(gain / cost)
    return points / 100 / (1 + input_bytes / 2**30)


def money(value: float) -> Decimal:
    """An amount of USD with the digits the store keeps."""
    return Decimal(repr(value)).quantize(_MICRO)


def _scan_ms(metrics: TableMetrics, pace: Pace) -> float:
    files = metrics.data_files + metrics.delete_files
    return (
        metrics.manifests * pace.manifest_ms
        + files * pace.file_ms
        + metrics.total_bytes / pace.bytes_per_ms
    )


def _plan_ms(metrics: TableMetrics, pace: Pace) -> float:
    files = metrics.data_files + metrics.delete_files
    return metrics.manifests * pace.manifest_ms + files * _ENTRY_MS


def _share(before: float, after: float) -> float:
    return max(0.0, 1 - after / before) if before > 0 else 0.0
