"""Workloads: what runs again and again, template by template.

Figures up to the pipeline's last export come from gold, later ones live from the history
(`processed`). Runs are queries submitted, whatever became of them. Durations are of finished
queries; p50 and p95 come from sketches that add up over hours and engines, within 1 %.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from lakehouse_core.views.workload_sql import (
    GOLD,
    KEYS,
    LIST_SQL,
    LIVE,
    NAMES,
    NAMES_SQL,
    QUANTILE_SQL,
    SPREAD,
    TEMPLATES_SQL,
    TREND_SQL,
    facts,
)

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
    return WorkloadPage(
        window=window,
        coverage=coverage,
        step_seconds=asked.step_us / 1e6,
        total=rows[0]["total"] if rows else 0,
        offset=page["offset"],
        rows=asked.workloads(rows),
    )


def one_workload(
    store: TelemetryStore, template_id: str, filters: WorkloadFilters, clock: Clock
) -> tuple[WorkloadPage, tuple[Workload, ...]]:
    """A template as a page of one row, or none, and the same per engine, by name.

    Raises:
        FilterError: the window is not known.
    """
    window = parse_window(filters.window, clock())
    coverage = by_hours(window, read_processed(store))
    one = replace(filters, template=template_id)
    asked = _Asked(store, one, window, coverage, by_engine=True)
    rows = asked.read(LIST_SQL, order="runs", params={"limit": MAX_LIMIT, "offset": 0})
    total = [row for row in rows if row["at_engine"] is None]
    parts = sorted((row for row in rows if row["at_engine"]), key=lambda row: row["at_engine"])
    found = asked.workloads([*total, *parts])
    page = WorkloadPage(
        window=window,
        coverage=coverage,
        step_seconds=asked.step_us / 1e6,
        total=len(total),
        offset=0,
        rows=found[: len(total)],
    )
    return page, found[len(total) :]


class _Asked:
    """One question to the store: its statements and their parameters."""

    def __init__(
        self,
        store: TelemetryStore,
        filters: WorkloadFilters,
        window: Window,
        coverage: Coverage,
        *,
        by_engine: bool = False,
    ) -> None:
        self._store = store
        is_of_user = filters.user is not None
        self._parts = {"gold": GOLD[is_of_user], "live": LIVE, "bucket": BUCKET_SQL}
        self._parts |= {"names": NAMES[is_of_user]}
        self._parts |= {"keys": KEYS[by_engine], "spread": SPREAD[by_engine]}
        self._parts["facts"] = facts(is_of_user)
        self._parts["hourly_facts"] = facts(is_of_user, by_hour=True)
        self._params = {
            "start": coverage.start,
            "end": coverage.end,
            "gold_until": coverage.gold_until,
            "live_from": coverage.live_from,
            "days_from": coverage.days_from,
            "days_until": coverage.days_until,
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

    def workloads(self, rows: list[dict[str, Any]]) -> tuple[Workload, ...]:
        """The listed rows with texts, names, quantiles and trends."""
        found: dict[tuple[str, str | None], dict[str, Any]] = {
            _key(row): {"trend": [0] * self._steps} for row in rows
        }
        templates = sorted({row["template_id"] for row in rows})
        wanted = {"templates": templates}
        texts = self._store.read(TEMPLATES_SQL, **wanted).to_pylist()
        known = {row.pop("template_id"): row for row in texts}
        for row in self.read(NAMES_SQL, params=wanted):
            found[_key(row)]["user_names"] = row["user_names"]
        for row in self.read(QUANTILE_SQL, params=wanted):
            found[_key(row)] |= {"p50_ms": _middle(row["p50"]), "p95_ms": _middle(row["p95"])}
        for row in self.read(TREND_SQL, params=wanted | {"step_us": self.step_us}):
            found[_key(row)]["trend"][row["step"]] += row["runs"]
        return tuple(
            _workload(row, known.get(row["template_id"], {}) | found[_key(row)]) for row in rows
        )


def _key(row: dict[str, Any]) -> tuple[str, str | None]:
    """Which template, and which engine of it; None: all of them."""
    return row["template_id"], row.get("at_engine")


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
