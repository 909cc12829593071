"""Members are chosen as their group says, and the trace says why."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.config.routing import GroupConfig
from lakehouse_core.domain.query import EngineId
from lakehouse_core.routing.request import Candidate, Preference, StatementFacts, Terms
from lakehouse_core.routing.strategies import Asked, make_strategy
from tests.unit.routing.conftest import statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.routing.request import Objective, Request
    from lakehouse_core.routing.strategies import Strategy

FACTS = StatementFacts("t", "select")
NAMES = ("a", "b", "c")


def candidates(**running: int) -> list[Candidate]:
    kinds = {"a": "trino", "b": "spark", "c": "duckdb"}
    return [
        Candidate(name, EngineId(name), kinds[name], kinds[name], busy, 10)
        for name, busy in running.items()
    ]


def strategy(settings: dict[str, Any] | None) -> Strategy:
    group = GroupConfig.model_validate({"members": NAMES, "strategy": settings})
    return make_strategy(group.strategy, NAMES, "routing.clusterGroups.g.strategy")


def picks(chosen: Strategy, among: list[Candidate], times: int, **asked: Any) -> list[str]:
    """Which members take so many statements one after the other."""
    found = []
    question = Asked(asked.pop("request", statement()), FACTS, **asked)
    for _ in range(times):
        pick = chosen.choose(among, question)
        assert chosen.choose(among, question) == pick, "choosing must change nothing"
        chosen.took(pick.candidate.member, [c.member for c in among])
        found.append(pick.candidate.member)
    return found


def test_round_robin_goes_on_behind_the_last_and_skips_who_cannot() -> None:
    chosen = strategy(None)
    assert picks(chosen, candidates(a=0, b=0, c=0), 4) == ["a", "b", "c", "a"]
    assert picks(chosen, candidates(a=0, c=0), 2) == ["c", "a"]
    assert picks(chosen, candidates(a=0, b=0, c=0), 1) == ["b"]


def test_the_least_loaded_takes_it_and_equals_take_turns() -> None:
    chosen = strategy({"type": "leastLoaded"})
    assert picks(chosen, candidates(a=3, b=1, c=2), 1) == ["b"]
    assert sorted(picks(chosen, candidates(a=1, b=1, c=1), 3)) == ["a", "b", "c"]


def test_failover_takes_the_first_that_can() -> None:
    chosen = strategy({"type": "failover"})
    assert picks(chosen, candidates(a=9, b=0), 2) == ["a", "a"]
    assert picks(chosen, candidates(c=1), 1) == ["c"]


def test_affinity_prefers_types_in_queryfluxs_words() -> None:
    chosen = strategy({"type": "engineAffinity", "preference": ["duckDb", "trino"]})
    assert picks(chosen, candidates(a=0, b=0, c=5), 1) == ["c"]
    assert picks(chosen, candidates(a=7, b=0), 1) == ["a"]
    assert picks(chosen, candidates(b=0), 1) == ["b"]


SCRIPTS = {
    "def select_cluster(cs):\n    return min(cs, key=lambda c: c['runningQueries'])['name']": "b",
    "def select_cluster(cs):\n    return None": "a",
    "def select_cluster(cs):\n    return 'nobody'": "a",
    "def select_cluster(cs):\n    raise ValueError('no')": "a",
    "def select_cluster(cs):\n    assert cs[0] == {'name': 'a', 'engineType': 'trino', "
    "'runningQueries': 2, 'maxRunningQueries': 10}\n    return 'c'": "c",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_chooses_and_whatever_it_does_wrong_the_first_takes_it(script: str) -> None:
    chosen = strategy({"type": "pythonScript", "script": script})
    assert picks(chosen, candidates(a=2, b=1, c=3), 1) == [SCRIPTS[script]]


@given(
    weights=st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any),
    rounds=st.integers(1, 4),
)
def test_weights_are_kept_exactly_over_every_full_round(weights: list[int], rounds: int) -> None:
    shares = dict(zip(NAMES, weights, strict=True))
    chosen = strategy({"type": "weighted", "weights": shares})
    taken = Counter(picks(chosen, candidates(a=0, b=0, c=0), sum(weights) * rounds))
    assert taken == Counter({name: weight * rounds for name, weight in shares.items() if weight})


@given(
    weights=st.lists(st.integers(1, 9), min_size=3, max_size=3),
    free=st.lists(st.sets(st.sampled_from(NAMES), min_size=1), max_size=20),
)
def test_a_share_is_never_missed_by_more_than_one_statement(
    weights: list[int], free: list[set[str]]
) -> None:
    # Whatever else could take statements meanwhile, once all can again the shares hold.
    shares = dict(zip(NAMES, weights, strict=True))
    chosen = strategy({"type": "weighted", "weights": shares})
    for some in free:
        picks(chosen, candidates(**dict.fromkeys(sorted(some), 0)), 1)
    total = sum(weights)
    taken = Counter(picks(chosen, candidates(a=0, b=0, c=0), total * 5))
    assert all(abs(taken[name] - 5 * weight) <= len(free) + 1 for name, weight in shares.items())


def test_load_has_no_part_in_a_weighted_split() -> None:
    chosen = strategy({"type": "weighted", "weights": {"a": 1, "b": 3}})
    assert Counter(picks(chosen, candidates(a=0, b=9), 400)) == {"a": 100, "b": 300}


def test_without_a_weighted_member_another_takes_it() -> None:
    chosen = strategy({"type": "weighted", "weights": {"a": 1}})
    assert picks(chosen, candidates(b=0, c=0), 2) == ["b", "b"]


class Oracle:
    """Says what it was told to say."""

    def __init__(self, engine: str | None, reason: str) -> None:
        self.answer = Preference(None if engine is None else EngineId(engine), reason)
        self.asked: list[Objective] = []

    def choose(
        self,
        objective: Objective,
        request: Request,
        facts: StatementFacts,
        candidates: Sequence[Candidate],
        terms: Terms | None = None,
    ) -> Preference:
        del request, facts, candidates, terms
        self.asked.append(objective)
        return self.answer


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        ("costOptimized", "cost"),
        ("latencyOptimized", "latency"),
        ("throughputBalanced", "throughput"),
    ],
)
def test_profiles_decide_where_there_are_some(name: str, objective: str) -> None:
    oracle = Oracle("b", "p50 1.2 s against 3.4 s, 40 runs")
    asked = Asked(statement(), FACTS, oracle)
    pick = strategy({"type": name}).choose(candidates(a=0, b=9, c=0), asked)
    assert (pick.candidate.member, oracle.asked) == ("b", [objective])
    assert pick.reason == f"{objective}: p50 1.2 s against 3.4 s, 40 runs"


@pytest.mark.parametrize(
    ("name", "dialect", "member"),
    [
        ("costOptimized", "duckdb", "c"),
        ("latencyOptimized", "spark", "b"),
        ("latencyOptimized", "snowflake", "a"),
        ("throughputBalanced", "duckdb", "a"),
    ],
)
def test_without_profiles_the_trace_says_so(name: str, dialect: str, member: str) -> None:
    among = candidates(a=0, b=1, c=2)
    for predictor in (None, Oracle(None, "3 runs are too few")):
        asked = Asked(statement(dialect=dialect), FACTS, predictor)
        pick = strategy({"type": name}).choose(among, asked)
        assert pick.candidate.member == member
        why = "3 runs are too few" if predictor else "there are no profiles yet"
        assert pick.reason.startswith(why)
