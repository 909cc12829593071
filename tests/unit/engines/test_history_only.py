"""An engine that is only read must not break what asks engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agents.probe import EnginePool
from agents.probe import run_once as probe
from lakehouse_core.bootstrap import open_engine
from lakehouse_core.cli.demo import _enabled
from lakehouse_core.config.models import AthenaEngine, SnowflakeEngine
from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.engines.base import Statement
from lakehouse_core.runtime.doctor import Patient, check_engines
from lakehouse_core.views.settings import connections
from tests.factories import NOW
from tests.stores import new_store

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config

ATHENA = AthenaEngine(type="athena", catalog="lake", region="eu-central-1")
SNOWFLAKE = SnowflakeEngine(
    type="snowflake", catalog="lake", account="org-one", user="lakehelm", password="env:NOT_SET"
)


@pytest.fixture
def config(demo_config: Config) -> Config:
    return demo_config.model_copy(update={"engines": {"athena": ATHENA, "snow": SNOWFLAKE}})


def test_its_state_is_unknown_and_says_why(config: Config, tmp_path: Path) -> None:
    pool = EnginePool(config, lambda name: open_engine(config, name))
    with new_store(tmp_path / "store") as store:
        probe(pool, store, lambda: NOW)
        rows = store.read(
            "SELECT engine_id, observed, detail FROM engine_probe ORDER BY ALL"
        ).to_pylist()
        engines = store.read("SELECT engine_id, dialect, url FROM engine ORDER BY ALL").to_pylist()
    pool.close()
    assert [(r["engine_id"], r["observed"]) for r in rows] == [
        ("athena", "unknown"),
        ("snow", "unknown"),
    ]
    assert all(r["detail"].startswith("history only") for r in rows)
    assert [e["dialect"] for e in engines] == ["athena", "snowflake"]
    assert engines[1]["url"] == "https://org-one.snowflakecomputing.com"


def test_it_takes_no_statement(config: Config) -> None:
    engine = open_engine(config, "snow")
    with pytest.raises(QueryFailedError, match=r"snow.*history only"):
        engine.execute(Statement(sql="SELECT 1", user="ana"))
    assert not engine.cancel("q")
    engine.close()


def test_the_doctor_does_not_ask_it(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOT_SET", "a password after all")
    patient = Patient(config=config, machine=None, javas=(), run=None, open_store=None)
    checks = list(check_engines(patient))
    assert [(c.id, c.status) for c in checks] == [("engine-athena", "ok"), ("engine-snow", "ok")]


def test_the_demo_sends_it_nothing(config: Config) -> None:
    assert _enabled(config) == []


def test_the_settings_page_shows_where_it_is(config: Config) -> None:
    shown = {c.name: c.address for c in connections(config)}
    assert "eu-central-1" in shown["athena"]
    assert shown["snow"].startswith("https://org-one")
