"""The workloads of the layout benchmark: engine, runs and conditions with literals by lot."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np


@dataclass(frozen=True)
class Shape:
    """A workload: engine, runs and the conditions of its texts."""

    name: str
    parts: tuple[tuple[str, int, Any], ...]
    is_selective: bool = True
    is_useless: bool = False
    is_bucketed: bool = False


def moment(rng: np.random.Generator, days: int) -> str:
    start = 1_790_000_000 + int(rng.integers(0, (90 - days) * 86_400))
    ends = [datetime.fromtimestamp(start + n * 86_400, UTC) for n in (0, days)]
    first, last = (f"TIMESTAMP '{one:%Y-%m-%d %H:%M:%S} UTC'" for one in ends)
    return f"at >= {first} AND at < {last}"


def amounts(rng: np.random.Generator) -> str:
    start = int(rng.integers(0, 9_900))
    return f"amount BETWEEN {start} AND {start + 50}"


def of(text: str, *highs: int) -> Any:
    return lambda rng: text.format(*(int(rng.integers(0, high)) for high in highs))


def shapes(rows: int) -> tuple[Shape, ...]:
    order = of("order_id = {}", rows * 10)
    customer, sku = of("customer = {}", 50_000), of("sku = 'sku-{:06}'", 20_000)
    return (
        Shape("single key", (("trino", 400, order),)),
        Shape(
            "range and key",
            (
                ("trino", 300, lambda r: f"{moment(r, 7)} AND {customer(r)}"),
                ("spark", 60, lambda r: moment(r, 3)),
            ),
        ),
        Shape("two engines", (("trino", 300, customer), ("duckdb", 300, sku))),
        Shape("time range", (("spark", 200, lambda r: moment(r, 2)),)),
        Shape(
            "skew",
            (("trino", 300, lambda r: f"seller = {int((1 - r.random()) ** -0.9)}"),),
            is_selective=False,
        ),
        Shape("texts", (("duckdb", 300, sku), ("duckdb", 100, of("sku LIKE 'sku-{:04}%'", 200)))),
        Shape(
            "nulls",
            (("trino", 200, of("coupon = {}", 900)), ("trino", 20, of("coupon IS NOT NULL"))),
        ),
        Shape(
            "correlated", (("trino", 200, of("household = {}", 5_000)), ("duckdb", 200, customer))
        ),
        Shape(
            "lists and OR",
            (
                ("trino", 200, of("customer IN ({}, {}, {})", 50_000, 50_000, 50_000)),
                ("spark", 100, of("customer = {} OR customer = {}", 50_000, 50_000)),
            ),
        ),
        *_harder(customer, sku),
    )


def _harder(customer: Any, sku: Any) -> tuple[Shape, ...]:
    return (
        Shape(
            "three keys",
            (
                ("trino", 200, customer),
                ("duckdb", 200, sku),
                ("spark", 100, lambda r: moment(r, 5)),
            ),
            is_selective=False,
        ),
        Shape(
            "few values and key",
            (
                (
                    "trino",
                    200,
                    lambda r: (
                        f"country = '{('DE', 'FR', 'US')[int(r.integers(0, 3))]}' AND {customer(r)}"
                    ),
                ),
                ("duckdb", 50, customer),
            ),
        ),
        Shape(
            "hash partitions",
            (("trino", 300, customer), ("duckdb", 300, sku)),
            is_selective=False,
            is_bucketed=True,
        ),
        Shape(
            "decimals",
            (("spark", 200, amounts),),
        ),
        Shape(
            "no useful predicate",
            (
                ("trino", 300, of("lower(country) = 'de'")),
                ("duckdb", 200, of("url = 'https://shop.example.com/item/{}'", 20_000)),
                ("spark", 50, of("score <> 0.5")),
            ),
            is_selective=False,
            is_useless=True,
        ),
    )


def many(count: int) -> Iterator[Any]:
    """Conditions of so many templates."""
    makers = (
        of("customer = {}", 50_000),
        of("sku = 'sku-{:06}'", 20_000),
        lambda r: moment(r, 3),
        of("seller = {}", 100),
    )
    for number in range(count):
        first, second = makers[number % 4], makers[(number // 4) % 4]
        yield first if first is second else (lambda r, a=first, b=second: f"{a(r)} AND {b(r)}")
