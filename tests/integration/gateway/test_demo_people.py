"""The demo's analysts at a real gateway: their questions are routed, answered and recorded."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.demo.endpoint import SqlEndpoint, open_endpoint
from lakehouse_core.demo.personas import Role, personas_of
from lakehouse_core.demo.statements import DIALECT, MISTAKES, QUESTIONS, Draw
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.engines.base import Statement
from lakehouse_core.sql import inspect
from lakehouse_core.sql.retarget import retarget
from tests.factories import NOW
from tests.integration.gateway.harness import Gateway
from tests.integration.gateway.tpch import TABLES

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config

pytestmark = [pytest.mark.duckdb, pytest.mark.slow]


def here(sql: str) -> str:
    """A text of the demo on this lake, which has TPC-H in a namespace of its own."""
    return sql.replace("lake.demo.", "lake.tpch.")


def questions() -> list[Statement]:
    """Every question about TPC-H as somebody asks it."""
    known = {f"lake.demo.{name}" for name in TABLES}
    (persona, *_) = personas_of(Role.ANALYST)
    draw = Draw(Random(7), NOW)  # noqa: S311 repeatable draws
    return [
        Statement(
            sql=retarget(here(one.sql), one.values(draw), source=DIALECT, target=DIALECT),
            user=persona.user,
            source=persona.source,
            tags=persona.tags(one.name),
        )
        for one in QUESTIONS
        if known.issuperset(inspect(one.sql, DIALECT).tables)
    ]


def test_questions_are_routed_answered_and_recorded(duckdb_lake: Config, tmp_path: Path) -> None:
    asked, began = questions(), utc_now()  # others of this name asked on the same lake before
    with closing(Gateway(duckdb_lake, tmp_path)) as gateway:
        sql = gateway.config.gateway.sql.model_copy(update={"port": gateway.port.port})
        endpoint = open_endpoint(sql, utc_now)
        assert isinstance(endpoint, SqlEndpoint)
        for statement in asked:
            endpoint.execute(statement)
        with pytest.raises(QueryFailedError, match="l_shipdat"):
            endpoint.execute(replace(asked[0], sql=here(MISTAKES[0])))

    user = asked[0].user

    def ours(table: str) -> list[dict[str, Any]]:
        rows = gateway.records(table)
        return [one for one in rows if one["user_name"] == user and one["submitted_at"] >= began]

    routed = ours("routing_decision")
    assert len(routed) == len(asked) + 1
    assert {row["cluster_group"] for row in routed} == {"questions"}
    assert {row["engine_id"] for row in routed} == {"duckdb"}
    for row in routed:
        assert "rule" in {step["stage"] for step in json.loads(row["trace"])}

    events = ours("query_event")
    assert {row["source"] for row in events} == {asked[0].source}
    assert {tuple(row["tags"]) for row in events} == {one.tags for one in asked}
