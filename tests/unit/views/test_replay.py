"""Replay: the same reads under other rules and prices, from what was measured."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.views.replay import choices_of, replay
from tests.unit.views.conftest import Shelf, clock
from tests.unit.views.past import cost, ran

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config

ALL_TO_DUCKDB = {"routingFallback": "duckdb"}


def with_routing(config: Config, **routing: Any) -> Config:
    fresh = type(config.routing).model_validate(routing)
    return config.model_copy(update={"routing": fresh})


def fill(store: Shelf) -> None:
    ran(store, "t1", "trino", [4.0] * 10)
    ran(store, "t1", "duckdb", [1.0] * 10)
    ran(store, "t2", "trino", [1.0] * 10)
    cost(store, {("t1", "trino"): "0.4", ("t1", "duckdb"): "0.1", ("t2", "trino"): "0.1"})


@pytest.mark.slow
def test_other_rules_move_what_they_claim_and_say_what_it_costs(
    store: Shelf, demo_config: Config
) -> None:
    fill(store)
    other = with_routing(demo_config, **ALL_TO_DUCKDB)
    found = replay(store.store, clock, window="7d", running=demo_config, other=other)
    (move,) = found.moves
    assert (move.template_id, move.engine, move.to, move.runs) == ("t1", "trino", "duckdb", 10)
    assert (move.cost_before, move.cost_after) == (Decimal(4), Decimal(1))
    assert found.cost is not None
    assert (found.cost.before, found.cost.after) == (Decimal(5), Decimal(2))
    assert isinstance(found.cost.high, Decimal)
    assert found.seconds is not None
    assert found.seconds.after == pytest.approx(20.0)


@pytest.mark.slow
def test_reads_without_evidence_are_listed_apart(store: Shelf, demo_config: Config) -> None:
    fill(store)
    other = with_routing(demo_config, **ALL_TO_DUCKDB)
    found = replay(store.store, clock, window="7d", running=demo_config, other=other)
    (unknown,) = found.without_evidence
    assert (unknown.template_id, unknown.to) == ("t2", "duckdb")
    assert unknown.cost_after is None
    assert (found.runs, found.moved_runs, found.compared_runs) == (30, 20, 20)


@pytest.mark.slow
def test_other_prices_change_the_cost_and_nothing_else(store: Shelf, demo_config: Config) -> None:
    fill(store)
    same = with_routing(demo_config, routingFallback="trino")
    price = same.prices.book["trino"]
    dear = price.model_copy(update={"list_price": price.list_price * 2})
    prices = same.prices.model_copy(update={"book": same.prices.book | {"trino": dear}})
    dearer = same.model_copy(update={"prices": prices})
    before = replay(store.store, clock, window="7d", running=same, other=same)
    after = replay(store.store, clock, window="7d", running=same, other=dearer)
    assert before.cost is not None
    assert after.cost is not None
    assert before.cost.after == Decimal(9)
    assert after.cost.after == Decimal(18)
    assert after.seconds == before.seconds


@pytest.mark.slow
def test_a_strategy_by_prediction_chooses_by_what_was_run(
    store: Shelf, demo_config: Config
) -> None:
    fill(store)
    both = {"enabled": True, "members": ["trino", "duckdb"]}
    group = both | {"strategy": {"type": "latencyOptimized"}}
    other = with_routing(demo_config, clusterGroups={"both": group}, routingFallback="both")
    found = replay(store.store, clock, window="7d", running=demo_config, other=other)
    assert [(one.template_id, one.to) for one in found.moves] == [("t1", "duckdb")]
    assert any("prediction" in one for one in found.caveats)


@pytest.mark.slow
def test_the_rules_alone_choose_an_engine_per_template(store: Shelf, demo_config: Config) -> None:
    fill(store)
    config = with_routing(demo_config, **ALL_TO_DUCKDB)
    found = choices_of(store.store, clock, window="7d", config=config)
    assert found == {("t1", None): "duckdb", ("t2", None): "duckdb"}
