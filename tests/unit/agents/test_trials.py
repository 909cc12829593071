"""Routing recommendations: proposed from measurements, tried in steps, adopted or taken back."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from agents import trials
from lakehouse_core.domain.trial import RouteTrial, TrialState
from lakehouse_core.maintenance.audit import AUDIT_SQL
from lakehouse_core.maintenance.records import audit_of
from lakehouse_core.recommend.route_advice import Side
from lakehouse_core.routing.request import Step
from lakehouse_core.routing.trials import Assigned, TrialBook
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.savings import savings_ledger
from lakehouse_core.views.trials import list_trials
from tests.factories import decision_request
from tests.unit.routing.conftest import Hands
from tests.unit.views.past import cost, ran

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore

HOUR = timedelta(hours=1)
GROUPS = {"g": {"trino", "duckdb"}, "alone": {"trino"}}
THE_TRIAL = "route-1"


@pytest.fixture
def hands() -> Hands:
    return Hands()


def history(store: OwnerStore, runs: int = 20, group: str | None = "g") -> None:
    ran(store, "t1", "trino", [2.0, 2.2] * (runs // 2), group=group)
    ran(store, "t1", "duckdb", [1.0, 1.1] * (runs // 2))
    cost(store, {("t1", "trino"): "0.40", ("t1", "duckdb"): "0.10"})


def side(cost_per_run: str, seconds: float, routable: int = 20) -> Side:
    return Side(
        runs=20,
        failed=0,
        p95_seconds=seconds,
        seconds_per_run=seconds,
        cost_per_run=Decimal(cost_per_run),
        spread=0.05,
        routable=routable,
    )


def begun(store: OwnerStore, clock: Hands, share: int = 10, beside: int = 0) -> None:
    """A trial as approval leaves it; `beside` reads in 20 went to the new engine before it."""
    before = {
        "trino": side("0.40", 2.2).to_json(),
        "duckdb": side("0.10", 1.1, routable=beside).to_json(),
    }
    now = clock()
    trial = RouteTrial(
        trial_id=THE_TRIAL,
        revision=1,
        template_id="t1",
        from_engine="trino",
        to_engine="duckdb",
        state=TrialState.TRIAL if share else TrialState.PROPOSED,
        share=share,
        title="t1 from trino to duckdb",
        risk="",
        currency="USD",
        gain_usd_month=Decimal(26),
        gain_low=Decimal(20),
        gain_high=Decimal(30),
        runs=40,
        figures={"window": "7d", "before": before},
        plan_hash="h" * 64,
        proposed_at=now,
        evidence_at=now,
        updated_at=now,
        expires_at=now + timedelta(days=7),
        step_at=now if share else None,
    )
    store.upsert("route_trial", to_arrow("route_trial", [trial]))


def the_trial(store: OwnerStore) -> RouteTrial:
    (only,) = list_trials(store, "all")
    return only


def decide(store: OwnerStore, clock: Hands, verb: str = "approve", **given: Any) -> Any:
    trial = the_trial(store)
    values: dict[str, Any] = {"asked_at": clock(), "actor": "ana", "plan_hash": trial.plan_hash}
    wish = decision_request(action_id=trial.trial_id, verb=verb, **{**values, **given})
    store.upsert("decision_request", to_arrow("decision_request", [wish]))
    trials.TrialDecisions(store, clock).take_up()
    sql = "SELECT state, answer FROM decision_request WHERE request_id = $id::VARCHAR"
    (answer,) = store.read(sql, id=wish.request_id).to_pylist()
    return answer


def an_hour_of(
    store: OwnerStore, clock: Hands, price: str, seconds: float = 1.0, failed: int = 0
) -> None:
    """Runs on both engines in the hour that follows, with what they cost; then a look at it."""
    clock.now = clock.now + HOUR
    until = clock.now
    times = [seconds, seconds * 1.1] * 8
    ran(store, "t1", "duckdb", times, until=until, failed=failed, group="g", trace=moved(store))
    ran(store, "t1", "trino", [2.0, 2.2] * 8, until=until, group="g")
    spent(store, until, {"trino": "0.40", "duckdb": price})
    trials.take_steps(store, clock)


def moved(store: OwnerStore) -> str:
    """What the gateway notes of a read that the trial sent elsewhere."""
    trial = the_trial(store)
    words = Assigned(trial.trial_id, trial.to_engine, trial.share).words
    return json.dumps([asdict(Step("strategy", "g", trial.to_engine, words))])


def spent(store: OwnerStore, at: datetime, prices: dict[str, str]) -> None:
    from tests.unit.spend.ledger import Ledger, Part  # noqa: PLC0415 beside its only use

    ledger = Ledger()
    for hour in (at - HOUR, at):
        for engine, price in prices.items():
            part = Part(cost=price, user="ana", template="t1")
            ledger.charge(hour.replace(minute=0, second=0), engine, part, meter="uptime-t1")
    ledger.write(store)


@pytest.mark.slow
def test_a_move_is_proposed_with_its_evidence(store: OwnerStore, hands: Hands) -> None:
    history(store)
    assert trials.propose(store, hands, GROUPS) == 1
    trial = the_trial(store)
    assert (trial.from_engine, trial.to_engine) == ("trino", "duckdb")
    month = Decimal(20) * 730 / 24  # a history of minutes counts as one of a day
    assert trial.gain_usd_month == pytest.approx(Decimal("0.3") * month, abs=Decimal("0.001"))
    assert trial.gain_low is not None
    assert trial.gain_high is not None
    assert 0 < trial.gain_low < trial.gain_usd_month < trial.gain_high
    assert trial.figures["before"]["trino"]["p95_seconds"] == pytest.approx(2.2)
    assert trial.figures["before"]["trino"]["cost_per_run"] == "0.400000000"
    assert "p95 2.2 s → 1.1 s" in trial.title
    ran(store, "t1", "duckdb", [1.05], until=hands() - 3 * HOUR)
    assert trials.propose(store, hands, GROUPS) == 0  # not twice, nor for every run
    hands.now += timedelta(days=4)
    assert trials.propose(store, hands, GROUPS) == 1  # renewed while it is borne out
    assert the_trial(store).trial_id == trial.trial_id
    assert the_trial(store).expires_at > trial.expires_at


@pytest.mark.slow
@pytest.mark.parametrize("group", [None, "alone", "gone"])
def test_reads_that_no_trial_can_move_are_not_proposed(
    store: OwnerStore, hands: Hands, group: str | None
) -> None:
    history(store, group=group)  # past the gateway, or in a group without the other engine
    assert trials.propose(store, hands, GROUPS) == 0


@pytest.mark.slow
def test_reads_past_the_gateway_are_measured_but_not_promised(
    store: OwnerStore, hands: Hands
) -> None:
    history(store)
    ran(store, "t1", "trino", [2.0, 2.2] * 10)
    ran(store, "t1", "trino", [2.0, 2.2] * 5, group="alone")
    assert trials.propose(store, hands, GROUPS) == 1
    trial = the_trial(store)
    month = Decimal(20) * 730 / 24
    assert trial.gain_usd_month == pytest.approx(Decimal("0.3") * month, abs=Decimal("0.001"))
    assert trial.figures["before"]["trino"]["runs"] == 50
    assert trial.figures["before"]["trino"]["routable"] == 20


@pytest.mark.slow
def test_a_template_with_too_few_runs_is_not_proposed(store: OwnerStore, hands: Hands) -> None:
    history(store, runs=4)
    assert trials.propose(store, hands, GROUPS) == 0


def test_a_size_that_was_hardly_measured_does_not_silence_the_others(
    store: OwnerStore, hands: Hands
) -> None:
    history(store)
    ran(
        store, "t1", "trino", [9.0] * 3, estimated_bytes=2**34, group="g"
    )  # on one engine, and rarely
    assert trials.propose(store, hands, GROUPS) == 1
    assert the_trial(store).to_engine == "duckdb"


def test_a_size_that_another_engine_wins_stops_a_move(store: OwnerStore, hands: Hands) -> None:
    ran(store, "t1", "trino", [2.0, 2.2] * 10, group="g")
    ran(store, "t1", "duckdb", [1.0, 1.1] * 10)
    cost(store, {("t1", "trino"): "0.40", ("t1", "duckdb"): "0.30"})
    ran(store, "t1", "trino", [1.0, 1.1] * 10, estimated_bytes=2**34, group="g")
    ran(store, "t1", "duckdb", [90.0, 91.0] * 10, estimated_bytes=2**34)
    assert trials.propose(store, hands, GROUPS) == 0


def test_most_of_the_reads_must_be_measured_on_both_engines(
    store: OwnerStore, hands: Hands
) -> None:
    history(store)
    ran(store, "t1", "trino", [9.0] * 60, estimated_bytes=2**34, group="g")
    assert trials.propose(store, hands, GROUPS) == 0


@pytest.mark.slow
def test_approved_it_is_tried_and_taken_back_when_measurements_contradict(
    store: OwnerStore, hands: Hands
) -> None:
    history(store)
    trials.propose(store, hands, GROUPS)
    assert decide(store, hands)["state"] == "done"
    assert (the_trial(store).state, the_trial(store).share) == (TrialState.TRIAL, 10)
    an_hour_of(store, hands, "0.90")  # it was to cost a quarter, and costs more than twice
    trial = the_trial(store)
    assert (trial.state, trial.share) == (TrialState.RETREATED, 0)
    assert "it saves nothing" in str(trial.explanation)
    book = TrialBook()
    book.refresh(store)
    assert all(book.of("t1", f"g{number}") is None for number in range(200))
    assert trials.propose(store, hands, GROUPS) == 0  # not again soon
    entries = audit_of(store.read(AUDIT_SQL))
    assert [one.verb for one in entries] == ["proposed", "trial", "retreated"]
    assert [one.prev_hash for one in entries[1:]] == [one.hash for one in entries[:-1]]


@pytest.mark.slow
def test_much_slower_or_failing_is_a_contradiction_as_well(store: OwnerStore, hands: Hands) -> None:
    begun(store, hands)
    an_hour_of(store, hands, "0.10", seconds=9.0)
    assert the_trial(store).state is TrialState.RETREATED
    assert "p95 is" in str(the_trial(store).explanation)


@pytest.mark.slow
def test_borne_out_it_grows_to_all_statements_and_its_saving_is_in_the_ledger(
    store: OwnerStore, hands: Hands
) -> None:
    begun(store, hands, share=50)
    an_hour_of(store, hands, "0.10")
    assert (the_trial(store).state, the_trial(store).share) == (TrialState.TRIAL, 100)
    an_hour_of(store, hands, "0.10")
    trial = the_trial(store)
    assert trial.share == 100
    assert trial.state is TrialState.ADOPTED
    (saving,) = store.read("SELECT * FROM savings").to_pylist()
    assert (saving["action_id"], saving["engine_id"]) == (trial.trial_id, "duckdb")
    assert saving["usd_month"] > 0
    assert saving["runs_after"] == 16
    (line,) = savings_ledger(store).rows
    assert (line.kind, line.saved_usd_month) == ("route", saving["usd_month"])


@pytest.mark.slow
def test_it_grows_from_10_to_50_to_100_percent(store: OwnerStore, hands: Hands) -> None:
    begun(store, hands)
    shares = []
    for _ in range(2):
        an_hour_of(store, hands, "0.10")
        shares.append((the_trial(store).state, the_trial(store).share))
        assert the_trial(store).step_at == hands()
    assert shares == [(TrialState.TRIAL, 50), (TrialState.TRIAL, 100)]
    assert store.read("SELECT * FROM savings").num_rows == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [None, "weighted: 25 of 100", "trial route-2: 10 % of this"])
def test_runs_it_did_not_route_take_it_no_step_on(
    store: OwnerStore, hands: Hands, words: str | None
) -> None:
    begun(store, hands)
    hands.now += HOUR
    trace = json.dumps([{"stage": "strategy", "subject": "g", "result": "duckdb", "detail": words}])
    where = {} if words is None else {"group": "g", "trace": trace}
    ran(store, "t1", "duckdb", [1.0, 1.1] * 8, until=hands(), **where)
    ran(store, "t1", "duckdb", [1.0, 1.1] * 4, until=hands(), group="g", trace=moved(store))
    spent(store, hands(), {"trino": "0.40", "duckdb": "0.10"})
    assert trials.take_steps(store, hands) == 0
    assert the_trial(store).share == 10


@pytest.mark.slow
def test_it_goes_back_when_what_it_moved_fails(store: OwnerStore, hands: Hands) -> None:
    begun(store, hands)
    an_hour_of(store, hands, "0.10", failed=4)
    trial = the_trial(store)
    assert (trial.state, trial.share) == (TrialState.RETREATED, 0)
    assert trial.explanation == "25% of 16 runs fail on duckdb, 0% on trino"


@pytest.mark.slow
def test_the_ledger_has_what_was_moved_and_no_more(store: OwnerStore, hands: Hands) -> None:
    begun(store, hands, share=100, beside=5)  # a fifth went there anyway
    ran(store, "t1", "duckdb", [1.0, 1.1] * 20, until=hands() + HOUR)
    an_hour_of(store, hands, "0.10")
    (saving,) = store.read("SELECT usd_month, runs_after FROM savings").to_pylist()
    assert saving["runs_after"] == 16
    moved_per_month = Decimal(16) * 20 / 25 * Decimal("730") / 24
    assert saving["usd_month"] < Decimal("0.4") * moved_per_month
    assert saving["usd_month"] == pytest.approx(
        Decimal("0.3") * moved_per_month, rel=Decimal("0.1")
    )


def test_without_runs_a_trial_waits(store: OwnerStore, hands: Hands) -> None:
    begun(store, hands)
    hands.now += HOUR
    assert trials.take_steps(store, hands) == 0
    assert the_trial(store).share == 10


@pytest.mark.slow
def test_a_wish_about_something_else_is_refused(store: OwnerStore, hands: Hands) -> None:
    begun(store, hands, share=0)
    answer = decide(store, hands, plan_hash="0" * 64)
    assert answer["state"] == "refused"
    assert "look at it again" in answer["answer"]
    assert decide(store, hands, verb="reject", reason=None)["state"] == "refused"
    assert decide(store, hands, verb="snooze", until=hands() - HOUR)["state"] == "refused"
    assert "clock" in decide(store, hands, asked_at=hands() + HOUR)["answer"]
    assert decide(store, hands, verb="reject", reason="no")["state"] == "done"
    assert the_trial(store).state is TrialState.REJECTED


def test_a_share_of_the_statements_is_assigned_by_their_id(store: OwnerStore, hands: Hands) -> None:
    begun(store, hands)
    book = TrialBook()
    book.refresh(store)
    claimed = [book.of("t1", f"g{number}") for number in range(2_000)]
    assert 130 < sum(one is not None for one in claimed) < 270
    assert book.of("t2", "g1") is None
