"""What a token holder may run on the owner: no abuse of the corpus, every honest question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.agent import AgentState
from lakehouse_core.domain.errors import StoreError, StoreUnavailableError
from lakehouse_core.store.client import StoreClient
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views import (
    agents,
    decisions,
    engines,
    health,
    hourly,
    letters,
    names,
    queries,
    recommendations,
    red,
    requests,
    template_detail,
    unhealed,
)
from tests.factories import NOW, query_event
from tests.integration.store.corpus import ABUSES, HONEST, WRITER_COMMANDS
from tests.integration.store.owner_process import READER, WRITER

if TYPE_CHECKING:
    from types import ModuleType

    from lakehouse_core.store.serve import Role
    from tests.integration.store.conftest import OwnerProcess

pytestmark = pytest.mark.duckdb


def refused(client: StoreClient, sql: str) -> bool:
    """Whether the gate itself said no; an error of the engine would mean it was let through."""
    try:
        client.command(sql)
    except StoreError as error:
        return "may run one SELECT" in str(error)
    return False


@pytest.fixture(scope="module", autouse=True)
def one_query(served: OwnerProcess) -> None:
    with served.client("writer") as client:
        client.upsert("query_event", to_arrow("query_event", [query_event(tags=("a",))]))


@pytest.mark.parametrize("role", ["reader", "writer"])
def test_no_abuse_passes_the_gate(served: OwnerProcess, role: Role) -> None:
    values = {"spool": served.config.spool, "address": f"quack:127.0.0.1:{served.config.port}"}
    with served.client(role) as client:
        passed = [sql for sql in ABUSES if not refused(client, sql.format(**values))]
        assert passed == []
        assert client.read("SELECT 1 FROM query_event").num_rows == 1
    assert not list(served.config.spool.glob("stolen*"))


def test_a_reader_may_not_use_the_commands_of_writers(reader: StoreClient) -> None:
    assert [sql for sql in WRITER_COMMANDS if not refused(reader, sql)] == []


def test_a_reader_may_wish_for_a_run_of_a_known_job_once(
    served: OwnerProcess, reader: StoreClient
) -> None:
    job = AgentState(
        agent="collect:trino", circuit="closed", failures=0, since=NOW, reason=None,
        retry_at=None, abandoned=0, updated_at=NOW,
    )  # fmt: skip
    with served.client("writer") as client:
        client.upsert("agent_state", to_arrow("agent_state", [job]))
    first, second = (reader.command("run agent collect:trino").to_pylist() for _ in range(2))
    assert [wish["state"] for wish in first] == ["waiting"]
    assert second == first
    assert reader.command("run agent nobody").num_rows == 0
    assert reader.read("SELECT 1 FROM agent_request").num_rows == 1


@pytest.mark.parametrize("role", ["reader", "writer"])
def test_honest_questions_are_answered(served: OwnerProcess, role: Role) -> None:
    with served.client(role) as client:
        for sql in HONEST:
            client.read(sql)


@pytest.mark.parametrize(
    "module",
    [
        *(agents, decisions, engines, health, hourly, letters, names, queries, recommendations),
        *(red, requests, template_detail, unhealed),
    ],
)
def test_every_statement_of_the_views_passes_the_gate(
    reader: StoreClient, module: ModuleType
) -> None:
    statements = {name: sql for name, sql in vars(module).items() if name.endswith("_SQL")}
    assert statements
    # Without its parameters a statement cannot run; the gate must be past by then.
    assert [name for name, sql in statements.items() if refused(reader, sql)] == []


def test_a_token_opens_its_own_door_only(served: OwnerProcess) -> None:
    for token, role in ((READER, "writer"), (WRITER, "reader"), ("wrong-canary", "reader")):
        with (
            StoreClient(served.config, token=token, role=role) as client,  # type: ignore[arg-type]
            pytest.raises(StoreError, match=rf"refuses the {role} token") as caught,
        ):
            client.read("SELECT 1")
        assert token not in str(caught.value)


def test_tokens_are_in_no_message_and_no_log(served: OwnerProcess) -> None:
    shown = [served.log.read_text()]
    with served.client("reader") as reader, served.client("writer") as writer:
        for client in (reader, writer):
            shown.append(repr(client))
            for sql in ("SELECT nope", "DROP TABLE engine", "merge engine none.parquet"):
                with pytest.raises(StoreError) as caught:
                    client.command(sql)
                chain = (caught.value, caught.value.__cause__, caught.value.__context__)
                shown += [f"{error!r} {vars(error) if error else ''}" for error in chain]
    text = "\n".join(shown)
    assert WRITER not in text
    assert READER not in text
    for name in ("telemetry.duckdb", "telemetry.duckdb.wal"):
        file = served.folder / name
        content = file.read_bytes() if file.exists() else b""
        assert WRITER.encode() not in content
        assert READER.encode() not in content


def test_a_reader_writes_nothing(reader: StoreClient) -> None:
    with pytest.raises(StoreError, match="opened as reader"):
        reader.upsert("query_event", to_arrow("query_event", [query_event()]))


def test_without_an_owner_a_read_says_what_to_start(owner: OwnerProcess) -> None:
    with (
        owner.client("reader") as client,
        pytest.raises(StoreUnavailableError, match="lakehelm up"),
    ):
        client.read("SELECT 1")
