"""The engine comparison: what a visitor reads."""

from __future__ import annotations

import pytest

from tests.ui.conftest import Place, Visitor, words

pytestmark = pytest.mark.ui


def test_templates_are_compared_engine_by_engine(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "comparison", window="7d")
    assert not app.exception
    contests, engines = (grid.value for grid in app.dataframe[:2])
    assert set(contests["winner"].dropna()) <= {"duckdb", "spark", "trino"}
    assert contests["winner"].notna().any()
    assert set(engines["engine"]) == {"duckdb", "spark", "trino"}
    assert set(engines["basis"].dropna()) == {"modelled"}
    assert "lakehelm route compare" in words(app)


def test_the_regret_stands_beside_what_was_spent(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "comparison", window="7d")
    money, time = (grid.value for grid in app.dataframe[2:4])
    assert list(money["against"])[:2] == ["best single engine", "oracle"]
    assert (time["regret"][1:2] >= 0).all()
    assert "runs are without evidence" in words(app)


def test_another_way_to_choose_is_replayed_before_and_after(
    visitor: Visitor, filled_place: Place
) -> None:
    app = visitor.at(filled_place, "comparison", window="7d")
    assert "nothing is run" in words(app)
    app.selectbox(key="replay_group").select("interactive").run()
    app.selectbox(key="replay_way").select("only duckdb").run()
    app.button(key="replay_go").click().run()
    assert not app.exception
    figures = app.dataframe[4].value
    assert {"before", "after", "low", "high", "change"} <= set(figures.columns)
    assert "reads would go elsewhere" in words(app)
