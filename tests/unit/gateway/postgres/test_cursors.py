"""Cursors by DECLARE: read in parts, closed with their transaction unless they are held."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.gateway.postgres import messages as m
from lakehouse_core.sql.postgres.cursors import Close, Declare, Fetch, parse_declare, parse_fetch
from tests.unit.gateway.postgres.site import RowsEngine, kinds, pg_site
from tests.unit.routing.conftest import on_loop

TEN = pa.table({"x": pa.array(range(10), pa.int64())})
DECLARE = "DECLARE c CURSOR FOR SELECT x FROM lake.demo.t"


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("FETCH c", Fetch("c", 1, False)),
        ("fetch next from C;", Fetch("c", 1, False)),
        ('FETCH FORWARD 100 FROM "My ""c"', Fetch('My "c', 100, False)),
        ("FETCH 5 IN c", Fetch("c", 5, False)),
        ("FETCH ALL c", Fetch("c", None, False)),
        ("MOVE FORWARD ALL FROM c", Fetch("c", None, True)),
        ("CLOSE c", Close("c")),
        ("CLOSE ALL", Close(None)),
        ("SELECT 'FETCH c'", None),
    ],
)
def test_the_words_are_understood(sql: str, meant: object) -> None:
    assert parse_fetch(sql) == meant


def test_a_cursor_is_declared_for_a_query_and_goes_forward_only() -> None:
    declared = parse_declare('DECLARE "A" BINARY NO SCROLL CURSOR WITH HOLD FOR SELECT 1')
    assert declared == Declare("A", "SELECT 1", is_binary=True, is_held=True)
    for sql in ("FETCH BACKWARD 1 FROM c", "FETCH PRIOR c", "FETCH -1 FROM c", "MOVE LAST IN c"):
        with pytest.raises(QueryFailedError, match="forward"):
            parse_fetch(sql)


@on_loop
async def test_a_cursor_lives_within_one_message() -> None:
    async with pg_site(RowsEngine(TEN)) as (here, client):
        answers = await client.query(f"BEGIN; {DECLARE}; FETCH 2 FROM c; CLOSE c; COMMIT")
        assert kinds(answers) == b"CCTDDCCCZ"
        assert [one.sql for one in here.engine.asked] == ["SELECT x FROM lake.demo.t"]


@on_loop
async def test_rows_are_fetched_in_parts() -> None:
    async with pg_site(RowsEngine(TEN)) as (here, client):
        await client.query("BEGIN")
        assert kinds(await client.query(DECLARE)) == b"CZ"
        answers = await client.query("FETCH FORWARD 4 FROM c")
        assert kinds(answers) == b"TDDDDCZ"
        assert answers[-2] == (b"C", m.text("FETCH 4"))
        assert (await client.query("MOVE 3 IN c"))[-2] == (b"C", m.text("MOVE 3"))
        assert kinds(await client.query("FETCH ALL FROM c")) == b"TDDDCZ"
        assert kinds(await client.query("FETCH c")) == b"TCZ"
        assert kinds(await client.query("CLOSE c")) == b"CZ"
        assert kinds(await client.query("FETCH c")) == b"EZ"
        assert len(here.engine.asked) == 1


@on_loop
async def test_a_cursor_ends_with_its_transaction_unless_it_is_held() -> None:
    async with pg_site(RowsEngine(TEN)) as (_, client):
        refused = await client.query(DECLARE)
        assert b"C25P01\0" in refused[0][1]
        await client.query("BEGIN")
        await client.query(DECLARE)
        await client.query("DECLARE d CURSOR WITH HOLD FOR SELECT 1")
        await client.query("COMMIT")
        assert b"C34000\0" in (await client.query("FETCH c"))[0][1]
        assert kinds(await client.query("FETCH d")) == b"TDCZ"


@on_loop
async def test_a_fetch_has_the_time_that_a_statement_has() -> None:
    engine = RowsEngine(TEN)
    async with pg_site(engine) as (_, client):
        engine.go.clear()
        await client.query("BEGIN")
        await client.query("SET statement_timeout = 50")
        assert kinds(await client.query(DECLARE)) == b"CZ"
        answers = await client.query("FETCH c")
        assert kinds(answers)[-2:] == b"EZ"
        assert b"due to statement timeout" in answers[-2][1]


@on_loop
async def test_a_cursor_is_for_what_reads() -> None:
    async with pg_site() as (here, client):
        await client.query("BEGIN")
        refused = await client.query("DECLARE c CURSOR FOR DELETE FROM lake.demo.t")
        assert kinds(refused) == b"EZ"
        assert here.engine.asked == []


@pytest.mark.parametrize("is_binary", [False, True])
@on_loop
async def test_psycopgs_named_cursor_works(is_binary: bool) -> None:
    async with pg_site(RowsEngine(TEN)) as (here, _):
        connection = await psycopg.AsyncConnection.connect(
            host="127.0.0.1", port=here.number, user="ana", dbname="lake"
        )
        async with connection, connection.cursor("my cursor", binary=is_binary) as cursor:
            await cursor.execute("SELECT x FROM lake.demo.t WHERE x >= %s", (0,))
            assert [row[0] for row in await cursor.fetchmany(3)] == [0, 1, 2]
            assert [row[0] for row in await cursor.fetchall()] == list(range(3, 10))
