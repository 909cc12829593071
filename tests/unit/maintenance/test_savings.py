"""The savings ledger comes from queries before and after, never from a prediction."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakehouse_core.config.pricebook import PricesConfig
from lakehouse_core.domain.maintenance import State
from lakehouse_core.maintenance.etl import finished_etl
from lakehouse_core.maintenance.savings import measure_savings
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, action, query_event, snapshot_commit
from tests.stores import emptied

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.store.owner import OwnerStore

TABLE = "lake.demo.events"
START, END = NOW - timedelta(hours=25), NOW - timedelta(hours=24)


@pytest.fixture
def store(shared_store: OwnerStore) -> OwnerStore:
    opened = emptied(shared_store)
    usage = [{"template_id": "t", "table_name": TABLE, "column_name": "c", "role": "project"}]
    opened.upsert("column_usage", pa.Table.from_pylist(usage))
    done = action(table_id=TABLE, state=State.VERIFIED, started_at=START, ended_at=END)
    opened.upsert("action", to_arrow("action", [done]))
    return opened


def asked(store: OwnerStore, runs: int, first: Any, **given: Any) -> None:
    events = [
        query_event(submitted_at=first + timedelta(minutes=n), template_id="t", **given)
        for n in range(runs)
    ]
    store.upsert("query_event", to_arrow("query_event", events))


def ledger(store: OwnerStore) -> list[dict[str, Any]]:
    return store.read("SELECT * FROM savings").to_pylist()


def test_runs_on_both_sides_make_a_line(store: OwnerStore, demo_config: Config) -> None:
    hour_ms = 3_600_000.0
    asked(store, 5, START - timedelta(days=2), execution_ms=2 * hour_ms, cpu_ms=None)
    asked(store, 4, END + timedelta(hours=1), execution_ms=hour_ms, cpu_ms=None)
    assert measure_savings(store, demo_config, NOW) == 1
    (line,) = ledger(store)
    assert (line["runs_before"], line["runs_after"]) == (5, 4)
    assert (line["ms_per_run_before"], line["ms_per_run_after"]) == (2 * hour_ms, hour_ms)
    # An hour of a core per run, four runs a day, thirty days.
    assert demo_config.prices.core_hour is not None
    assert line["usd_month"] == demo_config.prices.core_hour * 120
    assert measure_savings(store, demo_config, NOW) == 0  # nothing new, nothing written


def test_an_engine_that_bills_bytes_saves_bytes(store: OwnerStore, demo_config: Config) -> None:
    prices = PricesConfig.model_validate(
        {"book": {"d": {"engine": "duckdb", "unit": "tb_scanned", "list_price": "5"}}}
    )
    prices.know({"duckdb": "duckdb"})
    asked(store, 3, START - timedelta(days=2), bytes_scanned=2 * 10**12)
    asked(store, 3, END + timedelta(hours=1), bytes_scanned=10**12)
    measure_savings(store, demo_config.model_copy(update={"prices": prices}), NOW)
    assert ledger(store)[0]["usd_month"] == Decimal(5) * 3 * 30


def test_the_same_text_on_a_table_of_that_name_elsewhere_does_not_count(
    store: OwnerStore, demo_config: Config
) -> None:
    asked(store, 3, START - timedelta(days=2), default_catalog="lake", default_namespace="other")
    asked(store, 3, END + timedelta(hours=1), default_catalog="lake", default_namespace="other")
    assert measure_savings(store, demo_config, NOW) == 0


def test_what_became_dearer_is_negative(store: OwnerStore, demo_config: Config) -> None:
    asked(store, 3, START - timedelta(days=2), execution_ms=1_000.0, cpu_ms=None)
    asked(store, 3, END + timedelta(hours=1), execution_ms=9_000_000.0, cpu_ms=None)
    measure_savings(store, demo_config, NOW)
    assert ledger(store)[0]["usd_month"] < 0


def test_too_few_runs_say_nothing(store: OwnerStore, demo_config: Config) -> None:
    asked(store, 9, START - timedelta(days=2))
    asked(store, 2, END + timedelta(hours=1))
    assert measure_savings(store, demo_config, NOW) == 0
    assert ledger(store) == []


def test_a_batch_job_that_ended_is_noticed(store: OwnerStore) -> None:
    commit = snapshot_commit(table_id=TABLE, committed_at=NOW, engine_name="spark")
    rewrite = replace(commit, table_id="lake.demo.other", operation="replace")
    store.upsert("snapshot_commit", to_arrow("snapshot_commit", [commit, rewrite]))
    assert finished_etl(store, NOW - timedelta(minutes=1)) == {TABLE: NOW}
    assert finished_etl(store, NOW) == {}


@pytest.mark.slow
def test_one_drop_is_credited_to_one_action(store: OwnerStore, demo_config: Config) -> None:
    """Of two actions in a row the queries before the first and after the second say nothing."""
    later = END + timedelta(hours=2)
    second = action(table_id=TABLE, state=State.VERIFIED, started_at=later, ended_at=later)
    store.upsert("action", to_arrow("action", [second]))
    asked(store, 3, START - timedelta(days=2), execution_ms=4_000.0)
    asked(store, 3, later + timedelta(hours=1), execution_ms=1_000.0)
    assert measure_savings(store, demo_config, NOW) == 0
    asked(store, 3, END + timedelta(hours=1), execution_ms=1_000.0)
    assert measure_savings(store, demo_config, NOW) == 2
    changes = {
        one["action_id"]: (one["ms_per_run_before"], one["ms_per_run_after"])
        for one in ledger(store)
    }
    assert changes.pop(second.action_id) == (1_000.0, 1_000.0)
    assert list(changes.values()) == [(4_000.0, 1_000.0)]
