"""Spend per day, what a period will have cost at its end, and days that cost more than usual."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, timedelta
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import FilterError
from lakehouse_core.finops.anomalies import Anomaly, anomalies
from lakehouse_core.finops.forecast import HISTORY_DAYS, Forecast, NoForecast, forecast
from lakehouse_core.views.cost_sql import SERIES_BUCKET, SERIES_SQL
from lakehouse_core.views.costs import DEFAULT_BY, REST, ZERO, Asked, CostFilters, cost_report

if TYPE_CHECKING:
    from decimal import Decimal

    from lakehouse_core.config.finops import AnomalySettings
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.finops.groups import GroupRules
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.costs import CostRow

_DAY = timedelta(days=1)
_DAY_US = _DAY // timedelta(microseconds=1)
SCOPES = ("engine", "workload")  # what is looked at one by one for unusual days
MOST_SCOPES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodForecast:
    """A calendar period and what it will have cost."""

    period: str
    start: date
    end: date  # excluded
    currency: str
    found: Forecast | NoForecast

    @property
    def forecast(self) -> Forecast | None:
        """The forecast, when there is one."""
        return self.found if isinstance(self.found, Forecast) else None

    @property
    def reason(self) -> str | None:
        """Why there is none."""
        return self.found.reason if isinstance(self.found, NoForecast) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusualSpend:
    """An anomaly with what it is of and who caused it.

    Attributes:
        dimension, name: what cost more than usual; `all` spend together has no name.
        contributors: what changed most against the day before it began, by template and user.
    """

    dimension: str
    name: str | None
    currency: str
    anomaly: Anomaly
    contributors: tuple[CostRow, ...]

    @property
    def by(self) -> tuple[str, ...]:
        """The dimensions of the contributors."""
        return DEFAULT_BY if self.name is None else ("user", "template")


def daily_spend(
    store: TelemetryStore,
    filters: CostFilters,
    rules: GroupRules,
    clock: Clock,
    *,
    days: int,
    by: str | None = None,
) -> tuple[str, dict[str | None, dict[date, Decimal]]]:
    """Currency, and spend per day up to today, per value of a dimension (None: all together)."""
    today = clock().astimezone(UTC).date()
    spanned = replace(filters, window=f"{today - days * _DAY}/{today}")
    asked = Asked(store, spanned, rules, clock, (by,) if by else (), compare=False)
    shown: list[str] = []
    if by is not None:
        largest = cost_report(store, spanned, rules, clock, by=(by,), limit=MOST_SCOPES)
        shown = [row.first for row in largest.firsts[:MOST_SCOPES] if row.first]
    table = asked.read(SERIES_SQL, SERIES_BUCKET, step_us=_DAY_US, shown=shown, rest=REST)
    found: dict[str | None, dict[date, Decimal]] = {}
    for row in table.to_pylist():
        name = row["name"] if by else None
        found.setdefault(name, {})[row["bucket_at"].astimezone(UTC).date()] = row["cost"]
    return asked.currency, found


def period_of(period: str, today: date) -> tuple[date, date]:
    """The calendar period a day lies in: its first day, and the first day after it.

    Raises:
        FilterError: there is no such period.
    """
    if period == "day":
        return today, today + _DAY
    if period == "week":
        start = today - today.weekday() * _DAY
        return start, start + 7 * _DAY
    if period != "month":
        raise FilterError(f"Period {period!r} is not known. Use: day, week, month.")
    start = today.replace(day=1)
    return start, (start + 31 * _DAY).replace(day=1)


def spend_forecast(
    store: TelemetryStore,
    filters: CostFilters,
    rules: GroupRules,
    clock: Clock,
    *,
    period: str = "month",
) -> PeriodForecast:
    """What the running period will have cost at its end; the filters' window plays no part."""
    today = clock().astimezone(UTC).date()
    start, end = period_of(period, today)
    reach = max(HISTORY_DAYS, (today - start).days)
    currency, series = daily_spend(store, filters, rules, clock, days=reach)
    days = dict(series.get(None, {}))
    spent_today = days.pop(today, ZERO)
    return PeriodForecast(
        period=period,
        start=start,
        end=end,
        currency=currency,
        found=forecast(days, today, spent_today, start, end),
    )


def unusual_spend(
    store: TelemetryStore,
    rules: GroupRules,
    settings: AnomalySettings,
    clock: Clock,
    *,
    days: int = 7,
    filters: CostFilters | None = None,
) -> tuple[UnusualSpend, ...]:
    """Unusual days of the last ones, of everything together, each engine and each workload.

    The newest first; of one day the largest excess first.
    """
    today = clock().astimezone(UTC).date()
    asked = filters or CostFilters()
    found: list[UnusualSpend] = []
    for dimension in (None, *SCOPES):
        reach = 2 * settings.history + days  # a run may have begun a history ago
        currency, series = daily_spend(store, asked, rules, clock, days=reach, by=dimension)
        for name, spent in series.items():
            if name == REST:
                continue
            found += [
                UnusualSpend(
                    dimension=dimension or "all",
                    name=name,
                    currency=currency,
                    anomaly=one,
                    contributors=(),
                )
                for one in anomalies(spent, today - (days - 1) * _DAY, today, settings)
            ]
    ordered = sorted(found, key=lambda one: (one.anomaly.day, one.anomaly.excess), reverse=True)
    return tuple(
        replace(one, contributors=_contributors(store, asked, rules, clock, one)) for one in ordered
    )


def _contributors(
    store: TelemetryStore,
    filters: CostFilters,
    rules: GroupRules,
    clock: Clock,
    one: UnusualSpend,
) -> tuple[CostRow, ...]:
    """What changed most, by template and user, against the day before."""
    day = one.anomaly.day
    narrowed = replace(filters, window=f"{day}/{day}", currency=one.currency)
    if one.name is not None:
        narrowed = replace(narrowed, **{one.dimension: one.name})
    report = cost_report(store, narrowed, rules, clock, by=one.by, limit=200)
    grown = [row for row in report.rows if row.change > 0]
    return tuple(sorted(grown, key=lambda row: row.change, reverse=True)[:5])
