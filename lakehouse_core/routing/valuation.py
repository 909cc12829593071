"""What a run costs by the price book, so that engines can be compared before a statement runs.

    priced = PricedRuns(config.prices.book_of(config.prices.all_prices(now)), cores={"duckdb": 2})
    priced("duckdb", seconds, scan_bytes)

By the prices of the moment, whenever a run was: the next statement is paid at today's. An engine
that is paid by time is charged for the time of the run, whoever else uses it meanwhile: that is
what tells engines apart, not what a bill will say (`finops`, which splits real charges).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.cost import TB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from lakehouse_core.domain.cost import Price
    from lakehouse_core.domain.pricebook import PriceBook


@dataclass(frozen=True, slots=True, eq=False)
class PricedRuns:
    """A `Valuation` in the currency of the book; NaN where an engine has no price.

    Attributes:
        book: the prices.
        cores: of engines that are paid by core, how many a statement keeps busy; 1 by default.
        clock: the moment whose prices count.
    """

    book: PriceBook
    cores: Mapping[str, int] = field(default_factory=dict)
    clock: Clock = utc_now

    def __call__(
        self, engine_id: str, seconds: NDArray[np.float64], scan_bytes: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """What each run costs."""
        prices = self.book.compute(engine_id, self.clock())
        if not prices:
            return np.full(len(seconds), np.nan)
        parts = [self._part(engine_id, one, seconds, scan_bytes) for one in prices]
        return np.asarray(np.sum(parts, axis=0))

    def _part(
        self,
        engine_id: str,
        price: Price,
        seconds: NDArray[np.float64],
        scan_bytes: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        rate = float(price.effective_rate)
        if price.unit == "tb_scanned":
            charged = np.maximum(scan_bytes, price.minimum_bytes or 0)
            return rate * np.where(scan_bytes > 0, charged, scan_bytes) / TB
        cores = self.cores.get(engine_id, 1) if price.unit == "core_hour" else 1
        return rate * cores * seconds / 3_600
