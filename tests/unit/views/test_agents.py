from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from collectors.letters import dead_letter as make_letter
from collectors.letters import gap_letter
from lakehouse_core.domain.agent import AgentProgress, AgentRequest, Watermark
from lakehouse_core.views.agents import list_agents
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.freshness import Job
from lakehouse_core.views.letters import dead_letters, gaps, letter_groups
from tests.factories import NOW, agent_run, agent_state, dead_letter
from tests.unit.views.conftest import clock

if TYPE_CHECKING:
    from tests.unit.views.conftest import Shelf

HOUR = Filters(window="1h")
TRINO = Job(agent="collect:trino", every=timedelta(seconds=10), feeds="queries")
AGO = timedelta(seconds=4)


def test_next_run_of_a_job_that_backs_off_is_when_it_is_tried_again(store: Shelf) -> None:
    later = NOW + timedelta(minutes=4)
    store.add("agent_run", agent_run(agent="collect:trino", outcome="failed", error="no answer"))
    store.add(
        "agent_state",
        agent_state(
            agent="collect:trino", circuit="open", failures=6, reason="no answer", retry_at=later
        ),
    )
    (view,) = list_agents(store, (TRINO,), HOUR, clock).agents
    assert (view.circuit, view.next_at) == ("open", later)
    assert view.schedule is not None
    assert view.schedule.reason == "no answer"


def test_progress_is_that_of_the_run_that_goes_on(store: Shelf) -> None:
    said = AgentProgress(agent="collect:trino", done=5, total=9, unit="rows", updated_at=NOW - AGO)
    store.add("agent_progress", said)
    ended = agent_run(agent="collect:trino", run_id="a", started_at=NOW - 3 * AGO)
    store.add("agent_run", ended)
    (view,) = list_agents(store, (TRINO,), HOUR, clock).agents
    assert (view.is_running, view.progress) == (False, None)
    going = agent_run(
        agent="collect:trino", run_id="b", started_at=NOW - 2 * AGO, ended_at=None,
        outcome="running",
    )  # fmt: skip
    store.add("agent_run", going)
    (view,) = list_agents(store, (TRINO,), HOUR, clock).agents
    assert (view.is_running, view.progress) == (True, said)
    store.add("agent_run", agent_run(agent="collect:trino", run_id="c", started_at=NOW,
                                     ended_at=None, outcome="running"))  # fmt: skip
    (view,) = list_agents(store, (TRINO,), HOUR, clock).agents
    assert view.progress is None


def test_last_request_of_a_job_is_shown_until_it_is_answered(store: Shelf) -> None:
    for number, state in enumerate(("done", "waiting")):
        asked_at = NOW - timedelta(minutes=5 - number)
        request = AgentRequest(
            request_id=f"r{number}", agent="collect:trino", asked_at=asked_at, state=state
        )
        store.add("agent_request", request)
    (view,) = list_agents(store, (TRINO,), HOUR, clock).agents
    assert view.request is not None
    assert (view.request.request_id, view.is_asked_for) == ("r1", True)


def test_letters_are_grouped_by_reason_whatever_numbers_and_names_it_holds(store: Shelf) -> None:
    reasons = ["row 7: 'a' is no time", "row 12: 'bc' is no time", "it is not JSON"]
    store.add(
        "dead_letter",
        *(
            make_letter("trino", f"payload {n}", reason, NOW - n * AGO)
            for n, reason in enumerate(reasons)
        ),
        make_letter("spark", "payload", reasons[0], NOW),
    )
    found = {(group.source, group.letters): group for group in letter_groups(store)}
    assert set(found) == {("trino", 2), ("trino", 1), ("spark", 1)}
    assert found["trino", 2].payload == "payload 0"
    assert found["trino", 2].last_at == NOW


def test_gaps_are_told_from_letters(store: Shelf) -> None:
    store.add(
        "dead_letter",
        gap_letter("trino", "node_1_5", "5 queries were dropped", NOW),
        make_letter("trino", "node_1_5", "not understood", NOW),
    )
    assert [gap.reason for gap in gaps(store)] == ["5 queries were dropped"]
    assert [group.reason for group in letter_groups(store)] == ["not understood"]
    assert {letter.is_gap for letter in dead_letters(store)} == {True, False}


def test_dead_letters_are_newest_first(store: Shelf) -> None:
    store.add(
        "dead_letter",
        dead_letter(letter_id="old", seen_at=NOW - timedelta(hours=1)),
        dead_letter(letter_id="new"),
    )
    assert [letter.letter_id for letter in dead_letters(store)] == ["new", "old"]


def test_lag_is_since_success_and_the_newest_event_has_an_age_of_its_own(store: Shelf) -> None:
    run = agent_run(agent="collect:trino", started_at=NOW - timedelta(seconds=30))
    failed = agent_run(agent="collect:trino", run_id="f", started_at=NOW - AGO, outcome="failed")
    store.add("agent_run", run, failed)
    event_at = NOW - timedelta(hours=1)
    mark = Watermark(source="trino", position="{}", event_at=event_at, updated_at=NOW)
    store.add("watermark", mark)
    (view,) = list_agents(store, (TRINO,), HOUR, clock).agents
    assert view.lag_seconds == 30
    assert view.newest_event_age_seconds == 3_600
    (never,) = list_agents(
        store, (Job(agent="x", every=AGO, feeds="queries"),), HOUR, clock
    ).agents[:1]
    assert (never.lag_seconds, never.newest_event_age_seconds) == (None, None)
