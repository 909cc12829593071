"""A statement that went through our gateway and is in its engine's history too is one row."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.rows import to_arrow
from tests.factories import unique
from tests.integration.collectors.test_live_engines import Bench, make_namespace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.config import Config

ORIGINAL = "SELECT count(*)::int AS n FROM t"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerStore]:
    with OwnerStore.at(tmp_path / "store") as opened:
        yield opened


def gateway_report(engine: str, gateway_id: str, status: QueryStatus) -> QueryEvent:
    """What the gateway knows before the engine has told its own id."""
    return QueryEvent(
        engine_id=EngineId(engine),
        query_id=gateway_id,
        status=status,
        submitted_at=utc_now(),
        collected_at=utc_now(),
        dialect="postgres",
        sql_text=ORIGINAL,
        translated_sql="(the translated text)",
        user_name="mia",
        source="console",
        tags=("team=finance",),
        gateway_id=gateway_id,
        reporter="gateway",
    )


def check_one_row(bench: Bench, statement: str) -> None:
    gateway_id = unique("gw")

    def report(status: QueryStatus) -> None:
        rows = to_arrow("query_event", [gateway_report(bench.name, gateway_id, status)])
        bench.store.upsert("query_event", rows)

    report(QueryStatus.RUNNING)
    query_id = bench.run(statement, gateway_id=gateway_id)
    bench.final(query_id)
    report(QueryStatus.FINISHED)  # the gateway's last word comes after the engine's
    bench.collect()
    found: list[dict[str, Any]] = bench.store.read(
        "FROM query_event WHERE gateway_id = $id", id=gateway_id
    ).to_pylist()
    assert [row["query_id"] for row in found] == [query_id]
    (row,) = found
    assert (row["user_name"], row["source"], row["tags"]) == ("mia", "console", ["team=finance"])
    assert (row["sql_text"], row["dialect"]) == (ORIGINAL, "postgres")
    assert row["translated_sql"] == "(the translated text)"
    assert row["status"] == "finished"
    assert row["ended_at"] is not None
    assert row["elapsed_ms"] is not None
    assert row["rows_returned"] == 1


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("spark", marks=pytest.mark.spark),
        pytest.param("trino", marks=pytest.mark.trino),
    ],
)
def test_a_routed_statement_is_one_row(
    engine: str, request: pytest.FixtureRequest, store: OwnerStore
) -> None:
    config: Config = request.getfixturevalue(f"{engine}_server")
    bench = Bench(config, engine, store)
    with closing(bench.engine):
        make_namespace(config, bench.namespace)
        table = f"lake.{bench.namespace}.t"
        bench.run(f"CREATE TABLE {table} AS SELECT 1 AS id")
        check_one_row(bench, f"SELECT count(*) AS n FROM {table}")  # noqa: S608 ours


@pytest.mark.duckdb
def test_a_routed_statement_on_duckdb_is_one_row(demo_config: Config, store: OwnerStore) -> None:
    for catalog in demo_config.catalogs.values():
        catalog.warehouse.mkdir(parents=True, exist_ok=True)
    make_namespace(demo_config, "demo")
    bench = Bench(demo_config, "duckdb", store)
    with closing(bench.engine):
        check_one_row(bench, "SELECT 1 AS n")
