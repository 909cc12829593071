from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.store.rows import to_arrow
from tests.factories import agent_state
from tests.ui.conftest import PAGES, TITLES, Place, Visitor, words

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ui


@pytest.mark.parametrize("page", PAGES)
def test_page_of_a_filled_store_opens_without_error(
    visitor: Visitor, filled_place: Place, page: str
) -> None:
    app = visitor.at(filled_place, page)
    assert not app.exception
    assert not app.error
    assert app.title[0].value == TITLES[page]
    assert len(app.dataframe) or len(app.metric)


@pytest.mark.parametrize("page", PAGES)
def test_page_of_an_empty_store_teaches_what_to_do(
    visitor: Visitor, empty_place: Place, page: str
) -> None:
    app = visitor.at(empty_place, page)
    assert not app.exception
    assert not app.error
    said = words(app)
    assert "lakehelm" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("page", PAGES)
def test_page_without_a_store_says_which_command_to_run(
    visitor: Visitor, tmp_path: Path, repository: Path, page: str
) -> None:
    place = Place.below(tmp_path, repository)
    with place.served(filled=False):
        pass
    app = visitor.at(place, page)
    assert not app.exception
    assert "lakehelm up" in [code.value for code in app.code]
    if page != "settings":  # the configuration can be read without the store
        assert "does not answer" in app.error[0].value


def test_page_before_the_first_start_has_no_traceback(
    visitor: Visitor, tmp_path: Path, repository: Path
) -> None:
    app = visitor.at(Place.below(tmp_path, repository))
    assert not app.exception
    assert "token" in words(app) or "secret" in words(app)


def test_page_comes_back_when_the_store_does(
    visitor: Visitor, tmp_path: Path, repository: Path
) -> None:
    place = Place.below(tmp_path, repository)
    with place.served(filled=False):
        pass
    app = visitor.at(place, "tables")
    assert app.error
    with place.served(filled=True):
        app.run()
        assert not app.error
        assert app.metric


def test_broken_configuration_is_told_with_its_place(
    visitor: Visitor, tmp_path: Path, repository: Path
) -> None:
    file = tmp_path / "lakehelm.yaml"
    text = (repository / "config" / "lakehelm.yaml").read_text()
    file.write_text(text.replace("port: 9494", "prot: 9494"))
    app = visitor.at(Place({"LAKEHELM_CONFIG": str(file), "LAKEHELM_HOME": str(tmp_path)}))
    assert not app.exception
    assert "configuration" in app.error[0].value
    assert "store.prot" in words(app)


def test_every_figure_says_how_fresh_it_is(visitor: Visitor, filled_place: Place) -> None:
    for page in PAGES[:-1]:
        app = visitor.at(filled_place, page)
        fresh = [c for c in app.caption if "collected" in c.value and "As of" in c.value]
        assert len(fresh) >= 2, page


def test_stale_figures_are_told(visitor: Visitor, empty_place: Place) -> None:
    app = visitor.at(empty_place, "query_history")
    assert any("has not succeeded yet" in warning.value for warning in app.warning)


def test_demo_profile_is_marked(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place)
    assert any("Demo profile" in info.value for info in app.sidebar.info)


def test_other_pages_are_one_click_away_and_keep_the_filters(
    visitor: Visitor, filled_place: Place
) -> None:
    app = visitor.at(filled_place, "overview", window="7d", engine="trino")
    assert app.selectbox(key="window").value == "7d"
    app.switch_page("pages/engines.py").run()
    assert app.selectbox(key="window").value == "7d"
    assert app.selectbox(key="engine").value == "trino"
    assert "last 7 days" in words(app)
    headings = [m.value for m in app.markdown if m.value.startswith("####")]
    assert len(headings) == 1
    assert "trino" in headings[0]


def test_window_filter_changes_the_figures(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "query_history")
    before = app.metric[0].value
    app.selectbox(key="window").set_value("7d").run()
    assert app.metric[0].label == "Queries, last 7 days"
    assert app.metric[0].value != before


