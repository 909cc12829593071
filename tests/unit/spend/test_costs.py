from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from agents.costs import DayCosts
from lakehouse_core.config.finops import FinOpsConfig, parse_groups
from lakehouse_core.domain.errors import FilterError
from lakehouse_core.finops.groups import group_rules
from lakehouse_core.finops.spend import DIMENSIONS
from lakehouse_core.views.cost_detail import FOLLOWED, dearest_queries, storage_costs, unit_costs
from lakehouse_core.views.costs import CostFilters, cost_report, cost_series
from lakehouse_core.views.groups import group_change, rule_hits
from lakehouse_core.views.spend_words import not_applied
from tests.ui.scenario import rows_of
from tests.unit.spend.conftest import NOW, RULES, clock, fill, rules
from tests.unit.spend.ledger import HOUR, Ledger, Part

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore

METERED_SQL = """
SELECT sum(cost) AS cost FROM charge WHERE hour_at >= $start::TIMESTAMPTZ
"""


def metered(store: OwnerStore, since: datetime) -> Decimal:
    found: Decimal = store.read(METERED_SQL, start=since).column("cost")[0].as_py()
    return found


@pytest.mark.parametrize("by", [*permutations(("engine", "workload", "table"), 2), ("team",)])
def test_rows_of_any_dimensions_add_up_to_what_was_metered(
    filled: OwnerStore, by: tuple[str, ...]
) -> None:
    report = cost_report(filled, CostFilters(window="7d"), rules(), clock, by=by, limit=10_000)
    expected = metered(filled, report.start)
    assert sum(row.cost for row in report.rows) == expected
    assert sum(row.cost for row in report.firsts) == expected
    assert report.total.cost == expected
    assert report.reconciliation.metered == expected
    assert report.reconciliation.difference == 0


@pytest.mark.parametrize("name", DIMENSIONS)
def test_every_dimension_can_be_asked_by(filled: OwnerStore, name: str) -> None:
    report = cost_report(filled, CostFilters(window="24h"), rules(), clock, by=(name,))
    assert sum(row.cost for row in report.rows) == report.total.cost
    assert all(row.first for row in report.rows)


def test_idle_and_unallocated_are_rows_and_shares(filled: OwnerStore) -> None:
    report = cost_report(filled, CostFilters(window="7d"), rules(), clock, by=("workload",))
    names = {row.first for row in report.rows}
    assert {"idle", "unallocated", "storage", "etl", "dashboards", "other"} == names
    idle = next(row for row in report.rows if row.first == "idle")
    assert report.kinds["idle"] == idle.cost
    assert report.share_of("idle") == pytest.approx(float(idle.cost / report.total.cost))
    assert report.basis.provisional_from == datetime(2026, 11, 16, 10, tzinfo=UTC)


def test_the_window_before_is_of_the_same_length_and_right_before(filled: OwnerStore) -> None:
    report = cost_report(filled, CostFilters(window="3d"), rules(), clock, by=("engine",))
    assert report.start - report.before_start == timedelta(days=3)
    whole = metered(filled, report.before_start)
    assert report.total.before == whole - report.total.cost


def test_filters_narrow_the_rows_but_not_the_reconciliation(filled: OwnerStore) -> None:
    filters = CostFilters(window="7d", workload="etl")
    report = cost_report(filled, filters, rules(), clock, by=("user",))
    assert {row.first for row in report.rows} == {"etl_nightly"}
    assert report.reconciliation.difference == 0
    assert report.total.cost < report.reconciliation.rows
    trino = cost_report(filled, CostFilters(window="7d", engine="trino"), rules(), clock)
    assert {row.first for row in trino.rows} == {"trino"}
    assert trino.reconciliation.metered == trino.total.cost


@pytest.mark.slow
def test_days_that_are_added_up_give_the_same_report(empty: OwnerStore) -> None:
    fill(empty)
    filters = CostFilters(window="6d")
    by = ("workload", "user")
    asked = {"by": by, "limit": 10_000}
    from_hours = cost_report(empty, filters, rules(), clock, **asked)
    series = cost_series(empty, CostFilters(window="10d"), rules(), clock, by="engine")[2]
    assert DayCosts(empty, clock).run_once().rows == 14
    assert empty.read("SELECT count(*) AS days FROM cost_day_total").column("days")[0].as_py() == 14
    from_days = cost_report(empty, filters, rules(), clock, **asked)
    assert from_days == from_hours
    again = cost_series(empty, CostFilters(window="10d"), rules(), clock, by="engine")[2]
    assert again.equals(series)


