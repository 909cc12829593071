from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agents.runs import MAX_ERROR, Result, close_interrupted_runs, one_line, record_run
from lakehouse_core.domain.errors import SourceUnavailableError, StoreUnavailableError
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, agent_run

if TYPE_CHECKING:
    import pyarrow as pa

    from lakehouse_core.store.owner import OwnerStore


def clock() -> Any:
    times = iter(NOW + timedelta(seconds=n) for n in range(100))
    return lambda: next(times)


def runs(store: OwnerStore) -> list[dict[str, Any]]:
    return store.read("FROM agent_run ORDER BY started_at").to_pylist()


def test_a_run_is_there_while_it_runs_and_tells_how_it_ended(store: OwnerStore) -> None:
    seen: list[dict[str, Any]] = []

    def work() -> Result:
        seen.extend(runs(store))
        return Result(rows=3)

    record_run(store, clock(), "collect:x", work)
    assert [(r["outcome"], r["ended_at"]) for r in seen] == [("running", None)]
    (row,) = runs(store)
    assert (row["agent"], row["outcome"], row["rows_written"]) == ("collect:x", "ok", 3)
    assert row["ended_at"] > row["started_at"]


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (Result(), "ok"),
        (Result(rows=1, dead_letters=1), "partial"),
        (Result(rows=1, error="cut", is_partial=True), "partial"),
        (Result(error="down"), "failed"),
    ],
)
def test_the_outcome_says_what_the_figures_say(
    store: OwnerStore, result: Result, outcome: str
) -> None:
    assert record_run(store, clock(), "x", lambda: result).outcome == outcome


def test_an_error_of_ours_is_one_line_in_the_row(store: OwnerStore) -> None:
    def work() -> Result:
        raise SourceUnavailableError("trino does not\nanswer")

    run = record_run(store, clock(), "collect:trino", work)
    assert (run.outcome, run.error) == ("failed", "trino does not answer")
    assert runs(store)[0]["error"] == "trino does not answer"


def test_a_bug_is_recorded_as_one_and_does_not_escape(store: OwnerStore) -> None:
    def work() -> Result:
        raise ZeroDivisionError("oops")

    run = record_run(store, clock(), "x", work)
    assert run.outcome == "failed"
    assert run.error == "internal error: ZeroDivisionError: oops"
    assert "Traceback" not in (runs(store)[0]["error"] or "")


def test_a_store_that_cannot_take_the_row_does_not_stop_the_job() -> None:
    class Away:
        def read(self, sql: str, **params: Any) -> pa.Table:
            raise StoreUnavailableError(sql)

        def upsert(self, table: str, rows: pa.Table) -> int:
            raise StoreUnavailableError(table)

        def close(self) -> None:
            pass

    assert record_run(Away(), clock(), "x", lambda: Result(rows=1)).outcome == "ok"


def test_runs_of_a_killed_process_are_closed_as_what_they_are(store: OwnerStore) -> None:
    left = agent_run(run_id="left", outcome="running", ended_at=None)
    done = agent_run(run_id="done")
    store.upsert("agent_run", to_arrow("agent_run", [left, done]))
    assert close_interrupted_runs(store, lambda: NOW) == 1
    by_id = {row["run_id"]: row for row in runs(store)}
    assert by_id["left"]["outcome"] == "failed"
    assert by_id["left"]["error"] == "its process ended while it ran"
    assert by_id["done"]["outcome"] == done.outcome
    assert close_interrupted_runs(store, lambda: NOW) == 0


def test_a_long_message_is_bounded() -> None:
    assert len(one_line(ValueError("x" * 5_000))) == MAX_ERROR
    assert one_line(ValueError()) == "ValueError"
