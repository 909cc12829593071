"""Statements that do not parse are counted and listed by reason."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from collectors.understanding import Observed, Understanding
from lakehouse_core.domain.query import TemplateId
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.unparsed import list_unparsed
from tests.factories import NOW, query_event
from tests.unit.views.conftest import clock

if TYPE_CHECKING:
    from tests.unit.views.conftest import Shelf

HOUR = Filters(window="1h")
TEXTS = ["SELECT 1", "SELEC 1 FRM", "SELEC 2 FRM", "SELECT 'open", "SELECT 1; SELECT 2", ""]


def collect(store: Shelf, *texts: str | None, engine: str = "trino", hours: float = 0.1) -> None:
    observed = [
        Observed(
            query_event(
                engine_id=engine,
                query_id=f"{engine}-{hours}-{number}",
                sql_text=text,
                dialect="trino",
                submitted_at=NOW - timedelta(hours=hours),
            )
        )
        for number, text in enumerate(texts)
    ]
    for table, rows in Understanding().rows(observed).items():
        store.upsert(table, rows)


def test_counted_by_reason_and_listed(store: Shelf) -> None:
    collect(store, *TEXTS)
    found = list_unparsed(store, HOUR, clock)
    assert (found.queries, found.inspected, found.unparsed) == (6, 5, 4)
    assert found.ratio == 0.8
    counts = {row.reason: (row.templates, row.queries) for row in found.reasons}
    assert counts == {"syntax": (1, 2), "unclosed": (1, 1), "several_statements": (1, 1)}
    assert found.reasons[0].reason == "syntax"
    assert found.statements[0].queries == 2
    assert "SELEC ? FRM" in found.statements[0].template.upper()
    assert "line 1" in found.statements[0].error


@pytest.mark.slow
def test_window_engine_and_reason_narrow_it(store: Shelf) -> None:
    collect(store, "SELEC 1 FRM", "SELECT 'open")
    collect(store, "SELEC 1 FRM", engine="spark")
    collect(store, "SELEC 1 FRM", hours=30)
    found = list_unparsed(store, HOUR, clock, reason="unclosed")
    assert [row.reason for row in found.statements] == ["unclosed"]
    assert {row.reason: row.engines for row in found.reasons}["syntax"] == ("spark", "trino")
    spark = list_unparsed(store, Filters(window="1h", engine="spark"), clock)
    assert (spark.queries, spark.unparsed) == (1, 1)


def test_a_row_from_before_reasons_were_classed_is_shown_as_such(store: Shelf) -> None:
    store.add("query_event", query_event(submitted_at=NOW - timedelta(minutes=1), template_id="t"))
    store.add_rows(
        "query_template",
        {
            "template_id": "t",
            "dialect": "trino",
            "template": "selec",
            "statement_kind": "other",
            "parse_error": "bad",
            "seen_at": NOW,
        },
    )
    assert list_unparsed(store, HOUR, clock).reasons[0].reason == "unclassified"


def test_an_empty_store_has_no_share(store: Shelf) -> None:
    found = list_unparsed(store, HOUR, clock)
    assert (found.unparsed, found.ratio, found.reasons) == (0, None, ())


@pytest.mark.slow
def test_columns_of_no_known_table_are_counted_with_their_queries(store: Shelf) -> None:
    for number in range(3):
        store.add("query_event", query_event(query_id=f"u{number}", template_id=TemplateId("t1")))
    use = {"template_id": "t1", "role": "project"}
    for table, column in (("", "open"), ("", "late"), ("lake.demo.t", "late")):
        store.add_rows("column_usage", use | {"table_name": table, "column_name": column})
    found = list_unparsed(store, Filters(window="24h"), clock).unresolved
    assert [(one.column_name, one.templates, one.queries) for one in found] == [("open", 1, 3)]