@pytest.mark.slow
def test_a_day_that_changed_after_it_was_added_up_is_read_from_its_hours(
    empty: OwnerStore,
) -> None:
    fill(empty)
    agent = DayCosts(empty, clock)
    agent.run_once()
    late = Ledger()
    late.charge(NOW.replace(minute=0) - 30 * HOUR, "athena", Part(cost="5", user="late"))
    late.write(empty)
    report = cost_report(empty, CostFilters(window="7d"), rules(), clock, by=("engine",))
    assert report.reconciliation.difference == 0
    assert {row.first for row in report.rows} >= {"athena"}
    assert agent.run_once().rows >= 1
    assert cost_report(empty, CostFilters(window="7d"), rules(), clock, by=("engine",)) == report


def test_currencies_are_never_added(empty: OwnerStore) -> None:
    ledger = Ledger()
    ledger.charge(NOW.replace(minute=0), "trino", Part(cost="3", user="ana"))
    ledger.charge(NOW.replace(minute=0), "athena", Part(cost="2", user="ana"), currency="EUR")
    ledger.write(empty)
    report = cost_report(empty, CostFilters(window="24h"), rules(), clock, by=("engine",))
    assert (report.currency, report.total.cost) == ("USD", Decimal(3))
    assert report.basis.other_currencies == {"EUR": Decimal(2)}
    euros = CostFilters(window="24h", currency="EUR")
    assert cost_report(empty, euros, rules(), clock, by=("engine",)).total.cost == 2


def test_what_has_no_price_is_said_not_shown_as_zero(empty: OwnerStore) -> None:
    ledger = Ledger()
    ledger.charge(NOW.replace(minute=0), "trino", Part(cost="0", user="ana"), basis="unpriced")
    ledger.write(empty)
    report = cost_report(empty, CostFilters(window="24h"), rules(), clock, by=("engine",))
    assert report.basis.unpriced == 1
    assert report.basis.unpriced_engines == ("trino",)
    assert report.basis.bases == ()


def test_a_dimension_nobody_knows_is_refused_with_the_known_ones(filled: OwnerStore) -> None:
    with pytest.raises(FilterError, match="workload"):
        cost_report(filled, CostFilters(), rules(), clock, by=("color",))
    with pytest.raises(FilterError, match="one or two"):
        cost_report(filled, CostFilters(), rules(), clock, by=("engine", "user", "team"))


def test_other_rules_move_spend_and_lose_none(filled: OwnerStore) -> None:
    new = group_rules(
        parse_groups("[{name: nights, when: {user: 'etl_*'}}]"), FinOpsConfig(), prefix="new"
    )
    found = group_change(filled, CostFilters(window="7d"), rules(), new, clock)
    moves = {(move.before, move.after) for move in found.moves}
    assert moves == {("etl", "nights"), ("dashboards", "other"), ("other", "other")}
    report = cost_report(filled, CostFilters(window="7d"), rules(), clock, by=("workload",))
    by_group = {row.first: row.cost for row in report.rows}
    assert found.total == by_group["etl"] + by_group["dashboards"] + by_group["other"]
    assert found.moved == by_group["etl"] + by_group["dashboards"]
    same = replace(rules())
    _, hits = rule_hits(filled, CostFilters(window="7d"), same, clock)
    assert [(hit.workload, hit.cost) for hit in hits] == [
        (name, by_group[name]) for name in ("etl", "dashboards", "other")
    ]


def test_a_rule_of_another_team_or_cost_center_moves_its_spend(filled: OwnerStore) -> None:
    text = RULES.replace("Platform", "Data").replace("team: Analytics", "cost_center: '9'")
    new = group_rules(parse_groups(text), FinOpsConfig(), prefix="new")
    found = group_change(filled, CostFilters(window="7d"), rules(), new, clock)
    moved = {one.before: one for one in found.moves if one.is_moved}
    assert set(moved) == {"etl", "dashboards"}
    assert (moved["etl"].before_team, moved["etl"].after_team) == ("Platform", "Data")
    assert (moved["dashboards"].before_center, moved["dashboards"].after_center) == (None, "9")


