"""The learn agent: what it trains is tried first, kept with its version, discarded when worse."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from agents import learn
from lakehouse_core.domain.query import (
    EngineId,
    QueryEvent,
    QueryStatus,
    StatementKind,
    TemplateId,
)
from lakehouse_core.routing.learned import Models, make_predictor, model_path
from lakehouse_core.routing.profiles import ProfileBook, in_seconds
from lakehouse_core.routing.profiles_history import past_runs
from lakehouse_core.routing.proof import prove
from lakehouse_core.routing.request import Candidate, Request, StatementFacts
from lakehouse_core.sql import Inspector
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW

if TYPE_CHECKING:
    from lakehouse_core.config import Config
    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.slow
INSPECTOR = Inspector()
SQL = "SELECT {} FROM lake.demo.{} WHERE x = {}"
TABLES = [f"t{number}" for number in range(12)]


def fill(store: OwnerStore, *, rows: int = 240, turned_at: int = 240) -> None:
    """Half of the tables are quick on Trino, half on DuckDB; from some row on the other way."""
    rng = np.random.default_rng(0)
    events = []
    for number in range(rows):
        table = number % len(TABLES)
        engine = ("trino", "duckdb")[(number // len(TABLES)) % 2]
        sql = SQL.format("a", TABLES[table], number)
        is_quick = ((table % 2 == 0) == (engine == "trino")) == (number < turned_at)
        seconds = (1.0 if is_quick else 6.0) * rng.uniform(0.9, 1.1)
        at = NOW - timedelta(minutes=rows - number)
        events.append(
            QueryEvent(
                engine_id=EngineId(engine),
                query_id=f"q{number}",
                status=QueryStatus.FINISHED,
                submitted_at=at,
                collected_at=at,
                elapsed_ms=float(seconds) * 1_000,
                template_id=TemplateId(INSPECTOR.fingerprint(sql, "trino").template_id),
                statement_kind=StatementKind.SELECT,
                dialect="trino",
                sql_text=sql,
            )
        )
    store.upsert("query_event", to_arrow("query_event", events))


def chosen(config: Config, table: str) -> str | None:
    """What a gateway with these models takes for a statement that it has no run of."""
    predictor = make_predictor(config, ProfileBook(), None)
    Models(config, predictor).look()
    sql = SQL.format("b", table, 1)
    facts = StatementFacts(
        TemplateId(INSPECTOR.fingerprint(sql, "trino").template_id), StatementKind.SELECT, (table,)
    )
    both = [Candidate(n, EngineId(n), "any", "trino", 0, None) for n in ("duckdb", "trino")]
    return predictor.choose("latency", Request(sql=sql, dialect="trino"), facts, both).engine_id


def test_a_model_that_is_better_is_kept_with_its_version_and_used(
    store: OwnerStore, demo_config: Config
) -> None:
    fill(store)
    assert learn.run_once(store, demo_config, lambda: NOW).rows >= 1
    path = model_path(demo_config, "latency")
    assert len(list(path.parent.glob("latency-v*.npz"))) == 1
    # A new template: nothing but the model, or its default, can tell.
    assert chosen(demo_config, TABLES[0]) is not None
    store.transact("query_event", ["DELETE FROM query_event"])
    assert learn.run_once(store, demo_config, lambda: NOW).rows >= 1
    assert not path.exists()  # nothing proves it any more
    assert chosen(demo_config, TABLES[0]) is None


def test_a_model_that_does_worse_than_the_default_is_not_worth_using(store: OwnerStore) -> None:
    """What it learnt on the older runs does not hold for the newer ones."""
    fill(store, turned_at=180)
    proof = prove(past_runs(store, NOW - timedelta(days=1)), in_seconds, INSPECTOR)
    assert proof is not None
    assert proof.tried == 60
    assert not proof.is_worth_using
