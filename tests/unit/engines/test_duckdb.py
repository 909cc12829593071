"""What only the embedded engine does: measuring, journaling, staying in the warehouse."""

from __future__ import annotations

import json
import threading
import time
from hashlib import sha512
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from lakehouse_core.domain.errors import (
    EngineUnavailableError,
    QueryCancelledError,
    QueryFailedError,
)
from lakehouse_core.engines.base import Statement
from lakehouse_core.engines.duckdb.pool import Ticket
from lakehouse_core.engines.registry import open_engine
from tests.contract.engines.tables import ROWS, Table, create_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse_core.config import Config
    from lakehouse_core.engines.base import Engine
    from lakehouse_core.engines.duckdb.pool import Pool

pytestmark = pytest.mark.duckdb

ENDLESS = "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range + b.range = -1"
DEADLINE_SECONDS = 60.0


@pytest.fixture
def config(load_demo_config: Callable[..., Config]) -> Config:
    return load_demo_config(LAKEHELM__ENGINES__DUCKDB__MAX_RUNNING=1)


@pytest.fixture
def table(config: Config) -> Table:
    return create_table(config, ROWS)


@pytest.fixture
def engine(config: Config) -> Iterator[Engine]:
    engine = open_engine("duckdb", config)
    yield engine
    engine.close()


