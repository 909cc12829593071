"""Which member of a group takes a statement; each strategy says why.

Choosing changes nothing: `explain` chooses as well. What a strategy remembers changes when the
chosen member really takes the statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lakehouse_core.config import routing as shape
from lakehouse_core.routing.scripts import load_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse_core.config.routing import StrategyConfig
    from lakehouse_core.routing.request import (
        Candidate,
        Objective,
        Predictor,
        Request,
        StatementFacts,
        Terms,
    )

_OBJECTIVES: dict[str, Objective] = {
    "costOptimized": "cost",
    "latencyOptimized": "latency",
    "throughputBalanced": "throughput",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a choice may depend on beside the candidates."""

    request: Request
    facts: StatementFacts
    predictor: Predictor | None = None


@dataclass(frozen=True, slots=True)
class Pick:
    """The chosen member and why."""

    candidate: Candidate
    reason: str


class Strategy(Protocol):
    """Chooses among members that may take the statement; there is at least one."""

    def choose(self, candidates: Sequence[Candidate], asked: Asked) -> Pick:
        """The member to take; changes nothing."""
        ...

    def took(self, member: str, candidates: Sequence[str]) -> None:
        """The member took it."""
        ...


def make_strategy(
    settings: StrategyConfig | None,
    members: tuple[str, ...],
    key: str,
    terms: Terms | None = None,
) -> Strategy:
    """The strategy of a group.

    Args:
        settings: as configured; None: round robin.
        members: names of the members in order.
        key: where it is configured, for messages.
        terms: what the group asks of a prediction.

    Raises:
        ConfigError: its script is wrong.
    """
    match settings:
        case None:
            return RoundRobin(members)
        case shape.WeightedStrategy():
            return Weighted(settings.weights)
        case shape.AffinityStrategy():
            return Affinity(settings.preference)
        case shape.ScriptStrategy():
            return Scripted(load_function(settings, "select_cluster", key))
        case shape.PlainStrategy():
            plain: dict[str, Callable[[], Strategy]] = {
                "roundRobin": lambda: RoundRobin(members),
                "leastLoaded": LeastLoaded,
                "failover": Failover,
            }
            made = plain.get(settings.type)
            return made() if made else Predicted(_OBJECTIVES[settings.type], terms)


class RoundRobin:
    """One after the other, in the order of the group."""

    def __init__(self, members: tuple[str, ...]) -> None:
        self._places = {name: place for place, name in enumerate(members)}
        self._last = -1

    def choose(self, candidates: Sequence[Candidate], asked: Asked) -> Pick:
        """The first behind the one that was taken last."""
        del asked
        behind = (c for c in candidates if self._places.get(c.member, 0) > self._last)
        return Pick(next(behind, candidates[0]), "its turn")

    def took(self, member: str, candidates: Sequence[str]) -> None:
        """Go on behind this one."""
        del candidates
        self._last = self._places.get(member, -1)


class _Stateless:
    def took(self, member: str, candidates: Sequence[str]) -> None:
        """Nothing is remembered."""


class LeastLoaded:
    """The one that runs least; among equals, the one that was not taken for longest."""

    def __init__(self) -> None:
        self._turn = 0
        self._taken: dict[str, int] = {}

    def choose(self, candidates: Sequence[Candidate], asked: Asked) -> Pick:
        """The smallest number of running statements."""
        del asked
        best = min(candidates, key=lambda c: (c.running, self._taken.get(c.member, 0)))
        return Pick(best, f"{best.running} running, the least")

    def took(self, member: str, candidates: Sequence[str]) -> None:
        """Among equals the others come first now."""
        del candidates
        self._turn += 1
        self._taken[member] = self._turn


class Failover(_Stateless):
    """The first that can."""

    def choose(self, candidates: Sequence[Candidate], asked: Asked) -> Pick:
        """The first in the order of the group."""
        del asked
        return Pick(candidates[0], "the first that can take it")


