"""A session over the wire: what is described, what is run, and when."""

from __future__ import annotations

import asyncio

import pytest

from lakehouse_core.gateway.postgres import messages as m
from lakehouse_core.gateway.postgres.frontend import PostgresLimits
from tests.unit.gateway.postgres.site import Client, kinds, parse, pg_site
from tests.unit.routing.conftest import on_loop

SYNC = (b"S", b"")
WRITES = [
    "UPDATE lake.demo.t SET price = $1",
    "INSERT INTO lake.demo.t VALUES ($1, $2)",
    "DELETE FROM lake.demo.t",
    "MERGE INTO lake.demo.t USING lake.demo.s ON true WHEN MATCHED THEN DELETE",
    "CREATE TABLE lake.demo.u AS SELECT 1 AS x",
    "WITH d AS (DELETE FROM lake.demo.t RETURNING 1) SELECT * FROM d",
    "SELECT 1 AS x INTO lake.demo.u",
    "EXPLAIN ANALYZE DELETE FROM lake.demo.t",
    "CALL lake.system.rewrite_data_files('demo.t')",
]


@pytest.mark.parametrize("sql", WRITES)
@on_loop
async def test_to_describe_a_write_runs_nothing(sql: str) -> None:
    async with pg_site() as (here, client):
        answers = await client.send(parse("s", sql), (b"D", b"Ss\0"), SYNC)
        assert kinds(answers) == b"1tnZ"
        values = 2 if "$2" in sql else 1 if "$1" in sql else 0
        bound = b"\0s\0\0\0" + values.to_bytes(2) + b"\xff\xff\xff\xff" * values + b"\0\0"
        answers = await client.send((b"B", bound), (b"D", b"P\0"), SYNC)
        assert kinds(answers) == b"2nZ"
        assert here.engine.asked == []


@on_loop
async def test_a_client_too_many_is_told_which_setting_keeps_it_out() -> None:
    async with pg_site(limits=PostgresLimits(connections=1)) as (here, client):
        late = Client(*await asyncio.open_connection("127.0.0.1", here.number))
        with pytest.raises(asyncio.IncompleteReadError):  # it is told, and hung up on
            await late.start()
        assert "gateway.sql.postgres_connections" in late.told
        late.close()
        assert kinds(await client.query("SELECT 1")) == b"TDCZ"


@on_loop
async def test_a_described_write_runs_once_when_it_is_executed() -> None:
    async with pg_site() as (here, client):
        answers = await client.send(
            parse("", "DELETE FROM lake.demo.t"),
            (b"D", b"S\0"),
            (b"B", b"\0\0\0\0\0\0\0\0"),
            (b"D", b"P\0"),
            (b"E", b"\0\0\0\0\0"),
            SYNC,
        )
        assert kinds(answers) == b"1tn2nCZ"
        assert answers[-2] == (b"C", m.text("DELETE 1"))
        assert [one.sql for one in here.engine.asked] == ["DELETE FROM lake.demo.t"]


@pytest.mark.parametrize("sql", ["SELECT $1 AS x", "EXPLAIN SELECT 1", "SHOW server_version"])
@on_loop
async def test_what_reads_is_described(sql: str) -> None:
    async with pg_site() as (_, client):
        assert kinds(await client.send(parse("s", sql), (b"D", b"Ss\0"), SYNC)) == b"1tTZ"


@on_loop
async def test_a_question_about_names_can_be_cancelled() -> None:
    async with pg_site() as (here, client):
        asked = asyncio.create_task(
            client.query("SELECT version(), count(*) FROM generate_series(1, 300000000000)")
        )
        async with asyncio.timeout(60):
            while not asked.done():
                await client.cancel(here.number)
                await asyncio.sleep(0.01)  # the request to cancel may have been the first to come
        answers = await asked
        assert kinds(answers) == b"EZ"
        assert b"C57014\0" in answers[0][1]
        assert kinds(await client.query("SELECT version()")) == b"TDCZ"


@on_loop
async def test_a_statement_is_stopped_when_its_time_is_over() -> None:
    async with pg_site() as (here, client):
        here.engine.go.clear()
        assert kinds(await client.query("SET statement_timeout = '50ms'")) == b"CZ"
        answers = await client.query("SELECT x FROM lake.demo.t")
        assert kinds(answers)[-2:] == b"EZ"
        assert b"C57014\0" in answers[-2][1]
        assert b"due to statement timeout" in answers[-2][1]
        assert here.engine.stopped
        await client.query("SET statement_timeout = 0")
        assert kinds(await client.query("SELECT x FROM lake.demo.t")) == b"TDCZ"
        refused = await client.query("SET statement_timeout = 'soon'")
        assert b"C22023\0" in refused[0][1]
