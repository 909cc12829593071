"""From a table's name to advice: evidence of the store, files of the catalog, a sample by Spark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import FilterError
from lakehouse_core.domain.layout import Layout
from lakehouse_core.layout.advise import (
    Setting,
    advise,
    check_columns,
    nothing,
    too_little_known,
    try_layout,
)
from lakehouse_core.layout.decision import Rules, ScanPrice
from lakehouse_core.layout.evidence import read_workload
from lakehouse_core.layout.usable import Columns
from lakehouse_core.recommend import model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from lakehouse_core.catalog.measure import Reading
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.layout.advise import Advice
    from lakehouse_core.layout.planned import LakeFiles
    from lakehouse_core.layout.sample import Sample
    from lakehouse_core.layout.workload import Workload
    from lakehouse_core.store.port import TelemetryStore

# New data of the last weeks, as a share of the table: how fast a layout is lost that writers
# cannot keep.
GROWTH_SQL = """
SELECT sum(added_bytes)::BIGINT AS added, min(committed_at) AS first_at FROM snapshot_commit
WHERE table_id = $table::VARCHAR AND committed_at >= $start::TIMESTAMPTZ AND operation = 'append'
"""
HELD_SQL = """
SELECT layout FROM layout_advice WHERE table_id = $table::VARCHAR AND layout IS NOT NULL
ORDER BY advised_at DESC LIMIT 1
"""


BATCH_FILES, MOST_BATCHES = 8, 16
LEAST_DAYS = 7.0  # of history that growth is read off


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """Advice with what it was made from.

    Attributes:
        reading: the table at the moment.
        columns: its columns; layouts name them in lower case.
        batches: partitions that are rewritten in a commit each; none: all in one.
    """

    advice: Advice
    workload: Workload
    reading: Reading
    columns: Columns
    advised_at: datetime
    batches: tuple[tuple[dict[str, Any], ...], ...] = ()


class LayoutAdvisor:
    """Advises tables."""

    def __init__(
        self,
        config: Config,
        store: TelemetryStore,
        files: LakeFiles,
        sample: Callable[[Reading, Columns], Sample],
        clock: Clock,
    ) -> None:
        self._config = config
        self._store = store
        self._files = files
        self._sample = sample
        self._clock = clock

    def advise(self, table_id: str) -> Advised:
        """The advice for a table as it is now.

        Raises:
            CatalogError: the table cannot be read; says why.
            SampleError: it cannot be sampled.
        """
        return self._look(table_id, None)

    def simulate(self, table_id: str, order: str) -> Advised:
        """What one layout would bring.

        Raises:
            FilterError: it is no layout of this table; says why.
        """
        try:
            layout = Layout.parse(order.lower())
        except ValueError as error:
            raise FilterError(f"--order: {error}") from error
        return self._look(table_id, layout)

    def _look(self, table_id: str, layout: Layout | None) -> Advised:
        now = self._clock()
        metadata = self._files.metadata(table_id)
        reading = self._files.read(table_id, metadata)
        columns = Columns.of(metadata)
        start = now - self._config.maintenance.evidence_window
        workload = read_workload(self._store, table_id, columns, start, now)
        try:
            if layout is not None:
                check_columns(layout, columns.types)
            advice, batches = self._advice(reading, columns, workload, layout, now)
        except ValueError as error:
            raise FilterError(f"--order: {error}") from error
        return Advised(
            advice=advice,
            workload=workload,
            reading=reading,
            columns=columns,
            advised_at=now,
            batches=tuple(map(tuple, batches)),
        )

    def _advice(
        self,
        reading: Reading,
        columns: Columns,
        workload: Workload,
        layout: Layout | None,
        now: datetime,
    ) -> tuple[Advice, list[list[dict[str, Any]]]]:
        """The advice, and the batches of carrying it out; no sample where it would say nothing."""
        rows = int(reading.files.rows[reading.files.is_data].sum())
        least = self._config.layout.min_runs if layout is None else 1
        why_not = too_little_known(workload, rows, least)
        if why_not is not None:
            return nothing(workload, self._config.maintenance.target_file_bytes, why_not), []
        sample = self._sample(reading, columns)
        bounds = self._files.bounds(reading, list(sample.spaces))
        setting = self._setting(reading.table_id, sample, now)
        if layout is None:
            advice = advise(sample, bounds, workload, setting)
        else:
            advice = try_layout(sample, bounds, workload, setting, layout)
        return advice, self._files.batches(reading, self._batch_bytes(sample))

    def _batch_bytes(self, sample: Sample) -> int:
        """A batch is large enough to be worth a commit, and there are not too many."""
        least = BATCH_FILES * self._config.maintenance.target_file_bytes
        return max(least, int(sample.table_bytes / MOST_BATCHES))

    def _setting(self, table_id: str, sample: Sample, now: datetime) -> Setting:
        config = self._config
        size = int(sample.table_bytes)
        # Along a curve rows are arranged by our own job, which needs a JVM of its own.
        is_remote = config.spark.remote is not None
        return Setting(
            prices=scan_prices(config),
            target_bytes=config.maintenance.target_file_bytes,
            least_bytes=min(config.layout.least_file_bytes, config.maintenance.target_file_bytes),
            rules=Rules(
                margin=config.layout.margin,
                min_runs=config.layout.min_runs,
                payback_months=config.layout.payback / timedelta(days=model.MONTH_DAYS),
            ),
            rewrite_usd=model.cost_usd(size, config.prices),
            growth=self._growth(table_id, size, now),
            curves=("zorder",) if is_remote else ("zorder", "hilbert"),
            held=self._held(table_id),
        )

    def _growth(self, table_id: str, size: int, now: datetime) -> float:
        start = now - self._config.maintenance.evidence_window
        (row,) = self._store.read(GROWTH_SQL, table=table_id, start=start).to_pylist()
        if not row["added"] or not size or row["first_at"] is None:
            return 0.0
        days = (now - row["first_at"]).total_seconds() / 86_400
        # A table that was loaded just now has grown by all of itself: that says nothing.
        if days < LEAST_DAYS:
            return 0.0
        return float(min(1.0, row["added"] / size * model.MONTH_DAYS / days))

    def _held(self, table_id: str) -> Layout | None:
        found = self._store.read(HELD_SQL, table=table_id).to_pylist()
        # Kept as the table spells its columns; here they are in lower case.
        return Layout.parse(found[0]["layout"].lower()) if found else None


def scan_prices(config: Config) -> Mapping[str, ScanPrice]:
    """What reading costs on each engine by its own prices: bytes, and the time they take.

    An engine that is paid as a whole is taken to read at the pace of one core: how many cores it
    has the price book does not say.
    """
    found: dict[str, ScanPrice] = {}
    for engine in config.engines:
        rates = config.prices.rates(engine)
        if not rates.is_known:
            continue
        byte_ms = 1 / model.LIKELY.bytes_per_ms
        file_ms = model.LIKELY.file_ms
        found[engine] = ScanPrice(
            per_byte=_sure(rates.of_bytes(1)) + _sure(rates.of_time(byte_ms, byte_ms)),
            per_file=_sure(rates.of_time(file_ms, file_ms)),
        )
    return found


def _sure(amount: Decimal | None) -> Decimal:
    return amount or Decimal(0)
