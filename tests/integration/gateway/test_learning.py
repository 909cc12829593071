"""A gateway that learns: before DuckDB and a Trino that does as it is told."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from trino.exceptions import Error

from lakehouse_core.catalog import open_catalog
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus, StatementKind, TemplateId
from lakehouse_core.sql import Inspector
from lakehouse_core.store.rows import to_arrow
from tests.integration.gateway.harness import Gateway
from tests.integration.gateway.mock_trino import MockTrino

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakehouse_core.config import Config
    from tests.conftest import DemoConfig

pytestmark = [pytest.mark.duckdb, pytest.mark.slow]
SQL = "SELECT x FROM lake.demo.t WHERE k = {}"


@pytest.fixture
def trino() -> Iterator[MockTrino]:
    with closing(MockTrino("a")) as mock:
        yield mock


@pytest.fixture
def serve(
    trino: MockTrino, load_demo_config: DemoConfig, tmp_path: Path
) -> Iterator[Callable[..., Gateway]]:
    """A gateway before both engines, over a lake of one table; closed at the end."""
    started: list[Gateway] = []
    config = load_demo_config(tmp_path, LAKEHELM__ENGINES__SPARK__ENABLED="false")
    catalog = config.catalogs["lake"]
    catalog.warehouse.mkdir(parents=True, exist_ok=True)
    with closing(open_catalog("lake", catalog)) as lake, closing(lake.iceberg()) as iceberg:
        iceberg.create_namespace("demo")
        rows = pa.table({"k": pa.array(range(100), pa.int64()), "x": ["one"] * 100})
        iceberg.create_table("demo.t", schema=rows.schema).append(rows)

    def start(governance: dict[str, Any] | None = None, **group: Any) -> Gateway:
        made = _with_both(config, trino.port, {"strategy": {"type": "failover"}} | group)
        if governance is not None:
            kind = type(made.governance)
            made = made.model_copy(update={"governance": kind.model_validate(governance)})
        started.append(Gateway(made, tmp_path / f"gateway{len(started)}"))
        return started[-1]

    yield start
    for gateway in started:
        gateway.close()


def _with_both(config: Config, port: int, group: dict[str, Any]) -> Config:
    engines = {
        "duckdb": config.engines["duckdb"],
        "trino": config.engines["trino"].model_copy(update={"port": port}),
    }
    both = {"members": ["duckdb", "trino"], **group}
    routing = type(config.routing).model_validate(
        {
            "clusterGroups": {"both": both, "duck": {"members": ["duckdb"]}},
            "routers": [
                {"type": "tags", "rules": [{"tags": {"engine": "duckdb"}, "targetGroup": "duck"}]}
            ],
            "routingFallback": "both",
        }
    )
    return config.model_copy(update={"engines": engines, "routing": routing, "collect": {}})


def closed(gateway: Gateway) -> Gateway:
    """Closed now, so that all is recorded."""
    gateway.close = lambda: None  # type: ignore[method-assign] # not once more at the end
    Gateway.close(gateway)
    return gateway


def look(gateway: Gateway) -> None:
    """What the gateway does in the background, done now."""
    for job in gateway.port.upkeep:
        job.work()


def test_a_byte_limit_is_held_against_the_estimate(serve: Callable[..., Gateway]) -> None:
    roles = {"tiny": {"users": ["tim"], "max_bytes": 1}, "analyst": {"max_bytes": "1GiB"}}
    gateway = serve({"default_role": "analyst", "roles": roles})
    look(gateway)
    assert gateway.rows(SQL.format(7)) == [["one"]]
    with pytest.raises(Error, match="may read at most 1"):
        gateway.rows(SQL.format(7), user="tim")


@pytest.mark.parametrize("strategy", ["failover", "latencyOptimized"])
def test_what_a_statement_was_to_read_is_recorded(
    serve: Callable[..., Gateway], strategy: str
) -> None:
    gateway = serve(strategy={"type": strategy})
    look(gateway)
    gateway.rows(SQL.format(7))
    (routed,) = closed(gateway).records("routing_decision")
    assert routed["estimated_files"] == 1
    assert routed["estimated_bytes"] > 0


def trace_of(gateway: Gateway) -> dict[str, Any]:
    """The strategy's step of the newest statement."""
    routed = max(gateway.records("routing_decision"), key=lambda row: row["submitted_at"])
    return next(step for step in json.loads(routed["trace"]) if step["stage"] == "strategy")


def test_runs_of_the_gateway_and_of_the_store_decide(serve: Callable[..., Gateway]) -> None:
    """Trino was slow before the gateway came up; DuckDB proves quick while it is up."""
    gateway = serve(strategy={"type": "latencyOptimized"}, prediction={"exploreShare": 0})
    template = Inspector().fingerprint(SQL.format(1), "trino").template_id
    at = utc_now() - timedelta(hours=1)
    events = [
        QueryEvent(
            engine_id=EngineId("trino"),
            query_id=f"slow-{number}",
            status=QueryStatus.FINISHED,
            submitted_at=at + timedelta(seconds=number),
            collected_at=at + timedelta(seconds=number),
            elapsed_ms=60_000.0,
            template_id=TemplateId(template),
            statement_kind=StatementKind.SELECT,
            dialect="trino",
        )
        for number in range(6)
    ]
    gateway.store.upsert("query_event", to_arrow("query_event", events))
    look(gateway)
    for number in range(4):
        # Nothing is known of DuckDB at first, so it is named; then its own runs speak.
        gateway.rows(f"/* {number} */ " + SQL.format(number), client_tags=["engine:duckdb"])
    gateway.rows(SQL.format(9))
    step = trace_of(closed(gateway))
    assert step["result"] == "duckdb"
    assert "duckdb is best" in step["detail"]
    assert "slow-5" in step["detail"]
    named = {row["gateway_id"] for row in gateway.records("query_event")}
    assert any(one in step["detail"] for one in named)
