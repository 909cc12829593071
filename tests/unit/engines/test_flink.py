"""Flink is looked at, not sent to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config.models import FlinkEngine
from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.base import Statement
from lakehouse_core.engines.flink import FlinkAdapter
from tests.contract.sources.coordinator import answer
from tests.contract.sources.jobmanager import JobManager
from tests.factories import NOW, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def manager() -> Iterator[JobManager]:
    made = JobManager()
    yield made
    made.close()


def adapter(port: int) -> FlinkAdapter:
    engine = FlinkEngine(type="flink", catalog="lake", port=port)
    return FlinkAdapter(EngineId("flink"), engine, clock=lambda: NOW)


def at(manager: JobManager) -> FlinkAdapter:
    return adapter(int(manager.url.rpartition(":")[2]))


@pytest.mark.parametrize(
    ("workers", "observed", "said"),
    [(1, ObservedState.HEALTHY, "1 of 2 slots"), (0, ObservedState.UNHEALTHY, "no TaskManager")],
)
def test_it_is_healthy_with_a_task_manager(
    manager: JobManager, workers: int, observed: ObservedState, said: str
) -> None:
    overview = {
        "taskmanagers": workers,
        "slots-total": 2,
        "slots-available": 1,
        "jobs-running": 1,
        "flink-version": "2.1.3",
    }
    body = json.dumps(overview)
    manager.fault = lambda _path, handler: answer(handler, 200, body.encode())
    probe = at(manager).probe()
    assert (probe.observed, probe.version, probe.running_queries) == (observed, "2.1.3", 1)
    assert said in (probe.detail or "")


@pytest.mark.parametrize(
    ("code", "body"), [(500, b""), (200, b"<html>"), (200, b"{}"), (200, b"[]")]
)
def test_what_answers_like_no_flink_is_unhealthy(
    manager: JobManager, code: int, body: bytes
) -> None:
    manager.fault = lambda _path, handler: answer(handler, code, body)
    probe = at(manager).probe()
    assert probe.observed is ObservedState.UNHEALTHY
    assert "check" in (probe.detail or "")


def test_nobody_there_is_unhealthy() -> None:
    assert adapter(free_port()).probe().observed is ObservedState.UNHEALTHY


def test_it_takes_no_statement(manager: JobManager) -> None:
    with pytest.raises(QueryFailedError, match="takes no statements"):
        at(manager).execute(Statement(sql="SELECT 1", user="ana"))


def test_a_password_without_a_user_is_refused() -> None:
    with pytest.raises(ValueError, match="password needs user"):
        FlinkEngine(type="flink", catalog="lake", password="env:X")
