from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.domain.query import EngineId, QueryStatus, TemplateId
from lakehouse_core.views.names import most_used_table
from lakehouse_core.views.template_detail import show_template
from lakehouse_core.views.workloads import WorkloadFilters
from tests.factories import NOW, lake_table, query_event
from tests.unit.views.conftest import clock

if TYPE_CHECKING:
    from tests.unit.views.conftest import Shelf

DAY = WorkloadFilters(window="24h")


@pytest.mark.slow
def test_template_is_shown_over_all_engines_and_on_each(store: Shelf) -> None:
    for number in range(6):
        store.add(
            "query_event",
            query_event(
                engine_id=EngineId("trino" if number < 4 else "spark"),
                template_id=TemplateId("t1"),
                status=QueryStatus.FAILED if number == 0 else QueryStatus.FINISHED,
                sql_text=f"SELECT {number}",
                submitted_at=NOW - timedelta(minutes=number + 1),
                user_name=f"user{number % 2}",
            ),
        )
    store.add("query_event", query_event(template_id=TemplateId("t2")))
    store.add_rows(
        "column_usage",
        {"template_id": "t1", "table_name": "lake.demo.t", "column_name": "a", "role": "group"},
    )
    seen = show_template(store, "t1", DAY, clock)
    assert (seen.total.runs, seen.total.failed, seen.total.users) == (6, 1, 2)
    assert {one.engines: one.runs for one in seen.engines} == {("spark",): 2, ("trino",): 4}
    assert seen.sample is not None
    assert seen.sample.sql_text == "SELECT 0"
    assert [use.column_name for use in seen.columns] == ["a"]


def test_template_that_did_not_run_is_an_error_that_says_so(store: Shelf) -> None:
    with pytest.raises(NotFoundError, match="did not run in the last 24 hours"):
        show_template(store, "t1", DAY, clock)


def test_most_used_table_is_one_that_still_exists(store: Shelf) -> None:
    assert most_used_table(store) is None
    store.add(
        "lake_table",
        lake_table(table_id="lake.demo.a"),
        lake_table(table_id="lake.demo.b"),
        lake_table(table_id="lake.demo.gone", dropped_at=NOW),
    )
    uses = {"lake.demo.a": 1, "lake.demo.b": 2, "lake.demo.gone": 3}
    for table, count in uses.items():
        for number in range(count):
            store.add_rows(
                "column_usage",
                {
                    "template_id": f"t{number}",
                    "table_name": table,
                    "column_name": "c",
                    "role": "project",
                },
            )
    assert most_used_table(store) == "lake.demo.b"
