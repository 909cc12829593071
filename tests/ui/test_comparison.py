"""The engine comparison: what a visitor reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.clock import utc_now
from tests.ui.conftest import Place, Visitor, words
from tests.unit.views.past import ran

if TYPE_CHECKING:
    from pathlib import Path

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


def test_estimates_stand_beside_what_was_read(
    visitor: Visitor, tmp_path: Path, repository: Path
) -> None:
    place = Place.below(tmp_path, repository)
    with place.served(filled=False) as owner:
        told = {"until": utc_now(), "estimated_bytes": 4_096}
        ran(owner, "t1", "trino", [1.0] * 4, bytes_scanned=1_024, **told)
        ran(owner, "t1", "duckdb", [1.0] * 2, bytes_scanned=None, **told)
        app = visitor.at(place, "comparison", window="24h")
        assert not app.exception
        grid = next(one.value for one in app.dataframe if "too_low" in one.value.columns)
    duckdb, trino = grid.to_dict("records")
    assert (trino["estimated"], trino["read"], trino["p50"]) == ("16.0 KiB", "4.0 KiB", 25.0)
    assert (trino["compared"], trino["too_low"]) == (4, 0)
    assert (duckdb["reads"], duckdb["compared"]) == (2, 0)


def test_without_estimates_the_page_says_what_is_missing(
    visitor: Visitor, filled_place: Place
) -> None:
    app = visitor.at(filled_place, "comparison", window="7d")
    assert "came through the gateway with an estimate" in words(app)
