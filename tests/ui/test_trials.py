"""Routing recommendations on the page: what was measured, and approving one for real."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agents import trials
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.trial import TrialState
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.trials import list_trials
from tests.ui.conftest import Place, Visitor, words
from tests.ui.scenario import rows_of
from tests.unit.views.past import cost, ran

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from lakehouse_core.store.port import TelemetryStore

pytestmark = pytest.mark.ui


def cheaper_on_duckdb(store: TelemetryStore, template: str, dear: str, now: datetime) -> None:
    """Runs of a template on Trino at this price, and for 0.1 on DuckDB."""
    for engine, seconds in (("trino", 2.0), ("duckdb", 1.0)):
        ran(store, template, engine, [seconds, seconds * 1.1] * 8, until=now, group="g")
    cost(store, {(template, "trino"): dear, (template, "duckdb"): "0.1"}, until=now)


def test_a_move_is_approved_on_the_page_and_shown_as_a_trial(
    visitor: Visitor, tmp_path: Path, repository: Path
) -> None:
    place = Place.below(tmp_path, repository)
    with place.served(filled=False) as owner:
        now = utc_now()
        cheaper_on_duckdb(owner, "moving", "0.4", now)
        trials.propose(owner, utc_now, {"g": {"trino", "duckdb"}})
        text = "SELECT count(*) FROM lake.shop.orders WHERE day = ?"
        named = {"template_id": "moving", "dialect": "trino", "template": text, "seen_at": now}
        owner.upsert(
            "query_template", rows_of("query_template", [named | {"statement_kind": "select"}])
        )
        (wanted,) = list_trials(owner, "all")
        app = visitor.at(place, "recommendations", action=wanted.trial_id)
        assert not app.exception
        assert not any("is not known" in one.value for one in app.info)
        assert "Which templates should run elsewhere?" in words(app)
        assert text in words(app)
        assert text in {row for grid in app.dataframe for row in grid.value.get("template", ())}
        app.text_input(key="trial_actor").set_value("ana").run()
        app.button(key="trial_approve").click().run()
        assert not app.exception
        assert "10 % of its statements go to duckdb" in app.success[0].value
        (trial,) = list_trials(owner, "all")
        assert (trial.state, trial.share) == (TrialState.TRIAL, 10)


def test_what_runs_comes_before_what_waits_and_what_is_over(
    visitor: Visitor, tmp_path: Path, repository: Path
) -> None:
    place = Place.below(tmp_path, repository)
    with place.served(filled=False) as owner:
        for template, dear in (("running", "0.3"), ("waiting", "0.4"), ("over", "0.5")):
            cheaper_on_duckdb(owner, template, dear, utc_now())
        trials.propose(owner, utc_now, {"g": {"trino", "duckdb"}})
        states = {"running": TrialState.TRIAL, "over": TrialState.EXPIRED}
        for one in list_trials(owner):
            changed = replace(
                one, state=states.get(one.template_id, one.state), revision=one.revision + 1
            )
            owner.upsert("route_trial", to_arrow("route_trial", [changed]))
        app = visitor.at(place, "recommendations")
        assert not app.exception
        grid = next(one.value for one in app.dataframe if "p95_there" in one.value.columns)
    assert list(grid["template"]) == ["running", "waiting", "over"]
