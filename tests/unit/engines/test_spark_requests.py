"""Which of a statement's operations is the query, as Spark's event log will tell it."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
from pyspark.sql.connect import proto
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

from lakehouse_core.domain.errors import QueryCancelledError
from lakehouse_core.engines.spark.sessions import Caller, Operations, Sessions

COMMAND = proto.Plan(command=proto.Command(sql_command=proto.SqlCommand(sql="x")))
QUERY = proto.Plan(root=proto.Relation(sql=proto.SQL(query="SELECT 1")))
LEFT_BEHIND = proto.Plan(root=proto.Relation(local_relation=proto.LocalRelation(schema="a INT")))


@pytest.fixture
def sessions() -> Sessions:
    return Sessions("127.0.0.1", 1)


def send(sessions: Sessions, operations: Operations, *plans: Any) -> list[str]:
    hook = sessions._hook_factory()(None)
    with sessions.recording(operations):
        requests = [hook.on_execute_plan(proto.ExecutePlanRequest(plan=plan)) for plan in plans]
    return [request.operation_id for request in requests]


def test_of_a_query_it_is_the_operation_that_fetches(sessions: Sessions) -> None:
    operations = Operations()

    _, fetching = send(sessions, operations, COMMAND, QUERY)

    assert operations.query_id == fetching


def test_of_a_command_it_is_the_command(sessions: Sessions) -> None:
    operations = Operations()

    command, _ = send(sessions, operations, COMMAND, LEFT_BEHIND)

    assert operations.query_id == command


def test_of_a_statement_that_failed_at_once_it_is_the_command(sessions: Sessions) -> None:
    operations = Operations()

    (command,) = send(sessions, operations, COMMAND)

    assert operations.query_id == command


def test_a_cancelled_statement_starts_no_further_operation(sessions: Sessions) -> None:
    operations = Operations()
    send(sessions, operations, COMMAND)
    operations.is_cancelled = True

    with pytest.raises(QueryCancelledError):
        send(sessions, operations, QUERY)


def test_operations_of_nobody_are_let_through(sessions: Sessions) -> None:
    hook = sessions._hook_factory()(None)

    assert hook.on_execute_plan(proto.ExecutePlanRequest(plan=QUERY)).operation_id


def test_a_session_that_is_collected_waits_for_nobody(sessions: Sessions) -> None:
    # Where and when the collector runs is up to nobody: here, as in a thread that another one
    # starts while it holds the driver's lock.
    caller = Caller("ana", "test")
    ring: list[Any] = [sessions.get(caller)]
    ring.append(ring)
    sessions.drop(caller, ring[0])
    del ring
    collector = threading.Thread(target=gc.collect, daemon=True)
    with ExecutePlanResponseReattachableIterator._lock:
        collector.start()
        collector.join(timeout=10)
        is_waiting = collector.is_alive()
    collector.join()
    assert not is_waiting
