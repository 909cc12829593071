"""Costs: who spends what, by any two dimensions, against the window before; and that it adds up.

Costs are of whole hours: the window's start is moved back to one, and the hour that is going on
counts as far as it is known. Idle time and what nobody can be charged with are rows. The rows of a
report add up to what was metered; `Reconciliation` says both sums and their difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import FilterError
from lakehouse_core.finops import spend
from lakehouse_core.finops.spend import Spend, check_dimensions, whole_hour
from lakehouse_core.views.cost_sql import (
    BASES,
    KINDS_SQL,
    METERED_SQL,
    ROWS_BUCKET,
    ROWS_SQL,
    SERIES_BUCKET,
    SERIES_SQL,
    TABLE,
    pieces,
)
from lakehouse_core.views.window import Window, parse_window

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.finops.groups import GroupRules
    from lakehouse_core.store.port import TelemetryStore

DIMENSIONS: tuple[str, ...] = spend.DIMENSIONS
DEFAULT_BY = ("engine", "workload")
MOST_ROWS = 10_000
SHOWN_SERIES = 8
REST = "all others"
ZERO = Decimal(0)
_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
_FILTERS = ("engine", "workload", "team", "cost_center", "user", "table", "template")


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFilters:
    """What to look at; all texts, so that a page's address and a command line hold the same.

    Attributes:
        window: see `lakehouse_core.views.window`.
        engine, workload, team, cost_center, user, table, template: only this one.
        currency: None: the one most was spent in.
    """

    window: str = "7d"
    engine: str | None = None
    workload: str | None = None
    team: str | None = None
    cost_center: str | None = None
    user: str | None = None
    table: str | None = None
    template: str | None = None
    currency: str | None = None

    def __post_init__(self) -> None:
        """An empty text filters nothing."""
        for name in (*_FILTERS, "currency"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value or "").strip() or None)

    @property
    def set_names(self) -> tuple[str, ...]:
        """The filters that are set, without the currency."""
        return tuple(name for name in _FILTERS if getattr(self, name) is not None)

    @property
    def given(self) -> tuple[str, ...]:
        """The filters that are set, without engine and currency."""
        return tuple(name for name in self.set_names if name != "engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """Spend of one combination of the dimensions, in the window and in the one before.

    Attributes:
        first, second: the names; None in sums over the dimension.
        cost: of the window, effective.
        before: of the window before.
        queries: that began in the window.
        failed_cost: part of the cost that failed and cancelled queries caused.
        list_cost: the same at list prices.
        provisional_cost: part of the cost that may still change.
        execution_us: how long its queries ran.
        bases: what it rests on: billed, list, modelled, unpriced, pending.
    """

    first: str | None
    second: str | None
    cost: Decimal
    before: Decimal
    queries: int
    queries_before: int
    failed_cost: Decimal
    list_cost: Decimal
    provisional_cost: Decimal
    execution_us: int
    bases: tuple[str, ...]

    @property
    def name(self) -> str:
        """Both names, or one where they are the same (idle time has no other)."""
        return " / ".join(dict.fromkeys(one for one in (self.first, self.second) if one))

    @property
    def change(self) -> Decimal:
        """How much more than in the window before."""
        return self.cost - self.before

    @property
    def per_query(self) -> Decimal | None:
        """What a query cost in the mean; None without one."""
        return self.cost / self.queries if self.queries else None

    @property
    def per_thousand(self) -> Decimal | None:
        """What a thousand queries cost."""
        return None if self.per_query is None else self.per_query * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """Whether it adds up.

    Attributes:
        shown: the sum of the report's rows.
        beyond: of rows that are left off because there are too many.
        outside: what the filters leave out.
        metered: the sum of the charges.
    """

    shown: Decimal
    beyond: Decimal
    outside: Decimal
    metered: Decimal

    @property
    def rows(self) -> Decimal:
        """All rows of the window, whatever is shown of them."""
        return self.shown + self.beyond + self.outside

    @property
    def difference(self) -> Decimal:
        """Zero, or something is wrong."""
        return self.metered - self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBasis:
    """What the figures rest on.

    Attributes:
        hours: hours of the window in which anything was metered.
        bases: billed, list, modelled.
        unpriced: charges without a price: their cost is not known and in no sum.
        pending: hours that an engine has not metered yet.
        unpriced_engines: whose.
        provisional_from: from here on hours may still change; None: none may.
        computed_at: when the newest was computed.
        other_currencies: what was spent in other currencies; it is in no sum.
    """

    hours: int
    bases: tuple[str, ...]
    unpriced: int
    pending: int
    unpriced_engines: tuple[str, ...]
    provisional_from: datetime | None
    computed_at: datetime | None
    other_currencies: dict[str, Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport:
    """Spend of a window by one or two dimensions.

    Attributes:
        window: as asked; `start` is its whole hour.
        before_start: where the window compared with begins; it ends where this one starts.
        total: over everything that passes the filters.
        firsts: sums per value of the first dimension, largest first.
        rows: per combination, largest first, at most as many as asked for.
        kinds: cost by kind (query, idle, unallocated, resource), without filters but the engine.
    """

    window: Window
    start: datetime
    before_start: datetime
    by: tuple[str, ...]
    currency: str
    total: CostRow
    firsts: tuple[CostRow, ...]
    rows: tuple[CostRow, ...]
    kinds: dict[str, Decimal]
    reconciliation: Reconciliation
    basis: CostBasis

    def share_of(self, kind: str) -> float | None:
        """Which part of the metered total is of this kind."""
        metered = self.reconciliation.metered
        return float(self.kinds.get(kind, ZERO) / metered) if metered else None


def cost_report(
    store: TelemetryStore,
    filters: CostFilters,
    rules: GroupRules,
    clock: Clock,
    *,
    by: tuple[str, ...] = DEFAULT_BY,
    limit: int = 200,
) -> CostReport:
    """Spend of the window, by one or two dimensions.

    Raises:
        FilterError: the window or a dimension is not known.
    """
    asked = Asked(store, filters, rules, clock, by)
    most = min(max(limit, 0), MOST_ROWS)
    found = asked.read(ROWS_SQL, ROWS_BUCKET, limit=most)
    told = found.to_pylist()
    of_kinds = {row["kind"]: row["cost"] for row in told if not row["over_kind"]}
    rows = [(_row(row), row["over_first"], row["over_second"]) for row in told if row["over_kind"]]
    total = next((row for row, over_all, _ in rows if over_all), _NOTHING)
    kinds = asked.kinds() if filters.given else of_kinds
    listed = tuple(row for row, _, over in rows if not over)
    shown = sum((row.cost for row in listed), ZERO)
    return CostReport(
        window=asked.window,
        start=asked.start,
        before_start=asked.before_start,
        by=by,
        currency=asked.currency,
        total=total,
        firsts=tuple(row for row, over_all, over in rows if over and not over_all),
        rows=listed,
        kinds=kinds,
        reconciliation=Reconciliation(
            shown=shown,
            beyond=total.cost - shown if len(listed) >= most else ZERO,
            outside=sum(kinds.values(), ZERO) - total.cost if filters.given else ZERO,
            metered=asked.metered,
        ),
        basis=asked.basis,
    )


def cost_series(
    store: TelemetryStore,
    filters: CostFilters,
    rules: GroupRules,
    clock: Clock,
    *,
    by: str = "engine",
    shown: tuple[str, ...] = (),
) -> tuple[Window, timedelta, pa.Table]:
    """Spend over time: bucket_at, name, cost; names that are not `shown` are `all others`."""
    asked = Asked(store, filters, rules, clock, (by,), compare=False)
    step = max(asked.window.step, _HOUR)
    # Days of a long window are added up already; nobody reads four weeks by the hour.
    step = max(step, _DAY) if asked.window.length > 8 * _DAY else step
    micros = step // timedelta(microseconds=1)
    table = asked.read(SERIES_SQL, SERIES_BUCKET, step_us=micros, shown=list(shown), rest=REST)
    return asked.window, step, table


def pick_currency(store: TelemetryStore, filters: CostFilters, window: Window) -> str:
    """The currency that is asked for, else the one most was spent in."""
    if filters.currency is not None:
        return filters.currency
    found = store.read(
        METERED_SQL, start=whole_hour(window.start), end=window.end, engine=filters.engine
    ).to_pylist()
    return str(found[0]["currency"]) if found else "USD"


class Asked:
    """One question: its span, its currency, its statements."""

    def __init__(
        self,
        store: TelemetryStore,
        filters: CostFilters,
        rules: GroupRules,
        clock: Clock,
        by: tuple[str, ...] = (),
        *,
        compare: bool = True,
    ) -> None:
        check_dimensions(by)
        if len(by) > 2 or len(set(by)) != len(by):
            raise FilterError("Costs are asked by one or two dimensions, e.g. engine,workload.")
        self.window = parse_window(filters.window, clock())
        self.start = whole_hour(self.window.start)
        self.before_start = self.start - (whole_hour(self.window.end) - self.start)
        self._store = store
        self._filters = filters
        self._by = by
        since = self.before_start if compare else self.start
        self._spend = Spend.of(store, rules, since, self.window.end, cuts=(self.start,))
        self._read_metered()

    def _read_metered(self) -> None:
        found = self._store.read(
            METERED_SQL, start=self.start, end=self.window.end, engine=self._filters.engine
        ).to_pylist()
        wanted = self._filters.currency or (found[0]["currency"] if found else "USD")
        mine: dict[str, Any] = next((row for row in found if row["currency"] == wanted), {})
        self.currency: str = wanted
        self.metered: Decimal = mine.get("cost") or ZERO
        self.basis = CostBasis(
            hours=mine.get("hours", 0),
            bases=tuple(mine.get("bases") or ()),
            unpriced=mine.get("unpriced", 0),
            pending=mine.get("pending", 0),
            unpriced_engines=tuple(mine.get("unpriced_engines") or ()),
            provisional_from=mine.get("provisional_from"),
            computed_at=mine.get("computed_at"),
            other_currencies={
                row["currency"]: row["cost"] for row in found if row["currency"] != wanted
            },
        )

    def read(self, sql: str, bucket: tuple[str, str], **params: Any) -> pa.Table:
        """A statement over the spend that passes the filters, cut by time as `bucket` says."""
        dimensions = self._spend.dimensions | {"table": TABLE}
        names = [dimensions[name] for name in self._by] + ["NULL::VARCHAR"] * 2
        places = pieces(
            (names[0], names[1]),
            {one: dimensions[one] for one in self._filters.given},
            bucket,
            of_engine=self._filters.engine is not None,
        )
        values = {name: getattr(self._filters, name) for name in _FILTERS}
        return self._store.read(
            self._spend.sql(sql, **places),
            **self._spend.params,
            **values,
            **params,
            split=self.start,
            currency=self.currency,
        )

    def kinds(self) -> dict[str, Decimal]:
        """Cost by kind, without filters but the engine."""
        rows = self._store.read(
            self._spend.sql(KINDS_SQL),
            **self._spend.params,
            engine=self._filters.engine,
            split=self.start,
            currency=self.currency,
        ).to_pylist()
        return {row["kind"]: row["cost"] for row in rows}


_NOTHING = CostRow(
    first=None, second=None, cost=ZERO, before=ZERO, queries=0, queries_before=0,
    failed_cost=ZERO, list_cost=ZERO, provisional_cost=ZERO, execution_us=0, bases=(),
)  # fmt: skip


def _row(row: dict[str, Any]) -> CostRow:
    values = {n: value for n, value in row.items() if n != "kind" and not n.startswith("over_")}
    bases = tuple(name for bit, name in enumerate(BASES) if values["bases"] & 1 << bit)
    return CostRow(**values | {"bases": bases})