def test_a_cost_center_is_a_filter(filled: OwnerStore) -> None:
    whole = cost_report(filled, CostFilters(), rules(), clock, by=("cost_center",))
    costs = {row.first: row.cost for row in whole.rows}
    asked = CostFilters(cost_center="4711")
    assert cost_report(filled, asked, rules(), clock).total.cost == costs["4711"]


def test_the_sum_of_the_rows_is_of_the_rows_shown(filled: OwnerStore) -> None:
    whole = cost_report(filled, CostFilters(), rules(), clock).reconciliation
    assert whole.shown == whole.metered
    assert whole.beyond == whole.outside == 0
    some = cost_report(filled, CostFilters(user="ana"), rules(), clock, limit=2)
    sums = some.reconciliation
    assert sums.shown == sum(row.cost for row in some.rows)
    assert sums.beyond > 0
    assert sums.outside == sums.metered - some.total.cost
    assert sums.difference == 0


@pytest.mark.parametrize(
    "given",
    [{"workload": "etl"}, {"team": "Platform"}, {"cost_center": "4711"}, {"table": "lake.b.z"}],
)
def test_dearest_queries_follow_every_filter(filled: OwnerStore, given: dict[str, str]) -> None:
    _, rows = dearest_queries(filled, CostFilters(**given), rules(), clock, limit=1_000)
    _, everyone = dearest_queries(filled, CostFilters(), rules(), clock, limit=1_000)
    if "table" in given:
        wanted = [row for row in everyone if row.template_id == "t1"]
    else:
        wanted = [row for row in everyone if (row.user_name or "").startswith("etl_")]
    assert 0 < len(wanted) < len(everyone)
    assert {row.query_id for row in wanted} <= {row.query_id for row in rows}
    assert all(row in wanted or row not in everyone for row in rows)


def test_a_table_says_which_filters_it_does_not_follow() -> None:
    asked = CostFilters(engine="trino", user="ana", cost_center="1")
    assert not_applied(asked, FOLLOWED["queries"]) == ""
    assert "the filter for cost center, user does not" in not_applied(asked, FOLLOWED["units"])


def test_dearest_queries_come_first(filled: OwnerStore) -> None:
    currency, rows = dearest_queries(
        filled, CostFilters(window="7d", user="ana"), rules(), clock, limit=20
    )
    assert currency == "USD"
    assert {row.user_name for row in rows} == {"ana"}
    assert [row.cost for row in rows] == sorted((row.cost for row in rows), reverse=True)


def test_storage_is_divided_by_the_bytes_of_the_tables(empty: OwnerStore) -> None:
    fill(empty)
    tables = [
        {"table_id": f"lake.a.{name}", "catalog": "lake", "namespace": "a", "table_name": name}
        | {"seen_at": NOW}
        for name in ("x", "y")
    ]
    empty.upsert("lake_table", rows_of("lake_table", tables))
    from lakehouse_core.store.rows import to_arrow  # noqa: PLC0415 only here
    from tests.factories import table_metrics  # noqa: PLC0415 only here

    sizes = [
        table_metrics(table_id="lake.a.x", total_bytes=3_000),
        table_metrics(table_id="lake.a.y", total_bytes=1_000),
    ]
    empty.upsert("table_metrics", to_arrow("table_metrics", sizes))
    _, rows = storage_costs(empty, CostFilters(window="24h"), clock)
    assert [(row.table_id, row.storage_class) for row in rows] == [
        ("lake.a.x", "standard"),
        ("lake.a.y", "standard"),
    ]
    assert rows[0].cost == pytest.approx(Decimal("0.010000003") * 25 * 3 / 4)


def test_unit_costs_are_of_everything_an_engine_cost(filled: OwnerStore) -> None:
    _, rows = unit_costs(filled, CostFilters(window="7d"), clock)
    report = cost_report(filled, CostFilters(window="7d"), rules(), clock, by=("engine",))
    costs = {row.first: row for row in report.rows}
    assert {row.engine_id for row in rows} == {"trino", "spark"}
    for row in rows:
        assert row.cost == costs[row.engine_id].cost
        assert row.per_thousand == row.cost * 1000 / costs[row.engine_id].queries
        assert row.per_tb is None
