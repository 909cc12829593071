"""Workloads: what runs again and again, template by template.

Figures up to the pipeline's last export come from gold, later ones live from the history
(`processed`). Runs are queries submitted, whatever became of them. Durations are of finished
queries; p50 and p95 come from sketches that add up over hours and engines, within 1 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lakehouse_core.domain.errors import FilterError
from lakehouse_core.views.processed import (
    BUCKET_SQL,
    SKETCH_BASE,
    Coverage,
    by_hours,
    read_processed,
)
from lakehouse_core.views.window import DEFAULT_WINDOW, Window, parse_window

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

Order = Literal["runs", "time", "bytes", "errors"]
ORDERS: dict[str, str] = {
    "runs": "runs",
    "time": "elapsed_ms",
    "bytes": "bytes_scanned",
    "errors": "failed",
}
MAX_LIMIT = 1_000
MOST_NAMES = 50

# Every value is a bound parameter; only these constants are put together.
_FILTER = """
    AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
    AND ($table::VARCHAR IS NULL OR template_id IN (
      SELECT template_id FROM template_table WHERE table_name = $table::VARCHAR
      UNION SELECT template_id FROM column_usage WHERE table_name = $table::VARCHAR))
    AND ($template::VARCHAR IS NULL OR template_id = $template::VARCHAR)
"""
_GOLD_SPAN = """
  WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
    AND hour_at < $gold_until::TIMESTAMPTZ AND runs > 0
"""
_GOLD = {
    # Without a user, rows are fewer: one per template and engine, with the names of its users.
    False: f"template_hour {_GOLD_SPAN} {_FILTER}",
    True: f"workload_hour {_GOLD_SPAN} {_FILTER} AND user_name = $user::VARCHAR",
}
_NAMES = {False: "user_names", True: "[user_name]"}
_LIVE = f"""(
  SELECT * REPLACE (coalesce(template_id, '') AS template_id) FROM query_event
  WHERE submitted_at >= $live_from::TIMESTAMPTZ AND submitted_at < $end::TIMESTAMPTZ
    AND ($user::VARCHAR IS NULL OR user_name = $user::VARCHAR) {
    _FILTER.replace("template_id IN", "coalesce(template_id, '') IN").replace(
        "template_id = $", "coalesce(template_id, '') = $"
    )
}
) AS live"""  # noqa: S608 constants only

_FACTS = """
  SELECT hour_at, template_id, engine_id, runs, finished, failed, cancelled, unfinished,
    elapsed_ms, cpu_ms, bytes_scanned, rows_returned, users AS named
  FROM {gold}
  UNION ALL
  SELECT date_trunc('hour', submitted_at), template_id, engine_id, count(*),
    count(*) FILTER (status = 'finished'), count(*) FILTER (status = 'failed'),
    count(*) FILTER (status = 'cancelled'), count(*) FILTER (status IN ('queued', 'running')),
    sum(round(elapsed_ms * 1000)::BIGINT) / 1000.0, sum(round(cpu_ms * 1000)::BIGINT) / 1000.0,
    sum(bytes_scanned)::BIGINT, sum(rows_returned)::BIGINT, 0
  FROM {live} GROUP BY ALL
"""

LIST_SQL = """
WITH facts AS ({facts}),
per_template AS (
  SELECT template_id, sum(runs)::BIGINT AS runs, sum(finished)::BIGINT AS finished,
    sum(failed)::BIGINT AS failed, sum(cancelled)::BIGINT AS cancelled,
    sum(unfinished)::BIGINT AS unfinished, sum(elapsed_ms) AS elapsed_ms, sum(cpu_ms) AS cpu_ms,
    sum(bytes_scanned)::BIGINT AS bytes_scanned, sum(rows_returned)::BIGINT AS rows_returned,
    list(DISTINCT engine_id ORDER BY engine_id) AS engines,
    max(named) AS named, max(hour_at) AS last_hour_at
  FROM facts GROUP BY template_id
)
SELECT *, count(*) OVER () AS total FROM per_template
ORDER BY {order} DESC NULLS LAST, template_id LIMIT $limit::BIGINT OFFSET $offset::BIGINT
"""

# Names are put together for the templates on the page alone: over all of them that is most of the
# work, a million lists for a month of ten million queries.
NAMES_SQL = """
SELECT template_id, list(DISTINCT name ORDER BY name) AS user_names FROM (
  SELECT template_id, unnest({names}) AS name FROM {gold}
    AND list_contains($templates::VARCHAR[], template_id)
  UNION ALL
  SELECT template_id, user_name FROM {live}
  WHERE user_name <> '' AND list_contains($templates::VARCHAR[], template_id)
) GROUP BY template_id
"""

QUANTILE_SQL = """
WITH sketches AS NOT MATERIALIZED (
  SELECT template_id, unnest(elapsed_sketch) AS part FROM {gold}
    AND list_contains($templates::VARCHAR[], template_id)
), counted AS (
  SELECT template_id, part.bucket AS bucket, sum(part.runs) AS runs FROM sketches GROUP BY ALL
  UNION ALL
  SELECT template_id, {bucket}, count(*) FROM {live}
  WHERE status = 'finished' AND elapsed_ms IS NOT NULL
    AND list_contains($templates::VARCHAR[], template_id) GROUP BY ALL
), added AS (
  SELECT template_id, bucket, sum(runs) AS runs FROM counted GROUP BY ALL
), ranked AS (
  SELECT template_id, bucket, sum(runs) OVER (PARTITION BY template_id ORDER BY bucket) AS up_to,
    sum(runs) OVER (PARTITION BY template_id) AS total FROM added
)
SELECT template_id, min(bucket) FILTER (up_to >= 0.5 * total) AS p50,
  min(bucket) FILTER (up_to >= 0.95 * total) AS p95
