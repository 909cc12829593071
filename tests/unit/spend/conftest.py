"""A real store that nobody serves, with two weeks of spend in it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config.finops import FinOpsConfig, parse_groups
from lakehouse_core.finops.groups import GroupRules, group_rules
from tests.stores import emptied, new_store
from tests.ui.scenario import rows_of
from tests.unit.spend.ledger import HOUR, Ledger, Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.store.owner import OwnerStore

NOW = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)
DAYS = 14
RULES = """
- {name: etl, when: {user: "etl_*"}, team: Platform, cost_center: "4711"}
- {name: dashboards, when: {source: "bi"}, team: Analytics}
"""


def clock() -> datetime:
    return NOW


def rules() -> GroupRules:
    return group_rules(parse_groups(RULES), FinOpsConfig())


def two_weeks(seed: int = 5) -> Ledger:
    """Hours of two engines, with idle time, failures, an odd digit in every amount."""
    rng = random.Random(seed)  # noqa: S311 a repeatable scene, not a secret
    ledger = Ledger()
    start = NOW.replace(minute=0) - timedelta(days=DAYS)
    for number in range(DAYS * 24 + 1):
        at = start + number * HOUR
        for engine in ("trino", "spark"):
            parts = [
                Part(
                    cost=str(Decimal(rng.randrange(1, 10**9)).scaleb(-9)),
                    user=rng.choice(("ana", "etl_nightly", "bo", "")),
                    template=rng.choice(("t1", "t2", "t3", "")),
                    source=rng.choice(("bi", "cli", "")),
                    queries=rng.randrange(1, 9),
                )
                for _ in range(rng.randrange(4))
            ]
            parts.append(Part(cost=str(Decimal(rng.randrange(10**9)).scaleb(-9)), kind="idle"))
            if number % 7 == 0:
                parts.append(Part(cost="0.000000001", kind="unallocated"))
            ledger.charge(at, engine, *parts, is_provisional=number >= DAYS * 24 - 2)
        ledger.charge(
            at,
            "storage:lake",
            Part(cost="0.010000003", kind="resource"),
            meter="storage",
            resource="standard",
            method="resource",
        )
    return ledger


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnerStore]:
    """Read only: shared by the tests of a module."""
    with new_store(tmp_path_factory.mktemp("spend")) as store:
        fill(store)
        yield store


@pytest.fixture
def empty(shared_store: OwnerStore) -> OwnerStore:
    return emptied(shared_store)


def fill(store: OwnerStore) -> None:
    two_weeks().write(store)
    touched = {"t1": ("lake.a.x", "lake.a.y", "lake.b.z"), "t2": ("lake.a.x",)}
    links = [
        {"template_id": template, "table_name": table}
        for template, tables in touched.items()
        for table in tables
    ]
    store.upsert("template_table", rows_of("template_table", links))