def test_unknown_window_is_refused_in_words(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, window="banana")
    assert not app.exception
    assert "filter" in app.error[0].value
    assert "lastweek" in words(app)


def test_query_filters_narrow_the_list(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "query_history", window="7d")
    app.selectbox(key="status").set_value("failed").run()
    statuses = set(app.dataframe[1].value["status"])
    assert statuses == {"✗ failed"}
    app.text_input(key="text").set_value("no such text anywhere").run()
    assert any("No query matches" in m.value for m in app.markdown)


def test_chosen_query_is_shown_in_full(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "query_history", window="7d")
    rows = app.dataframe[1].value
    index = next(i for i, sql in enumerate(rows["sql"]) if "lineitem" in sql)
    app.session_state["history_grid"] = {"selection": {"rows": [index], "columns": [], "cells": []}}
    app.run()
    assert any(str(h.value).startswith("Query ") for h in app.subheader)
    codes = [code.value for code in app.code]
    assert any("l_shipdate <= DATE" in code for code in codes)
    assert any("l_shipdate <= ?" in code for code in codes)
    used = app.dataframe[-1].value
    assert "lake.tpch.lineitem" in set(used["table"])


def test_query_in_the_address_is_shown_and_a_wrong_one_is_told(
    visitor: Visitor, filled_place: Place
) -> None:
    app = visitor.at(filled_place, "query_history")
    first = app.dataframe[1].value.iloc[0]
    app = visitor.at(filled_place, "query_history", query=f"{first['engine']}:nonsense")
    assert not app.exception
    assert any("is not in the store" in info.value for info in app.info)


def test_chosen_table_shows_contributors_and_charts(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "tables")
    ids = list(app.dataframe[0].value["table"])
    app.session_state["tables_grid"] = {
        "selection": {"rows": [ids.index("lake.demo.events")], "columns": [], "cells": []}
    }
    app.run()
    assert "lake.demo.events" in [h.value.replace("\\", "") for h in app.subheader]
    contributors = app.dataframe[1].value
    assert list(contributors["state"]) == ["✗ critical", "✗ critical"]
    assert list(contributors["warning"]) == [0.2, 100.0]


def test_tables_are_narrowed_by_name_and_state(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "tables")
    everything = set(app.dataframe[0].value["table"])
    app.text_input(key="tables_text").set_value("EVENT").run()
    narrowed = set(app.dataframe[0].value["table"])
    assert narrowed == {name for name in everything if "event" in name} != everything
    app.text_input(key="tables_text").set_value("no such table").run()
    assert "No table passes these filters." in [info.value for info in app.info]


def test_table_that_cannot_be_read_is_unknown_with_its_reason(
    visitor: Visitor, filled_place: Place
) -> None:
    app = visitor.at(filled_place, "tables", table="lake.demo.broken")
    assert not app.exception
    said = words(app)
    assert "Manifest list" in said
    assert "unknown" in said


def test_settings_show_no_token(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "settings")
    shown = words(app) + "".join(frame.value.to_csv() for frame in app.dataframe)
    assert "-of-a-test" not in shown
    assert "LAKEHELM__STORE__PORT" in shown


def test_engine_nobody_knows_is_refused_with_the_known_ones(
    visitor: Visitor, filled_place: Place
) -> None:
    app = visitor.at(filled_place, "overview", engine="trinoo")
    assert not app.exception
    assert "filter" in app.error[0].value
    assert "duckdb, spark, trino" in words(app)


def test_older_queries_are_on_the_next_page_and_no_query_is_on_both(
    visitor: Visitor, filled_place: Place
) -> None:
    app = visitor.at(filled_place, "query_history", window="7d")
    first = app.dataframe[1].value
    app.button(key="history_older").click().run()
    second = app.dataframe[1].value
    assert first["submitted"].min() >= second["submitted"].max()
    assert "Queries 201 to 400" in words(app)
    app.button(key="history_newer").click().run()
    assert list(app.dataframe[1].value["sql"]) == list(first["sql"])
    app.button(key="history_older").click().run()
    app.selectbox(key="status").set_value("finished").run()
    assert "Queries 1 to 200" in words(app)


