"""Replay: the reads of a window decided again by another configuration; nothing is run.

Every distinct template, user, set of tags and size goes through the same decision as in the
gateway, weighted by how often it ran. What it would cost and take where it would go is what the
same template and size was measured to cost there, at the new prices. Engines count as up and free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic

from lakehouse_core.config.routing import PlainStrategy
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.money import rounded
from lakehouse_core.governance.guard import make_guard
from lakehouse_core.routing.build import make_plan, make_ports, routing_of
from lakehouse_core.routing.decide import Decider
from lakehouse_core.routing.learned import recall, remembered_runs
from lakehouse_core.routing.queue import WaitingLine
from lakehouse_core.routing.request import EngineStanding, Request
from lakehouse_core.views.measured import (
    LEAST_RUNS,
    RUNS_SQL,
    Amount,
    measured,
    money_of,
    size_words,
)
from lakehouse_core.views.window import Window, parse_window

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.routing.request import Predictor
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.measured import Cell

MOST_CASES = 20_000
SURE_80 = 1.2816  # two-sided 80 % of a normal distribution

STRATEGIES = ("costOptimized", "latencyOptimized", "roundRobin", "leastLoaded", "failover")
CASES_SQL = f"""
WITH run AS ({RUNS_SQL})
SELECT run.template_id, run.engine_id, size_class, user_name, tags, count(*) AS runs,
  any_value(sql_text) AS sql_text, any_value(dialect) AS dialect, any_value(source) AS source,
  any_value(default_catalog) AS default_catalog, any_value(default_namespace) AS namespace
