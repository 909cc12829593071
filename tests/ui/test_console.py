"""The console on a gateway with DuckDB: explained, run, cut, cancelled, saved; errors placed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config import load_config
from tests.e2e.served import gateway, make_lake
from tests.ui.conftest import Place, Visitor, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.ui
SQL = "console_sql_Query 1"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Place]:
    place = Place.below(tmp_path_factory.mktemp("console"), repository)
    environ = {**os.environ, **place.environ}
    config = load_config(environ=environ).config
    make_lake(config)
    with place.served(filled=True) as owner, gateway(config, owner, environ):
        yield place


def asked(app: AppTest, sql: str, button: str = "console_run") -> AppTest:
    app.text_area(key=SQL).input(sql)
    app.button(key=button).click().run()
    assert not app.exception
    for _ in range(60):
        if not any(one.key and one.key.startswith("console_cancel") for one in app.button):
            break
        app.session_state["console_run_Query 1"].wait(1)
        app.run()
    return app


def test_a_statement_is_explained_run_and_shown_with_types(visitor: Visitor, served: Place) -> None:
    app = visitor.at(served, "console")
    asked(app, "SELECT kind FROM lake.shop.kinds", "console_explain")
    said = words(app).replace("\\", "")
    assert "1 file, " in said
    assert "Why: routingFallback: group interactive" in said
    assert "console_run_Query 1" not in app.session_state  # nothing was run
    asked(app, "SELECT kind, count(*) AS orders FROM shop.orders GROUP BY kind ORDER BY kind")
    grid = next(one.value for one in app.dataframe if list(one.value) == ["c0", "c1"])
    assert list(grid["c0"]) == ["<b>phone</b>", "shop", "web"]
    assert sum(grid["c1"]) == 5_000
    assert "finished" in words(app)


def test_an_explanation_is_not_shown_for_another_question(visitor: Visitor, served: Place) -> None:
    app = visitor.at(served, "console")
    asked(app, "SELECT kind FROM lake.shop.kinds", "console_explain")
    assert "Why: " in words(app)
    app.text_area(key=SQL).input("SELECT order_id FROM lake.shop.orders").run()
    assert "Why: " not in words(app)
    assert "explained before it was changed" in words(app)
    app.text_area(key=SQL).input("SELECT kind FROM lake.shop.kinds").run()
    assert "Why: " in words(app)
    app.selectbox(key="console_on").select_index(1).run()
    assert "Why: " not in words(app)


def test_rows_beyond_the_limit_are_not_fetched(visitor: Visitor, served: Place) -> None:
    app = visitor.at(served, "console")
    asked(app, "SELECT order_id FROM lake.shop.orders")
    grid = next(one.value for one in app.dataframe if list(one.value) == ["c0"])
    assert len(grid) == 1_000
    assert "only the first 1,000 rows" in words(app).replace("\\", "")
    assert app.session_state["console_run_Query 1"].sql.endswith("LIMIT 1001")


def test_an_error_is_told_with_its_place(visitor: Visitor, served: Place) -> None:
    app = visitor.at(served, "console")
    asked(app, "SELECT kind\nFROM lake.shop.orders\nGROUP BBY kind")
    assert "SYNTAX" in app.error[0].value
    assert "line 3: GROUP BBY kind" in [code.value.splitlines()[0] for code in app.code]


def test_writing_is_refused_by_the_gateway(visitor: Visitor, served: Place) -> None:
    app = visitor.at(served, "console")
    asked(app, "DROP TABLE lake.shop.kinds")
    assert app.error
    asked(app, "SELECT count(*) FROM lake.shop.kinds")
    assert not app.error


def test_a_long_statement_is_cancelled(visitor: Visitor, served: Place) -> None:
    app = visitor.at(served, "console")
    app.text_area(key=SQL).input(
        "SELECT sum(a.price * b.price * c.price) FROM lake.shop.orders a "
        "CROSS JOIN lake.shop.orders b CROSS JOIN lake.shop.orders c"
    )
    app.button(key="console_run").click().run()
    app.button(key="console_cancel_Query 1").click().run()
    run = app.session_state["console_run_Query 1"]
    assert run.wait(30).state == "cancelled"
    app.run()
    assert any("no rows were kept" in info.value for info in app.info)
    assert not app.error


def test_a_query_is_saved_and_its_link_opens_it(visitor: Visitor, served: Place) -> None:
    app = visitor.at(served, "console")
    app.text_area(key=SQL).input("SELECT 42").run()
    app.segmented_control(key="console_part").set_value("Saved queries").run()
    app.text_input(key="console_name").input("Answer *all*").run()
    app.button(key="console_save").click().run()
    assert not app.exception
    link = app.session_state["console_opened"]
    assert app.segmented_control(key="console_tab").value == "Query 1"  # not opened once more
    again = visitor.at(served, "console", query=link)
    assert again.text_area[0].value == "SELECT 42"
    wrong = visitor.at(served, "console", query="nobody")
    assert any("link is old" in info.value for info in wrong.info)


def test_a_new_tab_has_its_own_text(visitor: Visitor, served: Place) -> None:
    app = visitor.at(served, "console")
    app.text_area(key=SQL).input("SELECT 1").run()
    app.button(key="console_new").click().run()
    assert app.text_area[0].value == ""
    app.segmented_control(key="console_tab").set_value("Query 1").run()
    assert app.text_area[0].value == "SELECT 1"
    app.button(key="console_close").click().run()
    assert app.segmented_control(key="console_tab").value == "Query 2"
