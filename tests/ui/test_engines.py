"""Taking an engine out of service on its page, for real."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.ui.conftest import Place, Visitor, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.ui


@pytest.fixture
def place(tmp_path: Path, repository: Path) -> Iterator[Place]:
    """A store of its own: states stay."""
    found = Place.below(tmp_path, repository)
    with found.served(filled=True):
        yield found


def test_an_engine_is_put_into_maintenance_with_name_and_reason(
    visitor: Visitor, place: Place
) -> None:
    app = visitor.at(place, "engines", engine="trino")
    app.button(key="switch_open_trino").click().run()
    assert not app.exception
    app.segmented_control(key="switch_state").set_value("maintenance").run()
    assert app.button(key="switch_set").disabled  # nobody signed yet
    app.text_input(key="switch_actor").input("pia").run()
    app.text_input(key="switch_reason").input("upgrade to 481").run()
    app.button(key="switch_set").click().run(timeout=60)
    assert not app.exception
    assert any("trino is maintenance now" in told.value for told in app.success), words(app)
    said = words(app).replace("\\", "")
    assert "upgrade to 481" in said
    assert "pia, " in said
