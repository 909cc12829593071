"""Statements that wait for a place: each is launched once or given up whole."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.query import QueryStatus
from tests.unit.gateway.trino.site import site
from tests.unit.gateway.trino.test_relaying import path_of
from tests.unit.routing.conftest import on_loop

if TYPE_CHECKING:
    from tests.unit.gateway.trino.site import Site

PLACES = 4


async def filled(here: Site) -> tuple[list[str], str]:
    """Paths of the statements that have all places, and of one that waits."""
    for one in here.trinos.values():
        one.pages = 3
    taken = [path_of((await here.run(f"SELECT {n}"))["nextUri"]) for n in range(PLACES)]
    page = await here.run("SELECT 'waits'")
    assert page["stats"]["state"] == "QUEUED"
    return taken, path_of(page["nextUri"])


@pytest.mark.slow
@on_loop
async def test_a_place_that_came_for_a_client_that_left_is_given_back() -> None:
    async with site() as here:
        taken, _ = await filled(here)
        await here.ask(f"DELETE {taken[0]}")
        async with asyncio.timeout(60):
            while here.running() < PLACES:  # the one that waits has got it, and nobody knows
                await asyncio.sleep(0)
        here.front.sweep_once(time.monotonic() + 10_000)
        async with asyncio.timeout(60):
            while here.running():
                await asyncio.sleep(0)
        assert len(here.notes.flights) == PLACES + 1
        assert {one.status for one in here.notes.flights} == {QueryStatus.CANCELLED}


@pytest.mark.slow
@on_loop
async def test_one_that_leaves_the_queue_is_recorded_and_takes_no_place() -> None:
    async with site() as here:
        _, waiting = await filled(here)
        status, _ = await here.ask(f"DELETE {waiting}")
        assert status == 204
        async with asyncio.timeout(60):
            while not here.notes.flights:
                await asyncio.sleep(0)
        (flight,) = here.notes.flights
        assert (flight.status, here.running()) == (QueryStatus.CANCELLED, PLACES)


@pytest.mark.slow
@on_loop
async def test_two_who_ask_at_once_get_one_statement_and_one_answer() -> None:
    async with site() as here:
        taken, waiting = await filled(here)
        asked = [asyncio.create_task(here.ask(f"GET {waiting}")) for _ in range(2)]
        before = here.handled
        async with asyncio.timeout(60):
            while here.handled < before + 2:
                await asyncio.sleep(0)
        await here.ask(f"DELETE {taken[0]}")
        (first, body), (second, again) = await asyncio.gather(*asked)
        sent = [sql for one in here.trinos.values() for sql in one.statements]
        assert sent.count("SELECT 'waits'") == 1
        assert (first, second, body) == (200, 200, again)
        assert "/v1/statement/at/" in json.loads(body)["nextUri"]
        assert here.running() == PLACES
