"""Clients that take no rows: the engine's place is not theirs for ever."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakehouse_core.domain.errors import QueryCancelledError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.base import Cost, RowStream
from lakehouse_core.gateway.pipe import BatchPipe
from lakehouse_core.gateway.postgres import messages as m
from tests.unit.gateway.postgres.site import RowsEngine, kinds, parse, pg_site
from tests.unit.routing.conftest import on_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse_core.engines.base import Statement
    from tests.unit.gateway.postgres.site import PgSite

SPARK = EngineId("spark")
SYNC = (b"S", b"")
FIRST_TWO = (b"B", b"\0\0\0\0\0\0\0\0"), (b"E", b"\0\0\0\0\2")
TAKEN_IN_PARTS = {
    "cursor": ((b"Q", m.text("DECLARE c CURSOR FOR SELECT x FROM t; FETCH 2 FROM c")),),
    "portal": (parse("", "SELECT x FROM t"), *FIRST_TWO, SYNC),
}
THE_REST = {
    "cursor": ((b"Q", m.text("FETCH ALL FROM c")),),
    "portal": ((b"E", b"\0\0\0\0\0"), SYNC),
}


class EndlessEngine(RowsEngine):
    """Its rows never end."""

    @contextmanager
    def stream(self, statement: Statement) -> Iterator[RowStream]:
        self.asked.append(statement)
        batch = pa.record_batch({"x": pa.array(range(2**14), pa.int64())})

        def batches() -> Iterator[pa.RecordBatch]:
            while True:
                yield batch

        yield RowStream(query_id="q", schema=batch.schema, batches=batches(), cost=Cost())


async def until(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not what():
            await asyncio.sleep(0.01)


def is_free(here: PgSite) -> bool:
    return here.router.running(SPARK) == 0 and here.service.running == 0


@pytest.mark.parametrize("how", TAKEN_IN_PARTS)
@on_loop
async def test_who_takes_some_rows_and_idles_loses_the_place_and_is_told(how: str) -> None:
    async with pg_site(EndlessEngine()) as (here, client):
        await client.query("BEGIN")
        assert kinds(await client.send(*TAKEN_IN_PARTS[how])).count(b"D") == 2
        now = time.monotonic()
        here.port.sweep_once(now + 299)
        await asyncio.sleep(0)
        assert here.router.running(SPARK) == 1
        here.port.sweep_once(now + 301)
        await until(lambda: is_free(here))
        (flight,) = here.notes.flights
        assert (flight.status.value, "abandoned" in str(flight.error)) == ("cancelled", True)
        answers = await client.send(*THE_REST[how])
        assert kinds(answers)[-2:] == b"EZ"
        assert "abandoned" in client.told
        assert kinds(await client.query("ROLLBACK")) == b"CZ"  # the session goes on


@on_loop
async def test_who_stops_reading_loses_the_place_and_is_told_when_reading_again() -> None:
    async with pg_site(EndlessEngine()) as (here, client):
        client._writer.write(m.message(b"Q", m.text("SELECT x FROM t")))
        ((_, session),) = here.port._sessions.values()
        socket = session._writer.transport
        await until(lambda: socket.get_write_buffer_size() > 2**16)  # nothing goes out any more
        here.port.sweep_once(time.monotonic() + 301)
        await until(lambda: is_free(here))
        answers = await client.answers()
        assert kinds(answers)[-2:] == b"EZ"
        assert "abandoned" in client.told


@on_loop
async def test_who_waits_for_a_slow_engine_is_not_idle() -> None:
    async with pg_site() as (here, client):
        here.engine.go.clear()
        asked = asyncio.create_task(client.query("SELECT x FROM t"))
        await until(lambda: bool(here.engine.asked))
        here.port.sweep_once(time.monotonic() + 301)
        await asyncio.sleep(0)
        here.engine.go.set()
        assert kinds(await asked) == b"TDCZ"
        assert here.engine.stopped == []


@on_loop
async def test_rows_that_were_dropped_are_no_end_of_the_result() -> None:
    pipe = BatchPipe(asyncio.get_running_loop(), 2**20, 2**16)
    pipe.put(pa.record_batch({"x": [1]}))
    pipe.end()
    pipe.close("abandoned")
    assert not await pipe.is_drained(0)
    with pytest.raises(QueryCancelledError, match="abandoned"):
        await pipe.get()


@on_loop
async def test_a_result_that_was_read_to_its_end_stays_whole_when_it_is_closed() -> None:
    pipe = BatchPipe(asyncio.get_running_loop(), 2**20, 2**16)
    pipe.put(pa.record_batch({"x": [1]}))
    pipe.end()
    assert await pipe.get() is not None
    pipe.close("over")
    assert await pipe.get() is None


@on_loop
async def test_who_takes_a_few_rows_now_and_then_is_not_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with pg_site(EndlessEngine()) as (here, client):
        began = time.monotonic()
        await client.query("BEGIN; DECLARE c CURSOR FOR SELECT x FROM t; FETCH c")
        monkeypatch.setattr(time, "monotonic", lambda: began + 250)
        await client.query("FETCH c")  # of rows that came from the engine already
        monkeypatch.undo()
        here.port.sweep_once(began + 400)
        await asyncio.sleep(0)
        assert kinds(await client.query("FETCH c")) == b"TDCZ"
        assert here.router.running(SPARK) == 1