FROM run JOIN query_event AS event USING (engine_id, query_id)
WHERE NOT failed AND NOT is_shadow AND sql_text IS NOT NULL
GROUP BY run.template_id, run.engine_id, size_class, user_name, tags
ORDER BY runs DESC, run.template_id, run.engine_id, size_class, user_name, tags LIMIT $most::BIGINT
"""  # noqa: S608 put together from constants
CAVEATS = (
    "Engines count as up and free: spill-over, queues and what depends on load are left out.",
    "Routers that look at headers, protocols or endpoints see none.",
    "Strategies by prediction know all runs of the last 90 days, but no sizes; they try nothing.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(Generic[Amount]):
    """A sum before and after; the range holds four of five times. None: nothing is known of it."""

    unit: str
    before: Amount
    after: Amount
    low: Amount
    high: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Reads that would go, or stay, somewhere; figures are of all of them together."""

    template_id: str
    size: str
    user: str | None
    tags: tuple[str, ...]
    runs: int
    engine: str
    to: str | None
    cost_before: Decimal | None
    cost_after: Decimal | None
    seconds_before: float | None
    seconds_after: float | None
    why: str

    @property
    def is_moved(self) -> bool:
        """Whether they would go elsewhere."""
        return self.to != self.engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A window under another configuration.

    Attributes:
        runs: finished reads that were decided again.
        moved_runs: those that would go elsewhere.
        cost, seconds: of runs with evidence on both sides; None without any.
        compared_runs: how many those are.
        moves: what would go elsewhere, with its figures.
        without_evidence: what would go where it was not measured often enough.
        denied: what would not run at all.
    """

    window: Window
    currency: str
    source: str
    runs: int
    moved_runs: int
    compared_runs: int
    cost: Figure[Decimal] | None
    seconds: Figure[float] | None
    moves: tuple[Move, ...]
    without_evidence: tuple[Move, ...]
    denied: tuple[Move, ...]
    least_runs: int = LEAST_RUNS
    caveats: tuple[str, ...] = CAVEATS


class _Idle:
    """A fleet in which all is well."""

    def standing(self, engine_id: EngineId) -> EngineStanding:
        """See `Fleet.standing`."""
        del engine_id
        return EngineStanding()


def replay(
    store: TelemetryStore, clock: Clock, *, window: str, running: Config, other: Config
) -> Replay:
    """The reads of a window under another configuration.

    Args:
        store: the store.
        clock: the time.
        window: what to look at.
        running: the configuration the history was made with; its prices are those of before.
        other: rules, strategies and prices to try.

    Raises:
        ConfigError: something in the other routing is wrong.
    """
    span = parse_window(window, clock())
    evidence = measured(store, span)
    known = {(*cell.key, cell.engine_id): cell for cell in evidence.cells}
    decider = _decider(other, _predictor(store, other, clock))
    factor = _Prices(running, other, clock())
    moves = [
        _move(row, decider, known, factor)
        for row in store.read(
            CASES_SQL, start=span.start, end=span.end, most=MOST_CASES
        ).to_pylist()
    ]
    denied = tuple(one for one, _ in moves if one.to is None)
    told = [(one, cell) for one, cell in moves if one.to is not None]
    compared = [(one, cell) for one, cell in told if cell is not None]
    return Replay(
        window=span,
        currency=evidence.currency,
        source=decider.plan.source,
        runs=sum(one.runs for one, _ in moves),
        moved_runs=sum(one.runs for one, _ in told if one.is_moved),
        compared_runs=sum(one.runs for one, _ in compared),
        cost=_cost(compared, evidence.currency),
        seconds=_seconds(compared),
        moves=tuple(one for one, _ in compared if one.is_moved),
        without_evidence=tuple(one for one, cell in told if cell is None),
        denied=denied,
    )


def ways_of(config: Config) -> dict[str, tuple[str, ...]]:
    """Group → other ways to choose its members that a replay can try.

    Raises:
        ConfigError: the routing file is wrong.
    """
    groups = routing_of(config)[0].clusterGroups
    return {
        name: (*(f"only {one}" for one in group.members), *STRATEGIES)
        for name, group in groups.items()
        if len(group.members) > 1
    }


def with_way(config: Config, group: str, way: str) -> Config:
    """The configuration in which one group chooses another way.

    Raises:
        ConfigError: the routing file is wrong.
    """
    routing = routing_of(config)[0]
    given = routing.clusterGroups[group]
    only = way.removeprefix("only ")
    if only != way:
        changed = given.model_copy(update={"members": (only,), "strategy": None})
    else:
        strategy = PlainStrategy.model_validate({"type": way})
        changed = given.model_copy(update={"strategy": strategy})
    groups = {**routing.clusterGroups, group: changed}
    other = routing.model_copy(update={"clusterGroups": groups, "file": None})
    return config.model_copy(update={"routing": other})


def replay_way(
    store: TelemetryStore, *, clock: Clock, window: str, config: Config, group: str, way: str
) -> Replay:
    """The reads of a window when a group chooses another way; see `replay`."""
    other = with_way(config, group, way)
    return replay(store, clock, window=window, running=config, other=other)


def choices_of(
    store: TelemetryStore, clock: Clock, *, window: str, config: Config
) -> dict[tuple[str, int | None], str]:
    """Which engine the configured rules choose, by template and size: for most of the runs.

    Strategies by prediction have none here: it is what the rules would do without it.
    """
    span = parse_window(window, clock())
    decider = _decider(config)
    votes: dict[tuple[str, int | None], dict[str, int]] = {}
    for row in store.read(CASES_SQL, start=span.start, end=span.end, most=MOST_CASES).to_pylist():
        decision = decider.decide(_request(row), is_counted=False)
        if decision.engine_id is not None and decision.denial is None:
            own = votes.setdefault((row["template_id"], row["size_class"]), {})
            own[decision.engine_id] = own.get(decision.engine_id, 0) + row["runs"]
    return {key: max(sorted(own), key=own.__getitem__) for key, own in votes.items()}


def _predictor(store: TelemetryStore, config: Config, clock: Clock) -> Predictor:
    book, predictor = recall(config, None, clock)
    book.record_all(remembered_runs(store, clock))
    return predictor


def _decider(config: Config, predictor: Predictor | None = None) -> Decider:
    ports = make_ports(config, _Idle(), guard=make_guard(config), predictor=predictor)
    return Decider(make_plan(config), ports, WaitingLine(), utc_now)


def _request(row: Mapping[str, Any]) -> Request:
    return Request(
        sql=row["sql_text"],
        dialect=row["dialect"] or "trino",
        user=row["user_name"],
        tags=tuple(row["tags"] or ()),
        source=row["source"],
        catalog=row["default_catalog"],
        schema=row["namespace"],
        gateway_id="",  # no lot is drawn: nothing is tried out
    )


def _move(
    row: Mapping[str, Any],
    decider: Decider,
    known: Mapping[tuple[str, int | None, str], Cell],
    factor: _Prices,
) -> tuple[Move, Cell | None]:
    decision = decider.decide(_request(row), is_counted=False)
    is_denied = decision.denial is not None or decision.engine_id is None
    to = None if is_denied else str(decision.engine_id)
    key = (row["template_id"], row["size_class"])
    here = known.get((*key, row["engine_id"]))
    there = None if to is None else known.get((*key, to))
    has_evidence = here is not None and there is not None and (there is here or there.is_enough)
    rate = Decimal(1) if to is None else factor.of(to)
    after = there if has_evidence else None
    runs = row["runs"]
    move = Move(
        template_id=row["template_id"],
        size=size_words(row["size_class"]),
        user=row["user_name"],
        tags=tuple(row["tags"] or ()),
        runs=runs,
        engine=row["engine_id"],
        to=to,
        cost_before=_paid(runs, here),
        cost_after=_paid(runs, after, rate),
        seconds_before=_took(runs, here),
        seconds_after=_took(runs, after),
        why=_why(decision.denial.message if decision.denial else None, there, to),
    )
    return move, after


def _why(denial: str | None, there: Cell | None, to: str | None) -> str:
    if denial is not None or to is None:
        return denial or "no engine takes it"
    runs = 0 if there is None else there.finished
    return f"{runs} finished runs measured on {to}"


def _paid(runs: int, cell: Cell | None, rate: Decimal = Decimal(1)) -> Decimal | None:
    each = None if cell is None else cell.cost_per_run
    return None if each is None else rounded(each * runs * rate)


def _took(runs: int, cell: Cell | None) -> float | None:
    each = None if cell is None else cell.seconds_per_run
    return None if each is None else each * runs


def _cost(compared: list[tuple[Move, Cell]], currency: str) -> Figure[Decimal] | None:
    known = [
        (move.cost_before, move.cost_after, _variance(move, there, float(move.cost_after)))
        for move, there in compared
        if move.cost_before is not None and move.cost_after is not None
    ]
    return _figure(known, currency, money_of)


def _seconds(compared: list[tuple[Move, Cell]]) -> Figure[float] | None:
    known = [
        (move.seconds_before, move.seconds_after, _variance(move, there, move.seconds_after))
        for move, there in compared
        if move.seconds_before is not None and move.seconds_after is not None
    ]
    return _figure(known, "s", float)


def _figure(
    known: list[tuple[Amount, Amount, float]], unit: str, amount: Callable[[float], Amount]
) -> Figure[Amount] | None:
    if not known:
        return None
    nothing = amount(0.0)
    before = sum((was for was, _, _ in known), start=nothing)
    after = sum((will for _, will, _ in known), start=nothing)
    off = amount(SURE_80 * math.sqrt(sum(square for _, _, square in known)))
    low = max(after - off, nothing)
    return Figure(unit=unit, before=before, after=after, low=low, high=after + off)


def _variance(move: Move, there: Cell, will: float) -> float:
    """How unsure an amount is; what stays is known."""
    return (will * (there.spread or 0.0)) ** 2 / max(there.finished, 1) if move.is_moved else 0.0


class _Prices:
    """How much dearer an engine becomes."""

    def __init__(self, running: Config, other: Config, at: datetime) -> None:
        self._books = [one.prices.book_of(one.prices.all_prices(at)) for one in (running, other)]
        self._at = at

    def of(self, engine_id: str) -> Decimal:
        """New price over old one; 1 where one of them is missing or by another unit."""
        now, then = (
            {(one.unit, one.sku): one.effective_rate for one in book.compute(engine_id, self._at)}
            for book in self._books
        )
        shared = [key for key in now if now[key] and key in then]
        return then[shared[0]] / now[shared[0]] if shared else Decimal(1)
