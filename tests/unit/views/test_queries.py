from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.domain.query import EngineId, QueryStatus, TemplateId
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.queries import list_queries, running_now, show_query
from tests.factories import NOW, query_event
from tests.stores import new_store
from tests.unit.views.conftest import Shelf, clock

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUR = Filters(window="1h")


def ago(minutes: float) -> dict[str, object]:
    return {"submitted_at": NOW - timedelta(minutes=minutes)}


@pytest.fixture(scope="module")
def three_queries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    with new_store(tmp_path_factory.mktemp("store")) as owner:
        store = Shelf(owner)
        store.add(
            "query_event",
            query_event(
                **ago(1),
                query_id="query-1",
                engine_id=EngineId("trino"),
                tags=("team:bi",),
                sql_text="select * from lineitem",
            ),
            query_event(
                **ago(2),
                query_id="query-2",
                user_name="bo",
                status=QueryStatus.FAILED,
                sql_text=None,
                error_message="Out of memory",
            ),
            query_event(**ago(3), query_id="query-3", sql_text="select '100%'", user_name=None),
        )
        yield store


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(window="1h", engine="trino"), {"query-1"}),
        (Filters(window="1h", status="failed"), {"query-2"}),
        (Filters(window="1h", user="bo"), {"query-2"}),
        (Filters(window="1h", tag="team:bi"), {"query-1"}),
        (Filters(window="1h", text="LINEITEM"), {"query-1"}),
        (Filters(window="1h", text="out of memory"), {"query-2"}),
        (Filters(window="1h", text="query-3"), {"query-3"}),
        (Filters(window="1h", text="100%"), {"query-3"}),
        (Filters(window="1h", text="'; DROP TABLE query_event; --"), set()),
        (Filters(window="1h", engine="", user="  "), {"query-1", "query-2", "query-3"}),
    ],
)
def test_filters_are_exact_for_names_and_literal_for_text(
    three_queries: Shelf, filters: Filters, found: set[str]
) -> None:
    seen = list_queries(three_queries, filters, clock)
    assert {row.query_id for row in seen.rows} == found
    assert seen.total == len(found)


def test_history_is_newest_first_and_paged(store: Shelf) -> None:
    store.add("query_event", *(query_event(**ago(n), query_id=f"q{n:02d}") for n in range(1, 26)))
    first = list_queries(store, HOUR, clock, limit=10)
    last = list_queries(store, HOUR, clock, limit=10, offset=20)
    assert [row.query_id for row in first.rows] == [f"q{n:02d}" for n in range(1, 11)]
    assert [row.query_id for row in last.rows] == [f"q{n:02d}" for n in range(21, 26)]
    assert first.total == last.total == 25


def test_long_texts_are_cut_in_the_list_and_whole_in_the_detail(store: Shelf) -> None:
    text = "SELECT " + "x, " * 5_000 + "y FROM t"
    store.add("query_event", query_event(**ago(1), query_id="long", sql_text=text))
    row = list_queries(store, HOUR, clock).rows[0]
    assert row.sql_text is not None
    assert len(row.sql_text) == 300
    assert show_query(store, "duckdb", "long").event.sql_text == text


def test_what_the_engine_did_not_say_stays_unknown(store: Shelf) -> None:
    event = query_event(**ago(1), query_id="q", bytes_scanned=None, user_name=None, tags=())
    store.add("query_event", event)
    row = list_queries(store, HOUR, clock).rows[0]
    assert (row.bytes_scanned, row.user_name) == (None, None)
    assert show_query(store, "duckdb", "q").event == event


def test_detail_has_template_and_columns_by_role(store: Shelf) -> None:
    store.add("query_event", query_event(**ago(1), query_id="q", template_id=TemplateId("t1")))
    store.add_rows(
        "query_template",
        {
            "template_id": "t1",
            "dialect": "duckdb",
            "template": "SELECT a FROM t WHERE b = ?",
            "statement_kind": "select",
            "parse_error": None,
            "seen_at": NOW,
        },
    )
    store.add_rows(
        "column_usage",
        *(
            {"template_id": "t1", "table_name": "lake.demo.t", "column_name": c, "role": r}
            for c, r in (("a", "project"), ("b", "filter_eq"), ("a", "group"))
        ),
    )
    seen = show_query(store, "duckdb", "q")
    assert seen.template == "SELECT a FROM t WHERE b = ?"
    assert [(c.column_name, c.roles) for c in seen.columns] == [
        ("a", ("group", "project")),
        ("b", ("filter_eq",)),
    ]


def test_detail_is_of_the_schema_the_query_ran_under(store: Shelf) -> None:
    event = {**ago(1), "template_id": TemplateId("t1"), "default_catalog": "lake"}
    for schema in ("a", "b"):
        store.add("query_event", query_event(**event, query_id=schema, default_namespace=schema))
        under = {"template_id": "t1", "default_catalog": "lake", "default_namespace": schema}
        store.add_rows("template_table", under | {"table_name": f"lake.{schema}.t"})
        store.add_rows(
            "column_usage",
            under | {"table_name": f"lake.{schema}.t", "column_name": schema, "role": "project"},
        )
    seen = show_query(store, "duckdb", "b")
    assert seen.tables == ("lake.b.t",)
    assert [one.column_name for one in seen.columns] == ["b"]


