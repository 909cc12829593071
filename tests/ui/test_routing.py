"""The routing page, with a gateway and without one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config import load_config
from lakehouse_core.domain.query import EngineId
from lakehouse_core.store.rows import to_arrow
from tests.e2e.served import gateway, make_lake
from tests.factories import query_event
from tests.ui.conftest import Place, Visitor, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.ui
FALLBACK = "routingFallback: interactive"


def warned(app: AppTest, about: str) -> bool:
    """Whether a warning says it; a store that was filled a while ago has one of its own."""
    return any(about in warning.value for warning in app.warning)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Place]:
    """A filled store and a gateway whose configuration file may be changed."""
    folder = tmp_path_factory.mktemp("routing")
    place = Place.below(folder, repository)
    file = folder / "lakehelm.yaml"
    file.write_text((repository / "config" / "lakehelm.yaml").read_text())
    place.environ["LAKEHELM_CONFIG"] = str(file)
    environ = {**os.environ, **place.environ}
    config = load_config(environ=environ).config
    make_lake(config)
    with place.served(filled=True) as owner:
        event = query_event(engine_id=EngineId("duckdb"), query_id="q-7", gateway_id="gw-read-1")
        owner.upsert("query_event", to_arrow("query_event", [event]))
        with gateway(config, owner, environ):
            yield place


def test_rules_show_what_they_decided_and_groups_their_load(
    visitor: Visitor, served: Place
) -> None:
    app = visitor.at(served, "routing")
    assert not app.exception
    rules, groups = app.dataframe[0].value, app.dataframe[1].value
    assert list(rules["rule"])[0::3] == ["routers[0] header", "routingFallback"]
    assert dict(zip(rules["rule"], rules["hits"], strict=True))["routers[1] queryRegex"] == 5
    assert set(groups["engine"]) == {"duckdb", "spark", "trino"}
    assert not warned(app, "gateway")


def test_without_a_gateway_the_records_still_show(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "routing")
    assert not app.exception
    assert warned(app, "The gateway does not answer")
    assert set(app.dataframe[0].value["hits"]) == {5, 12}


def test_a_statement_is_explained_and_nothing_is_run(visitor: Visitor, served: Place) -> None:
    app = visitor.at(served, "routing")
    app.text_area(key="routing_sql").input("SELECT count(*) FROM lake.shop.orders")
    app.button(key="routing_explain").click().run()
    assert not app.exception
    said = words(app).replace("\\", "")
    assert "latencyOptimized" in said
    assert "1 file, " in said
    app.text_area(key="routing_sql").input("DROP TABLE lake.shop.orders")
    app.button(key="routing_explain").click().run()
    assert warned(app, "It would not run")


def test_wrong_rules_are_told_with_line_and_key_and_not_taken(
    visitor: Visitor, served: Place
) -> None:
    file = Path(served.environ["LAKEHELM_CONFIG"])
    text = file.read_text()
    app = visitor.at(served, "routing")
    try:
        for fallback, said in (("nowhere", "routing.routingFallback"), ("batch", "In force")):
            file.write_text(text.replace(FALLBACK, f"routingFallback: {fallback}"))
            app.button(key="routing_reload").click().run()
            assert said in words(app) + "".join(told.value for told in app.success)
            assert not app.exception
        assert "group batch" in set(app.dataframe[0].value["says"])
    finally:
        file.write_text(text)
        app.button(key="routing_reload").click().run()


def test_a_trace_is_found_by_id_and_by_the_query_it_belongs_to(
    visitor: Visitor, served: Place
) -> None:
    app = visitor.at(served, "routing", trace="gw-refused")
    assert "gw-refused" in words(app).replace("\\", "")
    assert "group batch" in set(app.dataframe[-1].value["result"])
    app.text_input(key="trace").set_value("nobody").run()
    assert "is recorded" in app.info[0].value
    app = visitor.at(served, "query_history", query="duckdb:q-7")
    assert "How was it routed?" in words(app)
    steps = next(grid.value for grid in app.dataframe if "stage" in grid.value)
    assert "latencyOptimized" in steps["detail"].iloc[-1]
