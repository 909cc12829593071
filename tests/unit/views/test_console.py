"""What a visitor of the console ran, from the rows that gateway and engines keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.domain.query import EngineId
from lakehouse_core.views.console import own_statements
from tests.factories import query_event
from tests.unit.views.test_routing import routed

if TYPE_CHECKING:
    from tests.unit.views.conftest import Shelf


def test_rows_that_passed_unread_are_told_as_the_engine_counted_them(store: Shelf) -> None:
    passed = {"engine_id": "trino", "rows_sent": None}
    store.add(
        "routing_decision",
        routed("counted", query_id="q-1", rows_sent=4),
        routed("passed", query_id="q-2", **passed),
        routed("unfinished", query_id="q-3", status="cancelled", **passed),
    )
    store.add(
        "query_event",
        *(
            query_event(engine_id=EngineId(engine), query_id=query, rows_returned=7)
            for engine, query in (("duckdb", "q-1"), ("trino", "q-2"), ("trino", "q-3"))
        ),
    )
    seen = {one.gateway_id: one.rows_sent for one in own_statements(store, "ana")}
    assert seen == {"counted": 4, "passed": 7, "unfinished": None}
