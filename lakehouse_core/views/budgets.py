"""Budgets: how much of each is spent, what the forecast says, and which alerts were raised."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from lakehouse_core.finops.alerts import Alert, Contributor
from lakehouse_core.views.costs import CostFilters, cost_report
from lakehouse_core.views.forecasts import spend_forecast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.config.finops import Budget
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.finops.groups import GroupRules
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.costs import CostReport
    from lakehouse_core.views.forecasts import PeriodForecast

State = Literal["healthy", "warning", "critical"]
SCOPE = ("engine", "workload", "team", "user")
ALERTS_SQL = """
SELECT * FROM alert WHERE raised_at >= $since::TIMESTAMPTZ
ORDER BY raised_at DESC, alert_id LIMIT $limit::BIGINT
"""
OPEN_ALERTS_SQL = """
SELECT * FROM alert WHERE NOT settled AND (next_try_at IS NULL OR next_try_at <= $now::TIMESTAMPTZ)
ORDER BY raised_at, alert_id
"""
KNOWN_ALERTS_SQL = "SELECT alert_id FROM alert WHERE raised_at >= $since::TIMESTAMPTZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStatus:
    """A budget in its running period.

    Attributes:
        scope: what counts, in words.
        spent: so far.
        ratio: of the amount.
        passed: the share of `alert_at` that was passed last; None: none was.
        ahead: what the period will have cost.
        state: critical when it is used up, warning when a share was passed or the forecast is above
            it.
        report: what it was spent on, against the period before.
    """

    name: str
    budget: Budget
    scope: str
    start: date
    end: date
    spent: Decimal
    ratio: Decimal
    passed: float | None
    ahead: PeriodForecast
    state: State
    report: CostReport


def budget_statuses(
    store: TelemetryStore, budgets: Mapping[str, Budget], rules: GroupRules, clock: Clock
) -> tuple[BudgetStatus, ...]:
    """Every budget of the configuration, the fullest first."""
    found = [_status(store, name, one, rules, clock) for name, one in budgets.items()]
    return tuple(sorted(found, key=lambda one: (-one.ratio, one.name)))


def _status(
    store: TelemetryStore, name: str, budget: Budget, rules: GroupRules, clock: Clock
) -> BudgetStatus:
    scope = {one: getattr(budget, one) for one in SCOPE}
    filters = CostFilters(**scope, currency=budget.currency)
    ahead = spend_forecast(store, filters, rules, clock, period=budget.period)
    today = clock().astimezone(UTC).date()
    window = f"{ahead.start}/{today}"
    by = next((two for two in (("workload", "user"), ("user", "template")) if not scope[two[0]]),
              ("template",))  # fmt: skip
    report = cost_report(
        store, CostFilters(**scope, currency=budget.currency, window=window), rules, clock, by=by
    )
    spent = ahead.found.spent
    ratio = spent / budget.amount
    passed = max((one for one in budget.alert_at if ratio >= Decimal(str(one))), default=None)
    is_above = ahead.forecast is not None and ahead.forecast.expected > budget.amount
    state: State = "warning" if passed is not None or is_above else "healthy"
    return BudgetStatus(
        name=name,
        budget=budget,
        scope=scope_words(scope),
        start=ahead.start,
        end=ahead.end,
        spent=spent,
        ratio=ratio,
        passed=passed,
        ahead=ahead,
        state="critical" if ratio >= 1 else state,
        report=report,
    )


def scope_words(scope: Mapping[str, str | None]) -> str:
    """What counts: `engine trino, team Finance`, or `all spend`."""
    return ", ".join(f"{name} {value}" for name, value in scope.items() if value) or "all spend"


def list_alerts(
    store: TelemetryStore, clock: Clock, *, days: int = 90, limit: int = 200
) -> tuple[Alert, ...]:
    """The alerts of the last days, the newest first."""
    since = datetime.fromtimestamp(clock().timestamp() - days * 86_400, UTC)
    rows = store.read(ALERTS_SQL, since=since, limit=limit).to_pylist()
    return tuple(alert_of(row) for row in rows)


def alert_of(row: dict[str, Any]) -> Alert:
    """An alert from its row."""
    values = dict(row)
    who = json.loads(values.pop("who"))
    values["who"] = tuple(_contributor(one) for one in who)
    values["delivered"] = json.loads(values["delivered"])
    values["channels"] = tuple(values["channels"])
    return Alert(**values)


def _contributor(one: dict[str, str | None]) -> Contributor:
    change = one.get("change")
    return Contributor(
        dimension=str(one["dimension"]),
        name=str(one["name"]),
        amount=Decimal(str(one["amount"])),
        change=None if change is None else Decimal(change),
    )
