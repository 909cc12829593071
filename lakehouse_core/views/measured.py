"""What each template needed on each engine in a window: the evidence of comparison, regret, advice.

Only reads count, since only reads may be sent elsewhere; a failure that is the statement's own
fault, or the gateway's, says nothing about the engine. Runs of one size are compared with each
other: the size is what the gateway estimated before the run, which does not depend on the engine,
in classes of factor four; runs without an estimate are a class of their own. Waiting for a place in
the gateway counts as time. Money is the template's spend on the engine, divided over its runs by
their time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

from lakehouse_core.domain.money import rounded
from lakehouse_core.domain.query import EXCUSED_ERRORS
from lakehouse_core.finops.spend import whole_hour
from lakehouse_core.views.formatting import size
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.window import Window

LEAST_RUNS = 5  # below it a template on an engine is not compared
_MOST_CELLS = 100_000
Amount = TypeVar("Amount", Decimal, float)  # money is exact, seconds are not

RUNS_SQL = f"""
SELECT event.template_id, event.engine_id, event.query_id, event.gateway_id, event.submitted_at,
  routed.cluster_group, event.status = 'failed' AS failed,
  coalesce(routed.protocol = 'shadow', false) AS is_shadow,
  CASE WHEN routed.estimated_bytes IS NOT NULL
    THEN floor(log2(1 + routed.estimated_bytes) / 2)::INTEGER END AS size_class,
  greatest(coalesce(routed.queue_ms, 0)
    + least(event.elapsed_ms, routed.engine_ms + coalesce(routed.fetch_ms, 0)), 0.001) / 1000
    AS seconds
FROM query_event AS event LEFT JOIN routing_decision AS routed USING (gateway_id)
WHERE event.submitted_at >= $start::TIMESTAMPTZ AND event.submitted_at < $end::TIMESTAMPTZ
  AND event.statement_kind = 'select' AND event.template_id IS NOT NULL AND event.elapsed_ms >= 0
  AND (event.status = 'finished' OR (event.status = 'failed'
    AND coalesce(event.error_class, '') NOT IN {EXCUSED_ERRORS}))
"""  # noqa: S608 put together from constants
# Runs are added up before anything is joined to them: there may be millions.
_CELLS = """
WITH run AS (SELECT * FROM ({runs}) AS run
  WHERE $template::VARCHAR IS NULL OR template_id = $template::VARCHAR),
cell AS (
  SELECT template_id, engine_id, size_class, count(*) AS runs,
    count(*) FILTER (failed) AS failed, count(*) FILTER (is_shadow AND NOT failed) AS shadows,
    coalesce(sum(seconds) FILTER (is_shadow), 0) AS shadow_seconds,
    avg(seconds) FILTER (NOT failed) AS mean_seconds,
    quantile_cont(seconds, [0.5, 0.95]) FILTER (NOT failed) AS quantiles,
    stddev_samp(ln(seconds)) FILTER (NOT failed) AS spread,
    sum(seconds) AS total_seconds, min(submitted_at) AS first_at, max(submitted_at) AS last_at,
    histogram(cluster_group) FILTER (
      cluster_group IS NOT NULL AND NOT failed AND NOT is_shadow
    ) AS groups
  FROM run {only} GROUP BY template_id, engine_id, size_class
),
whole AS ({whole}),
spend AS (
  SELECT template_id, engine_id, sum(cost) AS cost, nullif(sum(queries), 0) AS queries,
    list_sort(list(DISTINCT basis)) AS bases
  FROM cost_hour JOIN cost_label USING (label_id, engine_id)
  WHERE hour_at >= $first_hour::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
    AND kind = 'query' AND cost_hour.runs > 0 AND currency = $currency::VARCHAR
    AND basis NOT IN ('unpriced', 'pending')
  GROUP BY ALL
)
SELECT cell.* EXCLUDE (quantiles), quantiles[1] AS p50_seconds, quantiles[2] AS p95_seconds,
  (spend.cost * (whole.runs / spend.queries * total_seconds / whole.seconds))::DECIMAL(38,9)
    AS cost, spend.bases
