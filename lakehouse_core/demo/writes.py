"""What the demo's pipelines write: small batches, often, as pipelines do.

The statements are for engines that write; rows are numbered from a start that grows, so that a run
never repeats the keys of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.demo.statements import COUNTRIES, Template, naive

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from random import Random

    from lakehouse_core.sql.retarget import Value

EVENTS_PER_BATCH = 8
READINGS_PER_BATCH = 4
_KINDS = ("view", "view", "click", "cart", "purchase")
_EVENT = (
    "(:id{n}, :at{n}, :user{n}, :kind{n}, :page{n}, :country{n}, :ms{n}, "
    "CAST(:revenue{n} AS DECIMAL(10, 2)))"
)
_READING = "(:id{n}, :sensor{n}, :status{n}, :value{n}, :at{n})"


@dataclass(frozen=True, slots=True)
class Write:
    """A batch: a template and its values."""

    template: Template
    values: Mapping[str, Value]


def write_batch(number: int, now: datetime, random: Random) -> Write:
    """The `number`-th batch of a run: events mostly, then readings, then changed orders."""
    makers = (_events, _readings, _events, _orders)
    return makers[number % len(makers)](now, random)


def _events(now: datetime, random: Random) -> Write:
    first = int(now.timestamp() * 1_000)  # beyond every id the lake was built with
    values: dict[str, Value] = {}
    for n in range(EVENTS_PER_BATCH):
        kind = random.choice(_KINDS)
        values |= {
            f"id{n}": first + n,
            f"at{n}": naive(now - timedelta(seconds=random.randrange(30))),
            f"user{n}": random.randrange(5_000),
            f"kind{n}": kind,
            f"page{n}": f"/p/{random.randrange(200)}",
            f"country{n}": random.choice(COUNTRIES),
            f"ms{n}": random.randrange(30_000),
            f"revenue{n}": random.randrange(50_000) / 100 if kind == "purchase" else None,
        }
    rows = ", ".join(_EVENT.format(n=n) for n in range(EVENTS_PER_BATCH))
    sql = "INSERT INTO lake.demo.events VALUES " + rows  # noqa: S608 names of parameters only
    return Write(Template("append-events", sql), values)


def _readings(now: datetime, random: Random) -> Write:
    first = int(now.timestamp() * 1_000)
    values: dict[str, Value] = {}
    for n in range(READINGS_PER_BATCH):
        values |= {
            f"id{n}": first + n,
            f"sensor{n}": random.randrange(50),
            f"status{n}": "fault" if random.random() < 0.05 else "ok",
            f"value{n}": random.randrange(100_000) / 1_000,
            f"at{n}": naive(now),
        }
    rows = ", ".join(_READING.format(n=n) for n in range(READINGS_PER_BATCH))
    sql = "INSERT INTO lake.demo.churn VALUES " + rows  # noqa: S608 names of parameters only
    return Write(Template("append-readings", sql), values)


def _orders(now: datetime, random: Random) -> Write:
    low = random.randrange(50_000)
    sql = (
        "MERGE INTO lake.demo.orders_cdc AS t USING ("
        "SELECT order_id FROM lake.demo.orders_cdc WHERE order_id BETWEEN :low AND :high) AS s "
        "ON t.order_id = s.order_id "
        "WHEN MATCHED THEN UPDATE SET status = :status, version = t.version + 1, updated_at = :at"
    )
    values: dict[str, Value] = {
        "low": low,
        "high": low + 40,
        "status": random.choice(("paid", "shipped", "returned")),
        "at": naive(now),
    }
    return Write(Template("apply-order-changes", sql), values)
