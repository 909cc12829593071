"""The budgets agent: budgets and unusual days told to people, once each, until they have heard."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agents.runs import Result
from lakehouse_core.finops.alerts import Alert, Contributor, deliver
from lakehouse_core.finops.groups import group_rules
from lakehouse_core.finops.spend import DAY
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views import formatting as f
from lakehouse_core.views.budgets import (
    KNOWN_ALERTS_SQL,
    OPEN_ALERTS_SQL,
    alert_of,
    budget_statuses,
)
from lakehouse_core.views.forecasts import unusual_spend

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from decimal import Decimal

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore
    from lakehouse_core.views.budgets import BudgetStatus
    from lakehouse_core.views.costs import CostRow
    from lakehouse_core.views.forecasts import UnusualSpend


def run_once(store: OwnerStore, config: Config, clock: Clock) -> Result:
    """Raise alerts about budgets and unusual days, once each, and deliver what is due."""
    now = clock()
    rules = group_rules(config.workload_groups, config.finops)
    since = now - 40 * DAY  # longer than any period of a budget
    known = set(store.read(KNOWN_ALERTS_SQL, since=since).column("alert_id").to_pylist())
    statuses = budget_statuses(store, config.finops.budgets, rules, clock)
    found = [alert for status in statuses for alert in budget_alerts(status, now)]
    if config.finops.anomalies.enabled:
        unusual = unusual_spend(store, rules, config.finops.anomalies, clock, days=2)
        found += [anomaly_alert(one, config.finops.anomalies.notify, now) for one in unusual]
    new = {alert.alert_id: alert for alert in found if alert.alert_id not in known}
    if new:
        store.upsert("alert", to_arrow("alert", list(new.values())))
    due = [alert_of(row) for row in store.read(OPEN_ALERTS_SQL, now=now).to_pylist()]
    sent = [deliver(alert, config.finops.channels, now) for alert in due]
    if sent:
        store.upsert("alert", to_arrow("alert", sent))
    faults = sorted({text for one in sent for text in one.delivered.values() if "failed" in text})
    return Result(
        rows=len(new) + len(sent), error="; ".join(faults) or None, is_partial=bool(faults)
    )


def budget_alerts(status: BudgetStatus, now: datetime) -> Iterator[Alert]:
    """The share that was passed last, and a forecast above the amount."""
    budget = status.budget
    start = datetime.combine(status.start, datetime.min.time(), UTC)
    who = tuple(_contributors(status.report.by, status.report.rows))
    told = _Told(status.name, status.scope, budget.currency, start, who, budget.notify, now)
    what = f"What: {status.scope}, {budget.period} from {status.start}."
    amount = told.money(budget.amount)
    if status.passed is not None:
        share = f"{status.passed:.0%}"
        spent = f"{told.money(status.spent)} of {amount} ({f.percent(float(status.ratio))})"
        yield told.alert(
            kind="budget",
            number=f"{status.start}:{share}",
            title=f"Budget {status.name}: {share} of {amount} spent",
            lines=(what, f"How much: {spent}."),
            amount=status.spent,
            expected=budget.amount,
        )
    ahead = status.ahead.forecast if budget.alert_on_forecast and status.ratio < 1 else None
    if ahead is not None and ahead.expected > budget.amount:
        span = f"{told.money(ahead.low)} to {told.money(ahead.high)}"
        end = f"{told.money(ahead.expected)} expected ({span}) of {amount}"
        basis = f"{told.money(ahead.spent)} so far; {ahead.method}, {ahead.n} days"
        yield told.alert(
            kind="forecast",
            number=f"{status.start}:forecast",
            title=f"Budget {status.name} will not last: {told.money(ahead.expected)} expected",
            lines=(what, f"How much: {end}; {basis}."),
            amount=ahead.expected,
            expected=budget.amount,
        )


def anomaly_alert(one: UnusualSpend, notify: tuple[str, ...], now: datetime) -> Alert:
    """A day that cost more than usual; a run of such days is told once."""
    seen = one.anomaly
    subject = "all spend" if one.name is None else f"{one.dimension} {one.name}"
    since = datetime.combine(seen.since, datetime.min.time(), UTC)
    who = tuple(_contributors(one.by, one.contributors, is_change=True))
    told = _Told(subject, subject, one.currency, since, who, notify, now)
    usual = f"usually {told.money(seen.usual)} (median of {seen.n} days)"
    return told.alert(
        kind="anomaly",
        number=f"{seen.since}",
        title=f"Unusual spend: {subject} cost {told.money(seen.amount)} on {seen.day}",
        lines=(f"What: {subject}.", f"How much: {told.money(seen.amount)}, {usual}."),
        amount=seen.amount,
        expected=seen.usual,
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """What the alerts of one subject have in common."""

    subject: str
    scope: str
    currency: str
    since: datetime
    who: tuple[Contributor, ...]
    notify: tuple[str, ...]
    now: datetime

    def money(self, amount: Decimal | None, *, signed: bool = False) -> str:
        return f.money(amount, self.currency, signed=signed)

    def alert(
        self,
        *,
        kind: str,
        number: str,
        title: str,
        lines: tuple[str, ...],
        amount: Decimal,
        expected: Decimal,
    ) -> Alert:
        causes = "; ".join(
            f"{one.name} {f.money(one.amount, self.currency)}"
            + (
                ""
                if one.change is None
                else f" ({f.money(one.change, self.currency, signed=True)})"
            )
            for one in self.who
        )
        body = [*lines, f"Since: {self.since:%Y-%m-%d %H:%M} UTC."]
        body.append(f"Who: {causes}." if causes else "Who: nobody stands out.")
        return Alert(
            alert_id=f"{kind}:{self.subject}:{number}",
            kind=kind,
            subject=self.subject,
            scope=self.scope,
            title=title,
            body="\n".join(body),
            since=self.since,
            raised_at=self.now,
            amount=amount,
            expected=expected,
            currency=self.currency,
            who=self.who,
            channels=self.notify,
            delivered={},
            settled=not self.notify,
        )


def _contributors(
    by: tuple[str, ...], rows: Iterable[CostRow], *, is_change: bool = False
) -> Iterator[Contributor]:
    ordered = sorted(rows, key=lambda row: row.change if is_change else row.cost, reverse=True)
    for row in ordered[:5]:
        yield Contributor(dimension=",".join(by), name=row.name, amount=row.cost, change=row.change)
