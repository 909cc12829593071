"""Workload groups: what each rule catches, and what other rules would move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.config.finops import parse_groups
from lakehouse_core.finops.groups import group_rules
from lakehouse_core.finops.spend import Spend, whole_hour
from lakehouse_core.views.costs import ZERO, CostFilters, pick_currency
from lakehouse_core.views.rows import records
from lakehouse_core.views.window import Window, parse_window

if TYPE_CHECKING:
    from decimal import Decimal

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.finops.groups import GroupRules
    from lakehouse_core.store.port import TelemetryStore

HITS_SQL = """
SELECT number::BIGINT AS number, sum(cost) AS cost, sum(queries)::BIGINT AS queries,
  count(DISTINCT label_id) AS labels
FROM spend JOIN placed USING (label_id)
WHERE kind = 'query' AND currency = $currency::VARCHAR GROUP BY number ORDER BY number
"""
MOVES_SQL = """
, other AS MATERIALIZED (SELECT label_id, {new_number} AS new_number FROM cost_label)
SELECT * FROM (
SELECT {workload} AS before, {new_workload} AS after, {old_team} AS before_team,
  {new_team} AS after_team, {old_center} AS before_center, {new_center} AS after_center,
  sum(cost) AS cost,
  sum(queries)::BIGINT AS queries, count(DISTINCT label_id) AS labels,
  list(DISTINCT user_name ORDER BY user_name)[1:5] AS users
FROM spend JOIN placed USING (label_id) JOIN other USING (label_id)
WHERE kind = 'query' AND currency = $currency::VARCHAR
GROUP BY ALL) ORDER BY before = after AND before_team IS NOT DISTINCT FROM after_team
  AND before_center IS NOT DISTINCT FROM after_center, cost DESC, before, after
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleHit:
    """A rule and what it caught in the window; the last one is the default group."""

    number: int
    workload: str
    team: str | None
    cost_center: str | None
    cost: Decimal
    queries: int
    labels: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Spend of one group, team and cost center now, and of which ones then."""

    before: str
    after: str
    before_team: str | None
    after_team: str | None
    before_center: str | None
    after_center: str | None
    cost: Decimal
    queries: int
    labels: int
    users: tuple[str, ...]

    @property
    def is_moved(self) -> bool:
        """Whether anything changes."""
        now = (self.before, self.before_team, self.before_center)
        return now != (self.after, self.after_team, self.after_center)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """What other rules would change, over a window."""

    window: Window
    currency: str
    moves: tuple[Move, ...]

    @property
    def moved(self) -> Decimal:
        """How much would be in another group, team or cost center."""
        return sum((move.cost for move in self.moves if move.is_moved), ZERO)

    @property
    def total(self) -> Decimal:
        """All spend of queries; the same before and after."""
        return sum((move.cost for move in self.moves), ZERO)


def rules_of(config: Config, text: str | None = None) -> GroupRules:
    """The rules of the configuration, or those of a text that stand beside them in a statement.

    Raises:
        ConfigError: the text is not a list of rules; says where.
    """
    if text is None:
        return group_rules(config.workload_groups, config.finops)
    return group_rules(parse_groups(text), config.finops, prefix="new")


def rule_hits(
    store: TelemetryStore, filters: CostFilters, rules: GroupRules, clock: Clock
) -> tuple[str, tuple[RuleHit, ...]]:
    """Currency, and every rule in order with what it caught, also those that caught nothing."""
    window = parse_window(filters.window, clock())
    currency = pick_currency(store, filters, window)
    asked = Spend.of(store, rules, window.start, window.end)
    rows = store.read(asked.sql(HITS_SQL), **asked.params, currency=currency).to_pylist()
    caught = {row["number"]: row for row in rows}
    nothing = {"cost": ZERO, "queries": 0, "labels": 0}
    found = []
    for number, place in enumerate(rules.places, 1):
        seen = caught.get(number, nothing)
        found.append(
            RuleHit(
                number=number,
                workload=place.workload,
                team=place.team,
                cost_center=place.cost_center,
                cost=seen["cost"] or ZERO,
                queries=seen["queries"] or 0,
                labels=seen["labels"],
            )
        )
    return currency, tuple(found)


def group_change(
    store: TelemetryStore,
    filters: CostFilters,
    rules: GroupRules,
    new_rules: GroupRules,
    clock: Clock,
) -> GroupChange:
    """What the new rules would move, computed by the very statements that group the costs.

    `new_rules` must have another prefix than `rules`.
    """
    window = parse_window(filters.window, clock())
    currency = pick_currency(store, filters, window)
    asked = Spend.of(store, rules, whole_hour(window.start), window.end)
    old, new = rules.column_sql("number"), new_rules.column_sql("new_number")
    sql = asked.sql(
        MOVES_SQL,
        new_number=new_rules.number_sql,
        old_team=old["team"],
        old_center=old["cost_center"],
        new_workload=new["workload"],
        new_team=new["team"],
        new_center=new["cost_center"],
    )
    table = store.read(sql, **asked.params, **new_rules.params, currency=currency)
    return GroupChange(window=window, currency=currency, moves=records(Move, table))
