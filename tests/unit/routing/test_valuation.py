"""What a run costs by the price book."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from lakehouse_core.config.pricebook import PricesConfig
from lakehouse_core.routing.valuation import PricedRuns
from tests.factories import NOW

PRICES = {
    "list_prices": False,
    "book": {
        "nodes": {"engine": "trino", "unit": "node_hour", "nodes": 4, "list_price": "0.9"},
        "cores": {"engine": "duckdb", "unit": "core_hour", "list_price": "0.036"},
        "bytes": {
            "engine": "athena",
            "unit": "tb_scanned",
            "list_price": "5",
            "minimum_bytes": "10MB",
        },
    },
}


def cost(engine: str, seconds: float, size: float = np.nan, **book: object) -> float:
    config = PricesConfig.model_validate(PRICES | {"book": PRICES["book"] | book})  # type: ignore[operator] # both are dictionaries
    made = config.book_of(config.all_prices(NOW))
    priced = PricedRuns(made, {"duckdb": 2}, lambda: NOW)
    return float(priced(engine, np.array([seconds]), np.array([size]))[0])


def test_time_is_paid_by_nodes_or_cores() -> None:
    assert cost("trino", 10.0) == pytest.approx(0.01)
    assert cost("duckdb", 10.0) == pytest.approx(0.0002)


def test_bytes_are_paid_with_a_minimum_and_unknown_without_them() -> None:
    assert cost("athena", 10.0, 2e12) == pytest.approx(10.0)
    assert cost("athena", 10.0, 5.0) == pytest.approx(5e-5)
    assert cost("athena", 10.0, 0.0) == 0.0
    assert np.isnan(cost("athena", 10.0))


def test_an_engine_without_a_price_is_unknown_not_free() -> None:
    assert np.isnan(cost("spark", 10.0))


def test_the_price_of_the_moment_counts() -> None:
    dearer = {
        "engine": "duckdb",
        "unit": "core_hour",
        "list_price": "0.36",
        "valid_from": (NOW - timedelta(days=1)).isoformat(),
    }
    assert cost("duckdb", 10.0, dearer=dearer) == pytest.approx(0.002)
