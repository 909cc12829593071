from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agents.probe import EnginePool, EngineRow, run_once
from lakehouse_core.domain.engine import EngineCapabilities, EngineProbe, ObservedState
from lakehouse_core.domain.errors import NotInstalledError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, engine_probe

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from lakehouse_core.config import Config
    from lakehouse_core.engines.base import Result, RowStream, Statement
    from lakehouse_core.store.owner import OwnerStore


class StillEngine:
    """An engine that is there and does nothing."""

    capabilities = EngineCapabilities(
        dialect="duckdb",
        can_write=False,
        can_cancel=False,
        reports_bytes=False,
        has_own_history=False,
    )

    def __init__(self, name: str) -> None:
        self.engine_id = EngineId(name)
        self.is_closed = False

    def execute(self, statement: Statement) -> Result:
        raise AssertionError(statement)

    def stream(self, statement: Statement) -> AbstractContextManager[RowStream]:
        raise AssertionError(statement)

    def probe(self) -> EngineProbe:
        return engine_probe(engine_id=self.engine_id, probed_at=NOW)

    def cancel(self, query_id: str) -> bool:
        return query_id == self.engine_id

    def close(self) -> None:
        self.is_closed = True


def engines(store: OwnerStore) -> dict[str, dict[str, Any]]:
    return {row["engine_id"]: row for row in store.read("FROM engine").to_pylist()}


def test_every_engine_is_registered_and_probed(demo_config: Config, store: OwnerStore) -> None:
    run_once(EnginePool(demo_config, StillEngine), store, lambda: NOW)
    rows = engines(store)
    assert set(rows) == set(demo_config.engines)
    assert {row["configured"] for row in rows.values()} == {"active"}
    assert rows["duckdb"]["url"] is None
    assert rows["trino"]["url"].startswith("http://127.0.0.1:")
    assert rows["spark"]["url"].startswith("sc://")
    probes = store.read("SELECT engine_id, observed FROM engine_probe").to_pylist()
    assert {p["engine_id"]: p["observed"] for p in probes} == dict.fromkeys(rows, "healthy")


def test_an_engine_that_cannot_be_opened_is_unhealthy_and_harms_no_other(
    demo_config: Config, store: OwnerStore
) -> None:
    def open_engine(name: str) -> StillEngine:
        if name == "spark":
            raise NotInstalledError("Java 17 is missing")
        return StillEngine(name)

    run_once(EnginePool(demo_config, open_engine), store, lambda: NOW)
    found = {p["engine_id"]: p for p in store.read("FROM engine_probe").to_pylist()}
    assert found["spark"]["observed"] == ObservedState.UNHEALTHY
    assert found["spark"]["detail"] == "Java 17 is missing"
    assert found["duckdb"]["observed"] == ObservedState.HEALTHY


def test_what_a_person_wants_of_an_engine_stands(demo_config: Config, store: OwnerStore) -> None:
    pool = EnginePool(demo_config, StillEngine)
    run_once(pool, store, lambda: NOW)
    row = EngineRow(**engines(store)["trino"])
    switched = replace(row, configured="maintenance", changed_by="ana", reason="upgrade")
    store.upsert("engine", to_arrow("engine", [switched]))
    run_once(pool, store, lambda: NOW + timedelta(minutes=1))
    after = engines(store)["trino"]
    assert (after["configured"], after["changed_by"], after["reason"]) == (
        "maintenance",
        "ana",
        "upgrade",
    )


def test_a_change_of_the_engine_itself_keeps_what_a_person_wants(
    demo_config: Config, store: OwnerStore
) -> None:
    run_once(EnginePool(demo_config, StillEngine), store, lambda: NOW)
    row = EngineRow(**engines(store)["trino"])
    moved = replace(row, url="http://elsewhere:1", configured="maintenance", changed_by="ana")
    store.upsert("engine", to_arrow("engine", [moved]))
    run_once(EnginePool(demo_config, StillEngine), store, lambda: NOW)
    after = engines(store)["trino"]
    assert after["url"] == row.url
    assert (after["configured"], after["changed_by"]) == ("maintenance", "ana")


def test_the_configuration_may_change_its_own_mind(demo_config: Config, store: OwnerStore) -> None:
    run_once(EnginePool(demo_config, StillEngine), store, lambda: NOW)
    off = demo_config.engines["trino"].model_copy(update={"enabled": False})
    without = demo_config.model_copy(update={"engines": {**demo_config.engines, "trino": off}})
    pool = EnginePool(without, StillEngine)
    run_once(pool, store, lambda: NOW + timedelta(minutes=1))
    assert engines(store)["trino"]["configured"] == "inactive"
    assert "trino" not in pool.wanted


def test_a_registry_in_step_is_not_written_again(demo_config: Config, store: OwnerStore) -> None:
    pool = EnginePool(demo_config, StillEngine)
    run_once(pool, store, lambda: NOW)
    changed_at = {name: row["changed_at"] for name, row in engines(store).items()}
    run_once(pool, store, lambda: NOW + timedelta(hours=1))
    assert {name: row["changed_at"] for name, row in engines(store).items()} == changed_at


def test_engines_are_opened_once_and_closed_with_the_pool(demo_config: Config) -> None:
    opened: list[StillEngine] = []

    def open_engine(name: str) -> StillEngine:
        opened.append(StillEngine(name))
        return opened[-1]

    pool = EnginePool(demo_config, open_engine)
    for _ in range(3):
        pool.look(lambda: NOW)
    pool.close()
    assert len(opened) == len(demo_config.engines)
    assert all(engine.is_closed for engine in opened)


@pytest.mark.slow
def test_an_engine_that_hangs_does_not_delay_what_is_seen_of_the_others(
    demo_config: Config, store: OwnerStore
) -> None:
    gate = threading.Event()
    asked: list[str] = []

    class Hanging(StillEngine):
        def probe(self) -> EngineProbe:
            asked.append(self.engine_id)
            gate.wait(60)
            return super().probe()

    pool = EnginePool(demo_config, lambda n: Hanging(n) if n == "trino" else StillEngine(n))
    for second in (0, 1):
        at = NOW + timedelta(seconds=second)
        run_once(pool, store, lambda at=at: at, timedelta(milliseconds=200))  # type: ignore[misc]
    assert asked == ["trino"]  # not asked again before it has answered
    trino = store.read("FROM engine_probe WHERE engine_id = 'trino'").to_pylist()
    assert {row["observed"] for row in trino} == {"unhealthy"}
    assert "no answer within 0.2 s" in trino[0]["detail"]
    others = store.read("FROM engine_probe WHERE engine_id <> 'trino'").to_pylist()
    assert {row["observed"] for row in others} == {"healthy"}
    gate.set()
    pool.close()