FROM cell JOIN whole USING (template_id, engine_id) LEFT JOIN spend USING (template_id, engine_id)
ORDER BY template_id, size_class, engine_id LIMIT $most::BIGINT
"""
CELLS_SQL = _CELLS.format(
    runs=RUNS_SQL,
    only="",
    whole="SELECT template_id, engine_id, sum(runs) AS runs, sum(total_seconds) AS seconds "
    "FROM cell GROUP BY ALL",
)
# Only what a strategy chose with a reason that begins like this; spend is that of all.
SAID_SQL = _CELLS.format(
    runs=RUNS_SQL,
    only="""WHERE gateway_id IN (
    SELECT gateway_id FROM routing_decision, json_each(trace) AS step
    WHERE template_id = $template::VARCHAR
      AND submitted_at >= $start::TIMESTAMPTZ - INTERVAL 1 DAY  -- it may have waited
      AND json_extract_string(step.value, '$.stage') = 'strategy'
      AND starts_with(json_extract_string(step.value, '$.detail'), $said::VARCHAR))""",
    whole="SELECT template_id, engine_id, count(*) AS runs, sum(seconds) AS seconds "
    "FROM run GROUP BY ALL",
)
CURRENCY_SQL = """
SELECT currency FROM charge
WHERE hour_at >= $first_hour::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
GROUP BY currency ORDER BY sum(cost) DESC, currency LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A template on an engine, within a class of sizes.

    Attributes:
        size_class: half of log2 of the bytes estimated before the run; None: not estimated.
        runs: finished and failed ones.
        shadows: finished runs that nobody asked for, made to have evidence (docs/routing.md).
        shadow_seconds: of all of those, failed ones included.
        mean_seconds, p50_seconds, p95_seconds: of finished runs; None without any.
        spread: standard deviation of the logarithm of their seconds; None below two.
        total_seconds: of all runs.
        cost: of all runs, in the currency of the evidence; None: the engine has no price, or its
            hours are not charged yet.
        bases: what the cost rests on.
        groups: answers by the group of the gateway they came through; those past it are in none.
    """

    template_id: str
    engine_id: str
    size_class: int | None
    runs: int
    failed: int
    shadows: int
    shadow_seconds: float
    mean_seconds: float | None
    p50_seconds: float | None
    p95_seconds: float | None
    spread: float | None
    total_seconds: float
    cost: Decimal | None
    bases: tuple[str, ...] | None
    first_at: datetime
    last_at: datetime
    groups: tuple[tuple[str, int], ...] | None = None

    @property
    def key(self) -> tuple[str, int | None]:
        """Runs with the same key can be compared."""
        return self.template_id, self.size_class

    @property
    def finished(self) -> int:
        """Runs that ended well."""
        return self.runs - self.failed

    @property
    def answers(self) -> int:
        """Runs that somebody asked for and that ended well."""
        return self.finished - self.shadows

    def answers_in(self, groups: Collection[str]) -> int:
        """Those of them that came through one of these groups."""
        return sum(count for name, count in self.groups or () if name in groups)

    @property
    def asked_seconds(self) -> float:
        """Time of the runs that somebody asked for."""
        return max(self.total_seconds - self.shadow_seconds, 0.0)

    @property
    def asked_cost(self) -> Decimal | None:
        """What those cost: the spend by their share of the time."""
        if self.cost is None or not self.shadow_seconds:
            return self.cost
        return rounded(self.cost * Decimal(repr(self.asked_seconds / self.total_seconds)))

    @property
    def is_enough(self) -> bool:
        """Whether there are enough runs to compare."""
        return self.finished >= LEAST_RUNS

    @property
    def cost_per_run(self) -> Decimal | None:
        """What an answer costs: failed runs are paid as well."""
        return None if self.cost is None or not self.finished else self.cost / self.finished

    @property
    def seconds_per_run(self) -> float | None:
        """How long an answer takes: the time of failed runs is lost as well."""
        return self.total_seconds / self.finished if self.finished else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The evidence of a window, in one currency; `per_key` has what can be compared together."""

    window: Window
    currency: str
    cells: tuple[Cell, ...]

    @property
    def hours(self) -> float:
        """Of the window those since its first run, a day at least: an hour is no month."""
        if not self.cells:
            return self.window.hours
        since = self.window.end - min(cell.first_at for cell in self.cells)
        return min(max(since / timedelta(hours=1), 24.0), self.window.hours)

    def per_key(self) -> dict[tuple[str, int | None], list[Cell]]:
        """Cells of the same template and size."""
        found: dict[tuple[str, int | None], list[Cell]] = {}
        for cell in self.cells:
            found.setdefault(cell.key, []).append(cell)
        return found


def measured(
    store: TelemetryStore, window: Window, *, template: str | None = None, said: str | None = None
) -> Measured:
    """What ran in a window, per template, size and engine.

    Args:
        store: where it is recorded.
        window: when it was submitted.
        template: only its runs.
        said: of those, only what a strategy chose with a reason that begins like this.
    """
    span = {"first_hour": whole_hour(window.start), "end": window.end}
    found = store.read(CURRENCY_SQL, **span).column("currency").to_pylist()
    currency = found[0] if found else "USD"
    values = span | {"start": window.start, "currency": currency, "most": _MOST_CELLS}
    if said is None:
        rows = store.read(CELLS_SQL, **values, template=template)
    else:
        rows = store.read(SAID_SQL, **values, template=template, said=said)
    return Measured(window=window, currency=currency, cells=records(Cell, rows))


def money_of(amount: float) -> Decimal:
    """What was worked out from a spread, to the digit the ledger keeps."""
    return rounded(Decimal(repr(amount)))


def size_words(size_class: int | None) -> str:
    """A class of sizes as its range."""
    if size_class is None:
        return "not estimated"
    low, high = 4**size_class - 1, 4 ** (size_class + 1) - 1
    return f"{size(low)} to {size(high)}"
