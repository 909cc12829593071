"""The cost pages: what a visitor reads, chooses and takes along."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.cli.views import reading_store
from tests.commands import command_line, reading
from tests.ui.conftest import Place, Visitor, words

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ui
RULES = "- {name: people, when: {user: [ana, bo, chen]}}"


def test_costs_add_up_and_say_what_they_rest_on(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "costs", window="7d")
    said = words(app)
    found = re.search(r"sum of rows (\S+) USD, metered (\S+) USD, difference (\S+) USD", said)
    assert found is not None
    assert found[1] == found[2]
    assert float(found[3]) == 0
    assert float(found[1]) > 0
    assert "Basis: modelled" in said
    assert "Idle share" in said
    assert "Not a digit is lost" in said


def test_page_command_line_export_and_store_have_one_total(
    visitor: Visitor,
    filled_place: Place,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    said = words(visitor.at(filled_place, "costs", window="30d"))
    found = re.search(r"sum of rows (\S+) USD, metered", said)
    assert found is not None
    shown = Decimal(found[1])
    read = reading(command_line(filled_place.environ, monkeypatch, capsys))
    window = ("--window", "30d")
    with reading_store(None) as (_, store):
        split = store.read("SELECT sum(cost) AS cost FROM cost_hour WHERE runs > 0")
    report = read("cost", "report", *window)
    focus = read("export", "focus", "--out", str(tmp_path / "focus.parquet"), *window)
    hours = read("cost", "reconcile", *window)
    assert {
        split.column("cost")[0].as_py(),
        Decimal(report["total"]["cost"]),
        sum(Decimal(row["cost"]) for row in report["rows"]),
        Decimal(focus["check"]["totals"][0]["EffectiveCost"]),
        sum(Decimal(one["metered"]) for one in hours["totals"]),
    } == {shown}


def test_savings_and_bills_are_listed(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "costs", window="7d")
    app.segmented_control(key="costs_part").set_value("Savings of maintenance").run()
    assert not app.exception
    assert re.search(r"per month saved by \d+ measured actions", words(app).replace("*", ""))
    assert "lakehelm cost import FILE" in words(visitor.at(filled_place, "exports", window="7d"))


def test_any_two_dimensions_can_be_chosen(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "costs", window="7d")
    app.selectbox(key="by").set_value("user").run()
    app.selectbox(key="then").set_value("table").run()
    assert not app.exception
    columns = app.dataframe[0].value.columns
    assert list(columns[:2]) == ["first", "second"]
    assert "ana" in set(app.dataframe[0].value["first"])


def test_a_preview_of_rules_says_what_would_move_and_changes_nothing(
    visitor: Visitor, filled_place: Place
) -> None:
    app = visitor.at(filled_place, "groups", window="7d")
    before = app.dataframe[0].value
    app.text_area(key="groups_text").set_value(RULES)
    app.button(key="groups_preview").click().run()
    assert not app.exception
    assert "would be in another group" in words(app)
    assert "people" in set(app.dataframe[1].value["after"])
    assert app.dataframe[0].value.equals(before)


def test_a_rule_that_is_wrong_is_told_with_its_place(visitor: Visitor, filled_place: Place) -> None:
    app = visitor.at(filled_place, "groups", window="7d")
    app.text_area(key="groups_text").set_value("- {name: x, when: {usr: ana}}")
    app.button(key="groups_preview").click().run()
    assert any("rule 1.when" in warning.value for warning in app.warning)


@pytest.mark.parametrize("question", ["An engine's price", "Idle shutdown", "Maintenance"])
def test_every_question_gets_an_answer_or_a_reason(
    visitor: Visitor, filled_place: Place, question: str
) -> None:
    app = visitor.at(filled_place, "whatif", window="7d", engine="trino")
    app.segmented_control(key="whatif_question").set_value(question).run()
    assert not app.exception
    said = words(app)
    assert "Change, per month" in said or "No answer" in said


def test_an_export_is_checked_before_it_is_handed_out(
    visitor: Visitor, filled_place: Place
) -> None:
    app = visitor.at(filled_place, "exports", window="7d")
    app.button(key="focus_export").click().run()
    assert not app.exception
    values = {card.label: card.value for card in app.metric}
    assert values["Broken rules"] == "0"
    assert values["Difference to the file"] == "0"


def test_budgets_of_the_configuration_are_shown_with_their_forecast(
    visitor: Visitor, filled_place: Place
) -> None:
    said = words(visitor.at(filled_place, "budgets"))
    assert "trino\\_today" in said
    assert "No forecast" in said or "Expected at the end" in said
