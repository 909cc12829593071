"""The route agent: the regret reaches the metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents import route
from lakehouse_core.gateway.facts import read_facts
from lakehouse_core.gateway.metrics import Steady, render
from tests.factories import NOW
from tests.unit.views.past import ran

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.store.owner import OwnerStore


def test_the_regret_becomes_a_gauge(store: OwnerStore, demo_config: Config) -> None:
    ran(store, "t1", "trino", [3.0] * 10)
    ran(store, "t1", "duckdb", [1.0] * 10)
    assert route.run_once(store, demo_config, lambda: NOW).rows == 2
    body, _ = render(read_facts(store, lambda: NOW), Steady(), "text/plain")
    text = body.decode()
    assert 'lakehouse_routing_regret_ratio{baseline="oracle",measure="seconds"} 1.0' in text
    assert 'lakehouse_routing_evidence_ratio{measure="seconds"} 1.0' in text


def test_without_evidence_there_is_no_gauge(store: OwnerStore, demo_config: Config) -> None:
    assert route.run_once(store, demo_config, lambda: NOW).rows == 0
    body, _ = render(read_facts(store, lambda: NOW), Steady(), "text/plain")
    assert "lakehouse_routing_regret_ratio{" not in body.decode()