def test_detail_names_tables_without_columns_and_columns_without_tables(store: Shelf) -> None:
    store.add("query_event", query_event(**ago(1), query_id="q", template_id=TemplateId("t1")))
    store.add_rows("template_table", {"template_id": "t1", "table_name": "lake.demo.t"})
    use = {"template_id": "t1", "role": "project"}
    store.add_rows(
        "column_usage",
        use | {"table_name": "", "column_name": "open"},
        use | {"table_name": "", "column_name": "found_later"},
        use | {"table_name": "lake.demo.t", "column_name": "found_later"},
    )
    seen = show_query(store, "duckdb", "q")
    assert seen.tables == ("lake.demo.t",)
    assert [one.column_name for one in seen.columns] == ["found_later"]
    assert [one.column_name for one in seen.unresolved] == ["open"]


def test_detail_tells_what_the_engine_logged_itself(store: Shelf) -> None:
    store.add("query_event", query_event(**ago(1), query_id="q"))
    logged = {"engine_id": "duckdb", "query_id": "q", "table_name": "lake.demo.t"}
    for column, access in (("", "read"), ("a", "read"), ("a", "write")):
        more = {"column_name": column, "access": access, "accessed_at": NOW}
        store.add_rows("query_access", logged | more)
    seen = show_query(store, "duckdb", "q").accessed
    assert [(a.column_name, a.access) for a in seen] == [
        (None, ("read",)),
        ("a", ("read", "write")),
    ]


def test_same_query_id_on_two_engines_is_two_queries(store: Shelf) -> None:
    store.add(
        "query_event",
        query_event(**ago(1), query_id="q", user_name="ana"),
        query_event(**ago(1), query_id="q", user_name="bo", engine_id=EngineId("trino")),
    )
    assert show_query(store, "trino", "q").event.user_name == "bo"
    with pytest.raises(NotFoundError, match="spark"):
        show_query(store, "spark", "q")


def test_running_is_what_has_not_ended_within_a_day(store: Shelf) -> None:
    store.add(
        "query_event",
        query_event(**ago(2), query_id="running", status=QueryStatus.RUNNING),
        query_event(**ago(9), query_id="queued", status=QueryStatus.QUEUED),
        query_event(**ago(3), query_id="over"),
        query_event(**ago(25 * 60), query_id="lost", status=QueryStatus.RUNNING),
    )
    assert [row.query_id for row in running_now(store, HOUR, clock)] == ["queued", "running"]
    assert running_now(store, Filters(engine="trino"), clock) == ()


@pytest.mark.slow
@pytest.mark.parametrize(("window", "minutes"), [("1h", 1), ("30d", 1), ("30d", 2_000)])
def test_pages_found_by_their_place_hold_every_query_once(
    store: Shelf, window: str, minutes: int
) -> None:
    events = [
        query_event(
            **ago(n // 4 * minutes), query_id=f"q{n % 3}-{n:02d}", engine_id=EngineId(engine)
        )
        for n in range(4, 60)
        for engine in ("trino", "spark")
    ]
    store.add("query_event", *events)
    filters = Filters(window=window)
    whole = list_queries(store, filters, clock, limit=1_000)
    wanted = sorted(events, key=lambda one: (one.engine_id, one.query_id))
    wanted.sort(key=lambda one: one.submitted_at, reverse=True)
    rows = [(row.engine_id, row.query_id) for row in whole.rows]
    assert rows == [(one.engine_id, one.query_id) for one in wanted]
    assert whole.total == len(events)
    seen: list[tuple[str, str]] = []
    place = None
    while True:
        page = list_queries(store, filters, clock, limit=7, behind=place)
        if not page.rows:
            break
        seen += [(row.engine_id, row.query_id) for row in page.rows]
        place = page.end
    assert seen == rows
    skipped = list_queries(store, filters, clock, limit=7, offset=50).rows
    assert [(row.engine_id, row.query_id) for row in skipped] == rows[50:57]


def test_a_template_filters_its_queries(store: Shelf) -> None:
    store.add(
        "query_event",
        query_event(**ago(1), query_id="a", template_id=TemplateId("t1")),
        query_event(**ago(1), query_id="b", template_id=TemplateId("t2")),
    )
    found = list_queries(store, Filters(window="1h", template="t1"), clock)
    assert [row.query_id for row in found.rows] == ["a"]


def test_phases_add_up_to_the_whole_time_and_leave_out_what_is_not_known(store: Shelf) -> None:
    store.add(
        "query_event",
        query_event(
            **ago(1), query_id="q", elapsed_ms=1_000.0, queued_ms=100.0, planning_ms=None,
            execution_ms=700.0,
        ),
        query_event(**ago(1), query_id="none", queued_ms=None, execution_ms=None),
    )  # fmt: skip
    parts = show_query(store, "duckdb", "q").phases
    assert [(part.name, part.ms) for part in parts] == [
        ("queued", 100.0),
        ("execution", 700.0),
        ("other", 200.0),
    ]
    assert show_query(store, "duckdb", "none").phases == ()