class Weighted:
    """Shares, kept exactly: each member gains its weight per statement, the richest pays for it."""

    def __init__(self, weights: dict[str, int]) -> None:
        self._weights = weights
        self._credit = dict.fromkeys(weights, 0)

    def choose(self, candidates: Sequence[Candidate], asked: Asked) -> Pick:
        """The one that is furthest behind its share."""
        del asked
        shares = [c for c in candidates if self._weights.get(c.member)]
        if not shares:
            return Pick(candidates[0], "no member with a weight can take it")
        best = max(shares, key=lambda c: self._credit[c.member] + self._weights[c.member])
        total = sum(self._weights[c.member] for c in shares)
        return Pick(best, f"weight {self._weights[best.member]} of {total}")

    def took(self, member: str, candidates: Sequence[str]) -> None:
        """Everybody who could have taken it gains, the one who did pays."""
        shares = [name for name in candidates if self._weights.get(name)]
        if member not in shares:
            return
        for name in shares:
            self._credit[name] += self._weights[name]
        self._credit[member] -= sum(self._weights[name] for name in shares)


class Affinity(_Stateless):
    """Types of engines in order of preference; of one type, the least loaded."""

    def __init__(self, preference: Sequence[str]) -> None:
        known = [shape.ENGINE_TYPES.get(word, word) for word in preference]
        self._rank = {kind: rank for rank, kind in reversed(list(enumerate(known)))}

    def choose(self, candidates: Sequence[Candidate], asked: Asked) -> Pick:
        """The type that comes first."""
        del asked
        last = len(self._rank)
        best = min(candidates, key=lambda c: (self._rank.get(c.engine_type, last), c.running))
        return Pick(best, f"{best.engine_type} comes first of those that can take it")


class Scripted(_Stateless):
    """The operator's own function; whatever it does wrong, the first member takes the statement."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def choose(self, candidates: Sequence[Candidate], asked: Asked) -> Pick:
        """What `select_cluster(candidates)` gives."""
        del asked
        told = [
            {
                "name": c.member,
                "engineType": c.engine_type,
                "runningQueries": c.running,
                "maxRunningQueries": c.limit,
            }
            for c in candidates
        ]
        try:
            name = self._function(told)
        except Exception as error:  # noqa: BLE001 a script may raise anything; a query must not fail by it
            return Pick(
                candidates[0], f"select_cluster() failed: {type(error).__name__}: {error}; first"
            )
        found = next((c for c in candidates if c.member == name), None)
        if found is not None:
            return Pick(found, "select_cluster()")
        return Pick(candidates[0], f"select_cluster() gave {name!r}; first")


class Predicted(_Stateless):
    """What the profiles of the past say is best; without them, what can be seen now."""

    def __init__(self, objective: Objective, terms: Terms | None = None) -> None:
        self._objective = objective
        self._terms = terms

    def choose(self, candidates: Sequence[Candidate], asked: Asked) -> Pick:
        """The predictor's choice, or a plain one that says why there was none."""
        why = "there are no profiles yet"
        if asked.predictor is not None:
            said = asked.predictor.choose(
                self._objective, asked.request, asked.facts, candidates, self._terms
            )
            chosen = next((c for c in candidates if c.engine_id == said.engine_id), None)
            if chosen is not None:
                return Pick(chosen, f"{self._objective}: {said.reason}")
            why = said.reason
        if self._objective == "throughput":
            best = min(candidates, key=_utilisation)
            return Pick(best, f"{why}; {best.running} of {best.limit or 'any'} running, the least")
        own = [c for c in candidates if c.dialect == asked.request.dialect]
        best = min(own or candidates, key=lambda c: c.running)
        return Pick(best, f"{why}; " + ("speaks the client's dialect" if own else "least loaded"))


def _utilisation(candidate: Candidate) -> tuple[float, int]:
    return candidate.running / (candidate.limit or 1_000), candidate.running