def test_chosen_query_tells_where_its_time_went_and_who_reported_it(
    visitor: Visitor, filled_place: Place
) -> None:
    app = visitor.at(filled_place, "query_history", window="7d", text="lineitem")
    index = next(i for i, s in enumerate(app.dataframe[1].value["status"]) if "finished" in s)
    app.session_state["history_grid"] = {"selection": {"rows": [index], "columns": [], "cells": []}}
    app.run()
    said = words(app)
    assert "Where did its time go?" in said
    assert "the engine's history" in said.replace("\\", "")


def test_run_now_notes_the_wish_and_says_so(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "agents")
    app.selectbox(key="agents_job").set_value("collect:spark").run()
    app.button(key="agents_run").click().run()
    assert not app.exception
    assert any("Asked for collect" in toast.value for toast in app.toast)
    assert "about to start" in words(app)


def test_letters_and_gaps_are_told_apart(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "agents")
    groups = next(d.value for d in app.dataframe if "letters" in d.value and "first" in d.value)
    assert sum(groups["letters"]) == 5
    lost = app.dataframe[-1].value
    assert "history was dropped" in lost["reason"].iloc[0]


def test_workloads_are_ordered_and_lead_to_their_detail(
    visitor: Visitor, filled_place: Place
) -> None:
    app = visitor.at(filled_place, "workloads", window="7d")
    rows = app.dataframe[0].value
    assert list(rows["runs"]) == sorted(rows["runs"], reverse=True)
    app.selectbox(key="order").set_value("bytes").run()
    rows = app.dataframe[0].value
    assert list(rows["scanned"]) == sorted(rows["scanned"], reverse=True)
    app.session_state["workloads_grid"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    app.run()
    assert not app.exception
    per_engine = app.dataframe[1].value
    assert list(per_engine["engine"])[-1] == "all"
    assert per_engine["runs"].iloc[:-1].sum() == per_engine["runs"].iloc[-1]


def test_template_that_did_not_run_is_told(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "workloads", template="nonsense")
    assert not app.exception
    assert any("did not run" in info.value for info in app.info)


def test_usage_of_a_table_has_a_row_per_column_and_engine(
    visitor: Visitor, filled_place: Place
) -> None:
    app = visitor.at(filled_place, "usage", window="7d", table="lake.demo.events")
    app.session_state["usage_view"] = "Numbers"
    app.run()
    assert not app.exception
    rows = app.dataframe[0].value
    assert {"event_day", "event_type"} == set(rows["column"])
    assert {"duckdb", "spark", "trino"} == set(rows["engine"])
    assert rows.loc[rows["column"] == "event_day", "filter_eq"].min() > 0


def test_open_circuit_is_told_with_reason_since_when_and_next_try(
    visitor: Visitor, tmp_path: Path, repository: Path
) -> None:
    place = Place.below(tmp_path, repository)
    with place.served(filled=True) as owner:
        broken = agent_state(
            agent="collect:trino",
            circuit="open",
            failures=6,
            since=datetime(2026, 11, 16, 9, 30, tzinfo=UTC),
            reason="Trino at 127.0.0.1:8085 does not answer",
            retry_at=datetime(2026, 11, 16, 9, 47, tzinfo=UTC),
        )
        owner.upsert("agent_state", to_arrow("agent_state", [broken]))
        app = visitor.at(place, "agents")
    said = words(app).replace("\\", "")
    assert "silent 6 times in a row, its circuit is open since 2026-11-16 09:30:00 UTC" in said
    assert "does not answer. Next try 2026-11-16 09:47:00 UTC" in said
    assert "✗ open" in set(app.dataframe[0].value["circuit"])
