"""A commit that stands is compared with what was before it, whatever became of its job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.maintenance import Kind, State
from lakehouse_core.maintenance.verify import ACTION, OPERATION, STAGE
from lakehouse_core.store.rows import to_arrow
from tests.factories import decision_request
from tests.unit.maintenance.yard import Fate, Killed

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import Action
    from tests.unit.maintenance.yard import Yard

pytestmark = pytest.mark.slow
PARTS = [[{"region": "a"}], [{"region": "b"}], [{"region": "c"}]]


def alerts(yard: Yard, table_id: str) -> list[dict[str, Any]]:
    rows = yard.store.read("SELECT * FROM alert WHERE subject = $table", table=table_id)
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def commits_and_then(yard: Yard, *rows: int, **told: Any) -> None:
    """The job commits, with these rows where some are given, and says something else of it."""
    real = yard._work

    def work(one: dict[str, Any]) -> dict[str, Any]:
        said = real(one)
        marks = {OPERATION: one["operation_id"], ACTION: one["action_id"]}
        for number in rows:
            yard.append(one["plan"]["table_id"], number, **marks)
        return said | {"checks": [], **told}

    yard._work = work  # type: ignore[method-assign]


def commits_part(yard: Yard, number: int, **told: Any) -> None:
    """The job commits one part of an action (the first stage asks for the order), and ends."""

    def work(one: dict[str, Any]) -> dict[str, Any]:
        marks = {
            OPERATION: one["operation_id"],
            ACTION: one["action_id"],
            STAGE: str(number),
        }
        table_id = one["plan"]["table_id"]
        yard.change(table_id, lambda t: t.overwrite(t.scan().to_arrow(), snapshot_properties=marks))
        return {"action_id": one["action_id"], "checks": [], **told}

    yard._work = work  # type: ignore[method-assign]


def sort_in_parts(yard: Yard, table_id: str) -> Action:
    parameters = {"columns": ["id"], "batches": PARTS}
    return yard.approve(table_id, Kind.SORT, parameters=parameters)


def cancels(yard: Yard, action: Action) -> None:
    """Somebody wants it to end while it runs."""
    wish = decision_request(
        action_id=action.action_id, verb="cancel", state="done", asked_at=yard.clock()
    )
    yard.store.upsert("decision_request", to_arrow("decision_request", [wish]))


def names_of(action: Action) -> set[str]:
    return {check["name"] for check in action.verification}


def test_an_error_after_the_commit_has_the_rows_compared_by_another_job(yard: Yard) -> None:
    approved = yard.approve(yard.create(files=3))
    commits_and_then(yard, outcome="failed", error="read error in the content hash")
    yard.maintainer.run_once()
    done = yard.now(approved)
    assert done.state is State.VERIFIED, done.explanation
    assert "content" in names_of(done)
    assert len(yard.jobs) == 2
    assert not alerts(yard, done.table_id)


@pytest.mark.parametrize("kills_agents", [False, True])
def test_a_job_killed_after_its_commit_is_not_verified_without_its_rows(
    yard: Yard, kills_agents: bool
) -> None:
    approved = yard.approve(yard.create(files=3))
    commits_and_then(yard, 77)  # a row too many
    yard.fate = Fate(dies="after_commit", kills_agents=kills_agents)
    if kills_agents:
        with pytest.raises(Killed):
            yard.maintainer.run_once()
        yard.maintainer.close()
        yard.maintainer = yard.new_maintainer()
    yard.maintainer.run_once()
    failed = yard.now(approved)
    assert failed.state is State.FAILED, failed.explanation
    assert "Rows changed" in (failed.explanation or "")
    assert len(alerts(yard, failed.table_id)) == 1


def test_a_commit_that_cannot_be_compared_ends_with_an_alert_that_says_so(yard: Yard) -> None:
    approved = yard.approve(yard.create(files=3))
    commits_and_then(yard, outcome="failed", error="read error")
    yard.fate = Fate(proof="before")
    for _ in range(5):
        yard.maintainer.run_once()
        yard.clock.turn(hours=1)
    failed = yard.now(approved)
    assert failed.state is State.FAILED
    assert "stands and was NOT proven: in 3 attempts" in (failed.explanation or "")
    assert [len(one) for one in yard.jobs] == [1, 1, 1, 1]
    (alert,) = alerts(yard, failed.table_id)
    assert "NOT proven" in alert["body"]


def test_a_comparison_that_died_is_made_again_later(yard: Yard) -> None:
    approved = yard.approve(yard.create(files=3))
    commits_and_then(yard, outcome="failed", error="read error")
    yard.fate = Fate(proof="before")
    yard.maintainer.run_once()
    yard.maintainer.run_once()
    assert len(yard.jobs) == 2  # not at once
    assert yard.now(approved).state is State.RUNNING
    yard.fate = Fate()
    yard.clock.turn(minutes=2)
    yard.maintainer.run_once()
    assert yard.now(approved).state is State.VERIFIED


def test_parts_of_an_action_that_is_given_up_are_compared_and_told(yard: Yard) -> None:
    approved = sort_in_parts(yard, yard.create(files=3))
    commits_part(yard, 1, outcome="conflict", error="Missing data file x.parquet")
    for _ in range(4):
        yard.maintainer.run_once()
        yard.clock.turn(hours=2)
    failed = yard.now(approved)
    assert failed.state is State.FAILED
    told = failed.explanation or ""
    assert "Missing data file x.parquet" in told
    assert "1 of its 3 parts are committed and stay; their rows were compared" in told
    proofs = [plan for plan in yard.plans if plan["actions"][0]["proves"]]
    assert len(proofs) == 3  # one for each run that committed


def test_parts_of_a_killed_run_are_compared_before_the_next_goes_on(yard: Yard) -> None:
    approved = sort_in_parts(yard, yard.create(files=3))
    commits_part(yard, 1)
    yard.fate = Fate(dies="after_commit")
    yard.maintainer.run_once()
    assert [bool(plan["actions"][0]["proves"]) for plan in yard.plans] == [False, True]
    waits = yard.now(approved)
    assert waits.state is State.SCHEDULED
    assert "2 of 3 parts are left" in (waits.explanation or "")
