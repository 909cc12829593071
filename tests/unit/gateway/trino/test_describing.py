"""DESCRIBE OUTPUT: columns of a prepared statement, told by the engine that would run it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_core.domain.query import EngineId
from tests.unit.gateway.postgres.site import RowsEngine
from tests.unit.gateway.trino.site import NAMES, site
from tests.unit.routing.conftest import on_loop

ROWS = pa.table({"n": pa.array([1], pa.int64()), "name": pa.array(["a"])})


async def describe(prepared: str) -> tuple[dict[str, Any], RowsEngine]:
    engine = RowsEngine(ROWS)
    engines = {EngineId(name): engine for name in NAMES}
    async with site(engines) as here:  # type: ignore[arg-type] # one engine by two names
        headers = {"X-Trino-Prepared-Statement": f"s={prepared}", "X-Trino-Catalog": "lake"}
        _, body = await here.ask("POST /v1/statement", "DESCRIBE OUTPUT s", **headers)
        assert here.running() == 0
        return json.loads(body), engine


@on_loop
async def test_the_columns_of_a_read_are_told() -> None:
    page, engine = await describe(
        "SELECT%20n%2C%20name%20FROM%20lake.demo.t%20WHERE%20n%20%3D%20%3F"
    )
    assert [column["name"] for column in page["columns"]] == [
        "Column Name", "Catalog", "Schema", "Table", "Type", "Type Size", "Aliased",
    ]  # fmt: skip
    assert page["data"] == [
        ["n", "", "", "", "bigint", 8, False],
        ["name", "", "", "", "varchar", 0, False],
    ]
    assert [one.sql for one in engine.asked] == ["SELECT n, name FROM lake.demo.t WHERE n =  NULL "]


@pytest.mark.parametrize(
    ("prepared", "seen"),
    [
        ("INSERT%20INTO%20lake.demo.t%20SELECT%201", [["rows", "", "", "", "bigint", 8, False]]),
        ("SHOW%20CATALOGS", [["Catalog", "", "", "", "varchar", 0, False]]),
        ("USE%20lake.demo", None),
    ],
)
@on_loop
async def test_what_does_not_read_is_not_run(prepared: str, seen: list[Any] | None) -> None:
    page, engine = await describe(prepared)
    assert page.get("data") == seen
    assert engine.asked == []