FROM ranked GROUP BY template_id
"""

TREND_SQL = """
WITH facts AS ({facts})
SELECT template_id,
  (epoch_us(hour_at) - epoch_us($start::TIMESTAMPTZ)) // $step_us::BIGINT AS step,
  sum(runs)::BIGINT AS runs
FROM facts WHERE list_contains($templates::VARCHAR[], template_id) GROUP BY ALL
"""

TEMPLATES_SQL = """
SELECT template_id, template, statement_kind, parse_error FROM query_template
WHERE list_contains($templates::VARCHAR[], template_id)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFilters:
    """What to look at.

    Attributes:
        window: see `lakehouse_core.views.window`; its start is moved back to a whole hour.
        engine: an engine id.
        user: a user's name, exactly.
        table: only templates that read or write this table (its id, e.g. `lake.demo.events`).
        template: one template.
    """

    window: str = DEFAULT_WINDOW
    engine: str | None = None
    user: str | None = None
    table: str | None = None
    template: str | None = None

    def __post_init__(self) -> None:
        """An empty text filters nothing."""
        for name in ("engine", "user", "table", "template"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value or "").strip() or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One template in the window.

    Attributes:
        template_id: None for statements whose text nobody knows.
        template: its text without literals; None when the store does not have it.
        runs: all of them; finished, failed, cancelled and unfinished add up to it.
        engines: where it ran.
        users: how many users ran it, as far as engines said; at least so many when
            `users_is_least`.
        user_names: some of them, at most fifty per hour and engine.
        p50_ms: of finished runs, within 1 %; None when none finished.
        elapsed_ms: of all runs together.
        trend: runs per step of the window (`WorkloadPage.step_seconds`), oldest first.
        last_hour_at: the latest hour it ran in.
    """

    template_id: str | None
    template: str | None
    statement_kind: str | None
    parse_error: str | None
    runs: int
    finished: int
    failed: int
    cancelled: int
    unfinished: int
    engines: tuple[str, ...]
    users: int
    users_is_least: bool
    user_names: tuple[str, ...]
    p50_ms: float | None
    p95_ms: float | None
    elapsed_ms: float | None
    cpu_ms: float | None
    bytes_scanned: int | None
    rows_returned: int | None
    trend: tuple[int, ...]
    last_hour_at: datetime

    @property
    def error_ratio(self) -> float | None:
        """Failed out of finished and failed; None when nothing ended."""
        ended = self.finished + self.failed
        return self.failed / ended if ended else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPage:
    """Templates in order, and what their figures are about.

    Attributes:
        window: as asked.
        coverage: which hours the figures cover, and how fresh they are.
        step_seconds: how long one step of a trend is.
        total: how many templates there are in all.
    """

    window: Window
    coverage: Coverage
    step_seconds: float
    total: int
    offset: int
    rows: tuple[Workload, ...]


def list_workloads(
    store: TelemetryStore,
    filters: WorkloadFilters,
    clock: Clock,
    *,
    order: str = "runs",
    limit: int = 50,
    offset: int = 0,
) -> WorkloadPage:
    """Templates that ran in the window, the largest first.

    Raises:
        FilterError: the window or the order is not known.
    """
    if order not in ORDERS:
        raise FilterError(f"Order {order!r} is not known. Use: {', '.join(ORDERS)}.")
    window = parse_window(filters.window, clock())
    coverage = by_hours(window, read_processed(store))
    asked = _Asked(store, filters, window, coverage)
    page = {"limit": min(max(limit, 0), MAX_LIMIT), "offset": max(offset, 0)}
    rows = asked.read(LIST_SQL, order=ORDERS[order], params=page)
    extras = asked.extras([row["template_id"] for row in rows])
    return WorkloadPage(
        window=window,
        coverage=coverage,
        step_seconds=asked.step_us / 1e6,
        total=rows[0]["total"] if rows else 0,
        offset=page["offset"],
        rows=tuple(_workload(row, extras.get(row["template_id"], {})) for row in rows),
    )


class _Asked:
    """One question to the store: its statements and their parameters."""

    def __init__(
        self, store: TelemetryStore, filters: WorkloadFilters, window: Window, coverage: Coverage
    ) -> None:
        self._store = store
        is_of_user = filters.user is not None
        self._parts = {"gold": _GOLD[is_of_user], "live": _LIVE, "bucket": BUCKET_SQL}
        self._parts["names"] = _NAMES[is_of_user]
        self._parts["facts"] = _FACTS.format(gold=_gold_facts(is_of_user), live=_LIVE)
        self._params = {
            "start": coverage.start,
            "end": coverage.end,
            "gold_until": coverage.gold_until,
            "live_from": coverage.live_from,
            "engine": filters.engine,
            "user": filters.user,
            "table": filters.table,
            "template": filters.template,
        }
        hour_us = 3_600_000_000
        self.step_us = -(-int(window.step.total_seconds() * 1e6) // hour_us) * hour_us
        self._steps = -(-int((coverage.end - coverage.start).total_seconds() * 1e6) // self.step_us)

    def read(
        self, sql: str, *, order: str = "", params: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        text = sql
        for name, part in {**self._parts, "order": order}.items():
            text = text.replace(f"{{{name}}}", part)
        rows: list[dict[str, Any]] = self._store.read(
            text, **self._params, **(params or {})
        ).to_pylist()
        return rows

    def extras(self, templates: list[str]) -> dict[str, dict[str, Any]]:
        """Texts, quantiles and trends of the templates on the page."""
        found: dict[str, dict[str, Any]] = {one: {"trend": [0] * self._steps} for one in templates}
        wanted = {"templates": templates}
        for row in self._store.read(TEMPLATES_SQL, **wanted).to_pylist():
            found[row.pop("template_id")] |= row
        for row in self.read(NAMES_SQL, params=wanted):
            found[row["template_id"]]["user_names"] = row["user_names"]
        for row in self.read(QUANTILE_SQL, params=wanted):
            found[row["template_id"]] |= {
                "p50_ms": _middle(row["p50"]),
                "p95_ms": _middle(row["p95"]),
            }
        for row in self.read(TREND_SQL, params=wanted | {"step_us": self.step_us}):
            found[row["template_id"]]["trend"][row["step"]] += row["runs"]
        return found


def _gold_facts(is_of_user: bool) -> str:
    """The gold rows; those of one user have no number of users of their own."""
    return _GOLD[is_of_user] if not is_of_user else f"(SELECT *, 1 AS users FROM {_GOLD[True]})"  # noqa: S608 constants


def _middle(bucket: int | None) -> float | None:
    """The value a bucket stands for: at most 1 % from any value in it."""
    return None if bucket is None else 2 * SKETCH_BASE**bucket / (1 + SKETCH_BASE)


def _workload(row: dict[str, Any], extra: dict[str, Any]) -> Workload:
    names = extra.get("user_names") or []
    named = row["named"] or 0
    return Workload(
        template_id=row["template_id"] or None,
        template=extra.get("template"),
        statement_kind=extra.get("statement_kind"),
        parse_error=extra.get("parse_error"),
        runs=row["runs"],
        finished=row["finished"],
        failed=row["failed"],
        cancelled=row["cancelled"],
        unfinished=row["unfinished"],
        engines=tuple(row["engines"]),
        users=max(len(names), named),
        users_is_least=named > MOST_NAMES,
        user_names=tuple(names[:MOST_NAMES]),
        p50_ms=extra.get("p50_ms"),
        p95_ms=extra.get("p95_ms"),
        elapsed_ms=row["elapsed_ms"],
        cpu_ms=row["cpu_ms"],
        bytes_scanned=row["bytes_scanned"],
        rows_returned=row["rows_returned"],
        trend=tuple(extra.get("trend", ())),
        last_hour_at=row["last_hour_at"],
    )
