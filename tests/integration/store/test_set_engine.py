"""`set engine`: anybody may wish, about known engines, in bounds; nothing in a wish is SQL."""

from __future__ import annotations

import base64
import json
import secrets
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agents.probe import EngineRow
from lakehouse_core.domain.engine import ConfiguredState, EngineRequest
from lakehouse_core.domain.errors import NotFoundError, StoreError, StoreUnavailableError
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.rows import records
from lakehouse_core.views.switches import set_engine
from tests.factories import NOW
from tests.integration.store.conftest import wait_until

if TYPE_CHECKING:
    from lakehouse_core.store.client import StoreClient

pytestmark = pytest.mark.duckdb
NASTY = 'it\'s "quoted"; DROP TABLE engine; --\n{file} $1 \u2028 Ωж'


@pytest.fixture
def engine(writer: StoreClient) -> str:
    name = f"e{secrets.token_hex(4)}"
    row = EngineRow(
        engine_id=name,
        engine_type="trino",
        dialect="trino",
        catalog="lake",
        url=None,
        configured="active",
        changed_by=None,
        reason=None,
        changed_at=NOW,
    )
    writer.upsert("engine", to_arrow("engine", [row]))
    return name


def requests(client: StoreClient, engine: str) -> tuple[EngineRequest, ...]:
    sql = "SELECT * FROM engine_request WHERE engine_id = $engine"
    return records(EngineRequest, client.read(sql, engine=engine))


def send(client: StoreClient, **given: Any) -> int:
    """How many rows came back; a refusal of the gate counts as none."""
    wish = {
        "request_id": secrets.token_hex(16),
        "configured": "maintenance",
        "actor": "ana",
        **given,
    }
    text = base64.urlsafe_b64encode(json.dumps(wish).encode()).decode()
    try:
        return client.command(f"set engine {text}").num_rows
    except StoreError:
        return 0


def test_a_reader_may_wish_and_every_character_arrives(reader: StoreClient, engine: str) -> None:
    assert send(reader, engine_id=engine, reason=NASTY) == 1
    (wish,) = requests(reader, engine)
    assert (wish.reason, wish.actor, wish.configured) == (NASTY, "ana", "maintenance")
    assert wish.state == "waiting"


@pytest.mark.parametrize(
    "given",
    [
        {"configured": "broken"},
        {"engine_id": "nobody"},
        {"actor": ""},
        {"actor": "x" * 121},
        {"reason": "x" * 1001},
        {"request_id": "1"},
    ],
)
def test_what_is_out_of_bounds_is_not_noted(
    reader: StoreClient, engine: str, given: dict[str, str]
) -> None:
    assert send(reader, **{"engine_id": engine, **given}) == 0
    assert requests(reader, engine) == ()


def test_the_answer_of_the_agents_is_waited_for(
    writer: StoreClient, reader: StoreClient, engine: str
) -> None:
    def answer() -> None:
        wait_until(lambda: bool(requests(writer, engine)))
        (wish,) = requests(writer, engine)
        done = EngineRequest(
            request_id=wish.request_id,
            asked_at=wish.asked_at,
            engine_id=wish.engine_id,
            configured=wish.configured,
            actor=wish.actor,
            reason=wish.reason,
            state="done",
            answered_at=NOW,
            answer="it is so",
        )
        writer.upsert("engine_request", to_arrow("engine_request", [done]))

    agents = threading.Thread(target=answer)
    agents.start()
    got = set_engine(reader, engine, ConfiguredState.MAINTENANCE, actor="ana", reason="disks")
    agents.join()
    assert (got.state, got.answer) == ("done", "it is so")


def test_without_agents_it_says_so(reader: StoreClient, engine: str) -> None:
    with pytest.raises(StoreUnavailableError, match="has not answered within 0 s"):
        set_engine(reader, engine, ConfiguredState.ACTIVE, actor="ana", patience=0.0)


def test_an_engine_that_is_not_known_is_named_with_the_nearest(
    reader: StoreClient, engine: str
) -> None:
    with pytest.raises(NotFoundError, match=f"did you mean {engine}"):
        set_engine(reader, f"{engine}x", ConfiguredState.ACTIVE, actor="ana")