def journal(config: Config) -> list[dict[str, Any]]:
    files = sorted(config.engines["duckdb"].journal.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def ask(engine: Engine, sql: str, **given: Any) -> Any:
    return engine.execute(Statement(sql=sql, user="ana", source="bi", **given))


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def test_a_query_is_journaled_with_its_cost(engine: Engine, table: Table, config: Config) -> None:
    snapshot = table.append(ROWS)

    result = ask(
        engine, table.sql("SELECT name FROM @types"), tags=("team:growth",), gateway_id="g-1"
    )

    (line,) = journal(config)
    assert line["query_id"] == result.query_id
    assert line["status"] == "finished"
    assert line["rows_returned"] == 6
    assert line["snapshot_ids"] == [snapshot]
    assert (line["user_name"], line["source"], line["tags"]) == ("ana", "bi", ["team:growth"])
    assert line["gateway_id"] == "g-1"
    assert line["cpu_ms"] > 0
    assert line["planning_ms"] > 0
    assert line["submitted_at"] <= line["started_at"] <= line["ended_at"]


def test_bytes_are_those_of_the_columns_that_are_read(engine: Engine, config: Config) -> None:
    wide = [
        {**ROWS[0], "id": number, "name": sha512(str(number).encode()).hexdigest()}
        for number in range(5_000)
    ]
    table = create_table(config, wide)

    for sql in ("SELECT max(name) FROM @types", "SELECT max(id) FROM @types"):
        for _ in range(2):  # the second time from the same files, which nobody cached
            ask(engine, table.sql(sql))

    names, names_again, ids, ids_again = [line["bytes_scanned"] for line in journal(config)]
    assert names > 5 * ids > 0
    assert (names_again, ids_again) == (names, ids)


def test_a_failed_query_is_journaled_with_its_error(
    engine: Engine, table: Table, config: Config
) -> None:
    for sql in ("SELEC 1", "SELECT no_such FROM @types", "DROP TABLE @types"):
        with pytest.raises(QueryFailedError):
            ask(engine, table.sql(sql))

    lines = journal(config)
    assert [line["status"] for line in lines] == ["failed"] * 3
    assert [line["error_code"] for line in lines] == [
        "SYNTAX_ERROR",
        "BinderException",
        "NOT_READ_ONLY",
    ]
    assert {line["error_class"] for line in lines} == {"user_error"}
    assert str(config.home) not in lines[1]["error_message"]


def test_half_a_character_in_a_statement_is_told_and_journaled(
    engine: Engine, config: Config
) -> None:
    with pytest.raises(QueryFailedError, match="half a character at position 10") as caught:
        ask(engine, "SELECT 'a\ud800' AS x")
    assert caught.value.code == "INVALID_TEXT"
    (line,) = journal(config)
    assert line["sql_text"] == "SELECT 'a\ufffd' AS x"
    assert ask(engine, "SELECT 1 AS x").rows.num_rows == 1


def test_secrets_do_not_reach_the_journal(engine: Engine, config: Config) -> None:
    with pytest.raises(QueryFailedError):
        ask(engine, "CREATE SECRET s (TYPE s3, KEY_ID 'AKIAHUSH', SECRET 'hush-hush')")

    text = "".join(f.read_text() for f in config.engines["duckdb"].journal.iterdir())
    assert "CREATE SECRET" in text
    assert "hush" not in text.lower()


def test_a_query_that_waits_can_be_cancelled_and_the_next_one_runs(
    engine: Engine, config: Config
) -> None:
    outcomes: dict[str, Exception | None] = {}

    def run(name: str, sql: str) -> None:
        try:
            ask(engine, sql, gateway_id=name)
            outcomes[name] = None
        except QueryFailedError as error:
            outcomes[name] = error

    first = threading.Thread(target=run, args=("first", ENDLESS))
    first.start()
    second = threading.Thread(target=run, args=("second", "SELECT 1"))
    wait_until(lambda: engine._pool._tickets != [])  # type: ignore[attr-defined]
    second.start()
    wait_until(lambda: engine.cancel("second"))  # one slot, and the first never ends
    second.join(DEADLINE_SECONDS)
    wait_until(lambda: engine.cancel("first"))
    first.join(DEADLINE_SECONDS)

    assert isinstance(outcomes["second"], QueryCancelledError)
    assert isinstance(outcomes["first"], QueryCancelledError)
    assert {line["status"] for line in journal(config)} == {"cancelled"}
    assert ask(engine, "SELECT 1 AS one").rows.to_pylist() == [{"one": 1}]


def test_a_query_cancelled_just_before_its_statement_begins_stops(engine: Engine) -> None:
    pool: Pool = engine._pool  # type: ignore[attr-defined]
    ticket = Ticket(frozenset({"early"}))
    about_to_begin = threading.Event()
    outcome: list[Exception] = []

    def run() -> None:
        with pool.slot(ticket) as slot, pool.running(ticket, slot):
            about_to_begin.set()
            wait_until(lambda: ticket.is_cancelled)
            try:
                slot.run(ENDLESS)
            except duckdb.InterruptException as error:
                outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert about_to_begin.wait(DEADLINE_SECONDS)
    assert engine.cancel("early")
    thread.join(DEADLINE_SECONDS)

    assert len(outcome) == 1


def test_names_have_no_case(engine: Engine, table: Table) -> None:
    rows = ask(engine, table.sql("SELECT count(*) AS n FROM @types").upper()).rows

    assert rows.to_pylist() == [{"N": 3}]


def test_a_table_without_its_metadata_file_is_told_by_name(
    engine: Engine, table: Table, config: Config
) -> None:
    for file in config.catalogs["lake"].warehouse.rglob("*.metadata.json"):
        file.unlink()

    with pytest.raises(QueryFailedError, match="is missing") as failure:
        ask(engine, table.sql("SELECT * FROM @types"))

    assert failure.value.code == "TABLE_UNREADABLE"


def test_a_table_without_its_data_file_fails_and_the_engine_goes_on(
    engine: Engine, table: Table, config: Config
) -> None:
    for file in config.catalogs["lake"].warehouse.rglob("*.parquet"):
        file.unlink()

    with pytest.raises(QueryFailedError) as failure:
        ask(engine, table.sql("SELECT max(name) FROM @types"))

    assert failure.value.code == "IOException"
    assert journal(config)[0]["error_class"] == "external"
    assert ask(engine, "SELECT 1 AS one").rows.to_pylist() == [{"one": 1}]


def test_duckdb_itself_reads_nothing_outside_the_warehouse(engine: Engine, config: Config) -> None:
    """The second lock behind the statement gate."""
    outside = config.home / "secret.txt"
    outside.write_text("hush")
    slot = engine._pool.instance().slots[0]  # type: ignore[attr-defined]

    for sql in (
        "SELECT * FROM read_text('@outside')",
        "COPY (SELECT 1) TO '@outside'",
        "ATTACH '@outside.db'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "INSTALL httpfs",
    ):
        with pytest.raises(Exception, match=r"(?i)permission|configuration|disabled|locked"):
            slot.run(sql.replace("@outside", str(outside)))
    assert outside.read_text() == "hush"


def test_a_closed_engine_says_so(config: Config) -> None:
    engine = open_engine("duckdb", config)
    engine.close()

    with pytest.raises(EngineUnavailableError, match="closed"):
        ask(engine, "SELECT 1")
