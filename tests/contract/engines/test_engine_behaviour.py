"""What every executing adapter does alike."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.domain.errors import (
    EngineUnavailableError,
    QueryCancelledError,
    QueryFailedError,
)
from lakehouse_core.engines.base import Result, Statement
from tests.contract.engines.tables import ROWS, TYPES, create_table
from tests.factories import unique

if TYPE_CHECKING:
    from lakehouse_core.config import Config
    from lakehouse_core.engines.base import Engine
    from tests.contract.engines.matrix import EngineCase
    from tests.contract.engines.tables import Table

DEADLINE_SECONDS = 60.0


def ask(engine: Engine, sql: str, gateway_id: str | None = None) -> Result:
    return engine.execute(
        Statement(
            sql=sql,
            user="ana",
            source="contract",
            tags=("team:tests", "suite:contract"),
            gateway_id=gateway_id,
        )
    )


def test_rows_come_back_with_their_types_and_values(engine: Engine, table: Table) -> None:
    rows = ask(engine, table.sql("SELECT * FROM @types")).rows

    assert dict(zip(rows.schema.names, rows.schema.types, strict=True)) == {
        field.name: field.type for field in TYPES
    }
    assert sorted(rows.to_pylist(), key=lambda row: row["id"]) == sorted(
        ROWS, key=lambda row: row["id"]
    )


def test_an_empty_table_gives_no_rows_but_its_columns(engine: Engine, config: Config) -> None:
    table = create_table(config, [])

    rows = ask(engine, table.sql("SELECT id, name FROM @types")).rows

    assert rows.num_rows == 0
    assert rows.schema.names == ["id", "name"]
    assert rows.schema.types == [pa.int64(), pa.string()]


def test_a_name_with_the_namespace_alone_is_a_table_of_the_lake(
    engine: Engine, table: Table
) -> None:
    sql = table.sql("SELECT count(*) AS n FROM @types").replace("lake.", "")

    assert ask(engine, sql).rows.to_pylist() == [{"n": 3}]


def test_each_statement_has_an_id_of_its_own(engine: Engine) -> None:
    first, second = ask(engine, "SELECT 1 AS one"), ask(engine, "SELECT 1 AS one")

    assert first.query_id
    assert first.query_id != second.query_id


def test_text_that_is_no_statement_is_refused(engine: Engine) -> None:
    with pytest.raises(QueryFailedError) as failure:
        ask(engine, "SELEC 1")

    assert failure.value.code in {"SYNTAX_ERROR", "PARSE_SYNTAX_ERROR"}


def test_an_unknown_table_is_named(engine: Engine, table: Table) -> None:
    with pytest.raises(QueryFailedError, match="types_of_dreams") as failure:
        ask(engine, table.sql("SELECT * FROM @types_of_dreams"))

    assert failure.value.code in {"TABLE_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND"}
    assert failure.value.query_id


def test_an_unknown_column_is_named(engine: Engine, table: Table) -> None:
    with pytest.raises(QueryFailedError, match="no_such_column") as failure:
        ask(engine, table.sql("SELECT 1,\n  no_such_column FROM @types"))
    assert failure.value.position == (2, 3)


def test_a_statement_that_fails_while_it_runs_is_a_failed_query(
    engine: Engine, table: Table, case: EngineCase
) -> None:
    with pytest.raises(QueryFailedError, match=case.cast_error) as failure:
        ask(engine, table.sql("SELECT CAST(name AS INTEGER) AS n FROM @types WHERE id = 1"))

    assert failure.value.code


def test_an_engine_that_is_not_there_is_unavailable(dead_engine: Engine) -> None:
    with pytest.raises(EngineUnavailableError):
        ask(dead_engine, "SELECT count(*) FROM lake.demo.events")


def test_a_probe_of_a_running_engine_is_healthy(engine: Engine, table: Table) -> None:
    ask(engine, table.sql("SELECT 1 AS one FROM @types WHERE id = 1"))

    probe = engine.probe()

    assert (probe.observed, probe.detail) == (ObservedState.HEALTHY, None)
    assert probe.version
    assert probe.latency_ms is not None


def test_a_probe_of_an_absent_engine_is_unhealthy_and_says_why(dead_engine: Engine) -> None:
    probe = dead_engine.probe()

    assert probe.observed is ObservedState.UNHEALTHY
    assert probe.detail


def test_a_new_snapshot_is_seen_by_the_next_query(engine: Engine, table: Table) -> None:
    count = table.sql("SELECT count(*) AS n FROM @types")
    before = ask(engine, count).rows.to_pylist()

    table.append([ROWS[0]])

    assert (before, ask(engine, count).rows.to_pylist()) == ([{"n": 3}], [{"n": 4}])


def test_queries_run_side_by_side_and_each_gets_its_own_rows(engine: Engine, table: Table) -> None:
    def one(number: int) -> int:
        sql = table.sql("SELECT @number + count(*) AS n FROM @types").replace(
            "@number", str(number)
        )
        return ask(engine, sql).rows.to_pylist()[0]["n"]

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(one, range(12)))

    assert answers == [number + 3 for number in range(12)]


def test_a_running_query_can_be_cancelled_by_the_id_it_was_sent_with(
    engine: Engine, case: EngineCase
) -> None:
    gateway_id = unique("gateway")
    failures: list[Exception] = []

    def run() -> None:
        try:
            ask(engine, case.endless_sql, gateway_id)
        except (QueryFailedError, EngineUnavailableError) as error:
            failures.append(error)

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not engine.cancel(gateway_id):
        assert time.monotonic() < deadline, "the query never started"
        time.sleep(0.05)
    worker.join(DEADLINE_SECONDS)

    assert [type(error) for error in failures] == [QueryCancelledError]
    assert ask(engine, "SELECT 1 AS one").rows.to_pylist() == [{"one": 1}]


def test_cancelling_what_does_not_run_says_so(engine: Engine) -> None:
    assert engine.cancel(unique("nobody")) is False
