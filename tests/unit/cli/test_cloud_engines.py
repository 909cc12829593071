"""Athena and Snowflake without credentials: all works, and what is missing is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agents.once import collect_all
from agents.probe import EnginePool, run_once
from lakehouse_core.config import load_config
from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.engines.registry import open_engine
from lakehouse_core.views.engines import list_engines
from lakehouse_core.views.filters import Filters
from tests.factories import NOW, free_port, free_port_pair
from tests.stores import new_store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run

CONFIG = """\
version: 1
profile: prod
home: {home}
store: {{port: {store}, writer_token: "file:{home}/token", reader_token: "file:{home}/token"}}
catalogs:
  lake: {{type: sqlite, path: lake/catalog.db, warehouse: lake/warehouse}}
engines:
  duckdb: {{type: duckdb, catalog: lake}}
  athena: {{type: athena, catalog: lake, region: eu-central-1}}
  athena-keys:
    type: athena
    catalog: lake
    region: eu-central-1
    access_key_id: env:NO_KEY_ID
    secret_access_key: env:NO_KEY
  snowflake: {{type: snowflake, catalog: lake, account: a-b, user: u, password: env:NO_PASSWORD}}
collect: {{duckdb: {{}}, athena-keys: {{}}, snowflake: {{}}}}
gateway: {{admin_port: {gateway}, sql: {{enabled: false}}}}
ui: {{port: {ui}}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lakehelm.yaml"
    (tmp_path / "token").write_text("t")
    text = CONFIG.format(home=tmp_path, store=free_port_pair(), gateway=free_port(), ui=free_port())
    path.write_text(text)
    return path


def test_the_configuration_is_valid(file: Path, run: Run) -> None:
    found = run("config", "validate", "--config", str(file))
    assert found.code == 0
    assert "athena, athena-keys, snowflake" in found.out + found.err


@pytest.mark.slow
def test_doctor_names_each_secret_that_is_missing(file: Path, run: Run) -> None:
    found = run("doctor", "--json", "--config", str(file))
    checks = {one["id"]: one for one in found.data}
    assert checks["engine-athena"]["status"] == "ok"
    assert "history only" in checks["engine-athena"]["found"]
    for name, variable in (("athena-keys", "NO_KEY_ID"), ("snowflake", "NO_PASSWORD")):
        check = checks[f"engine-{name}"]
        assert check["status"] == "fail"
        assert variable in check["found"]
        assert f"engines.{name}" in check["fix"]


def test_the_engines_view_lists_them_as_read_only(file: Path, tmp_path: Path) -> None:
    config = load_config(file, {}).config
    store = new_store(tmp_path / "store")
    pool = EnginePool(config, lambda name: open_engine(name, config))
    try:
        run_once(pool, store, lambda: NOW)
        seen = list_engines(store, Filters(), lambda: NOW, probe_every=config.agents.probe_every)
    finally:
        pool.close()
        store.close()
    engines = {one.engine.engine_id: one for one in seen.engines}
    assert set(engines) == set(config.engines)
    for name in ("athena", "athena-keys", "snowflake"):
        assert engines[name].state == ObservedState.UNKNOWN.value
        assert "history only" in (engines[name].engine.detail or "")


@pytest.mark.slow
def test_collecting_tells_what_is_missing_and_goes_on(file: Path) -> None:
    config = load_config(file, {}).config
    reports = {one.source: one for one in collect_all(config, ())}
    assert "NO_PASSWORD" in (reports["snowflake"].error or "")
    assert "NO_KEY_ID" in (reports["athena-keys"].error or "")
    assert "NO_" not in (reports["duckdb"].error or "")
