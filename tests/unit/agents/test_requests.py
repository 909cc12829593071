"""A run that was asked for is started once, answered by the run that served it, or refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agents.requests import Requests
from lakehouse_core.domain.agent import AgentRequest
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, agent_run

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore

LATER = NOW + timedelta(seconds=1)


def ask(store: OwnerStore, agent: str, request_id: str = "r1") -> None:
    wish = AgentRequest(request_id=request_id, agent=agent, asked_at=NOW, state="waiting")
    store.upsert("agent_request", to_arrow("agent_request", [wish]))


def answers(store: OwnerStore) -> dict[str, dict[str, Any]]:
    rows = store.read("FROM agent_request").to_pylist()
    return {row["request_id"]: row for row in rows}


def test_a_request_starts_its_job_once_and_is_answered_by_the_run(store: OwnerStore) -> None:
    ask(store, "probe")
    started: list[str] = []
    requests = Requests(store, lambda: LATER, ["probe"])
    assert requests.take_up((), started.append) == 1
    assert requests.take_up((), started.append) == 0
    assert started == ["probe"]
    assert answers(store)["r1"]["state"] == "running"
    run = agent_run(agent="probe", started_at=LATER, outcome="failed", error="down")
    requests.when_ended(run)
    row = answers(store)["r1"]
    assert (row["state"], row["answer"], row["run_id"]) == ("done", "failed: down", run.run_id)


def test_a_request_waits_for_the_end_of_a_run_that_began_before_it(store: OwnerStore) -> None:
    ask(store, "probe")
    started: list[str] = []
    requests = Requests(store, lambda: LATER, ["probe"])
    assert requests.take_up({"probe"}, started.append) == 0
    assert answers(store)["r1"]["state"] == "waiting"
    earlier = agent_run(agent="probe", started_at=NOW - timedelta(seconds=9))
    requests.take_up((), started.append)
    requests.when_ended(earlier)
    assert answers(store)["r1"]["state"] == "running"
    requests.when_ended(replace(earlier, started_at=LATER))
    assert answers(store)["r1"]["state"] == "done"


def test_two_requests_for_one_job_are_served_by_one_run(store: OwnerStore) -> None:
    ask(store, "probe", "r1")
    ask(store, "probe", "r2")
    started: list[str] = []
    requests = Requests(store, lambda: LATER, ["probe"])
    assert requests.take_up((), started.append) == 2
    assert started == ["probe"]
    requests.when_ended(agent_run(agent="probe", started_at=LATER))
    assert {row["state"] for row in answers(store).values()} == {"done"}


def test_a_job_that_is_not_scheduled_is_refused_with_its_name(store: OwnerStore) -> None:
    ask(store, "collect:gone")
    started: list[str] = []
    Requests(store, lambda: LATER, ["probe"]).take_up((), started.append)
    row = answers(store)["r1"]
    assert started == []
    assert (row["state"], "collect:gone" in row["answer"]) == ("refused", True)


def test_a_request_that_a_killed_process_had_taken_up_is_taken_up_again(store: OwnerStore) -> None:
    ask(store, "probe")
    Requests(store, lambda: LATER, ["probe"]).take_up((), lambda _: None)
    started: list[str] = []
    Requests(store, lambda: LATER, ["probe"]).take_up((), started.append)
    assert started == ["probe"]
