"""Questions about names are bounded in time and size, and hold up nobody else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import sqlglot

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.gateway.auth import Identity
from lakehouse_core.gateway.postgres.catalog import PgCatalog
from lakehouse_core.gateway.trino.metadata import Metadata
from lakehouse_core.gateway.trino.session import read_session
from lakehouse_core.routing.request import Everything
from tests.unit.gateway.postgres.site import Names
from tests.unit.routing.conftest import on_loop

if TYPE_CHECKING:
    import pyarrow as pa

ENDLESS = "SELECT version(), count(*) FROM generate_series(1, 300000000000)"


async def ask(catalog: PgCatalog, sql: str) -> pa.Table:
    return await catalog.query(
        sqlglot.parse_one(sql, dialect="postgres"), "lake", "ana", Everything()
    )


@pytest.mark.slow
@on_loop
async def test_an_endless_question_ends_and_nobody_waits_for_it() -> None:
    catalog = PgCatalog({"lake": Names()}, seconds=2)  # type: ignore[dict-item] # what is used of it
    await ask(catalog, "SELECT version()")
    endless = [asyncio.create_task(ask(catalog, ENDLESS)) for _ in range(3)]
    await asyncio.sleep(0)
    assert (await ask(catalog, "SELECT version()")).num_rows == 1
    assert not any(one.done() for one in endless)
    for one in endless:
        with pytest.raises(QueryFailedError, match="told within 2 s") as caught:
            await one
        assert caught.value.code == "EXCEEDED_TIME_LIMIT"
    assert (await ask(catalog, "SELECT version()")).num_rows == 1


@on_loop
async def test_an_answer_is_not_larger_than_it_may_be() -> None:
    catalog = PgCatalog({"lake": Names()})  # type: ignore[dict-item] # what is used of it
    with pytest.raises(QueryFailedError, match="larger than 32 MiB"):
        await ask(catalog, "SELECT version(), repeat('x', 1000) FROM generate_series(1, 10000000)")


@pytest.mark.slow
@on_loop
async def test_the_same_holds_for_trinos_clients() -> None:
    names = Metadata({"lake": Names()}, seconds=0.5)  # type: ignore[dict-item] # what is used of it
    session = read_session({"x-trino-catalog": "lake"}, Identity("ana"))
    parts = [f"UNNEST(sequence(1, 1000)) AS t{n}(x{n})" for n in range(6)]
    sql = ", ".join(["SELECT count(*) FROM information_schema.schemata", *parts])
    assert names.concerns(sql, session)
    with pytest.raises(QueryFailedError, match=r"told within 0\.5 s"):
        await names.query(sql, session, Everything())
