"""Shadow runs: a sample of reads once more on a second engine, to have evidence about it.

    shadow:            # of a cluster group; off by default
      share: 0.05      # of its reads
      budget: 0.05     # of the time and the money that all its reads take

A read that was answered is drawn by its id and run again where least is known of its template. The
client has its rows by then; those of the shadow are thrown away. It takes no place that somebody
waits for, and gives it up when somebody does. It is recorded with the protocol `shadow`: evidence
like any other run, but nobody's query.
"""

from __future__ import annotations

import asyncio
import math
import time
import zlib
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import structlog

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.domain.query import EngineId, QueryStatus, StatementKind
from lakehouse_core.gateway.flight import Flight
from lakehouse_core.gateway.service import new_gateway_id
from lakehouse_core.routing.profiles import in_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakehouse_core.gateway.ports import Recorder
    from lakehouse_core.gateway.running import RunningQuery
    from lakehouse_core.gateway.service import QueryService
    from lakehouse_core.routing.groups import Group
    from lakehouse_core.routing.profiles import ProfileBook, Valuation
    from lakehouse_core.routing.router import Router

_log = structlog.get_logger(__name__)
PROTOCOL = "shadow"
SOURCE = "lakehelm-shadow"
ENOUGH_RUNS = 12  # of a template on an engine: more teach little
UNKNOWN_TIMES = 3.0  # as long as on the engine that answered, as far as anybody knows
LOOK_SECONDS = 0.25


class Shadows(Protocol):
    """What is told of every statement that is over."""

    def consider(self, flight: Flight) -> None:
        """Run it once more, or not; never raises and never waits."""
        ...


class ShadowingRecorder:
    """A `Recorder` that lets shadows see each flight after it is kept."""

    def __init__(self, inner: Recorder) -> None:
        self._inner = inner
        self.shadows: Shadows | None = None  # needs the service, which needs a recorder

    def note(self, flight: Flight) -> None:
        """See `Recorder.note`."""
        self._inner.note(flight)
        if self.shadows is not None:
            self.shadows.consider(flight)


@dataclass(slots=True)
class _Account:
    """What the reads of a group were worth and what its shadows spent: seconds, and money."""

    worth: list[float] = field(default_factory=lambda: [0.0, 0.0])
    spent: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def has_room(self, extra: tuple[float, float], budget: float) -> bool:
        return all(
            spent + more <= budget * worth
            for spent, more, worth in zip(self.spent, extra, self.worth, strict=True)
        )

    def spend(self, amounts: tuple[float, float], sign: float = 1.0) -> None:
        self.spent = [one + sign * more for one, more in zip(self.spent, amounts, strict=True)]


class ShadowRuns:
    """The shadows of one gateway; used from its event loop."""

    def __init__(
        self, router: Router, service: QueryService, book: ProfileBook, price_of: Valuation
    ) -> None:
        # run, stopped, failed, over_budget, no_room, not_possible, broken: a fault of ours
        self.counts: Counter[str] = Counter()
        self._router = router
        self._service = service
        self._book = book
        self._price_of = price_of
        self._accounts: dict[str, _Account] = defaultdict(_Account)
        self._running: dict[str, int] = defaultdict(int)
        self._tasks: set[asyncio.Task[None]] = set()

    def consider(self, flight: Flight) -> None:
        """See `Shadows.consider`."""
        with self._contained(flight.request.gateway_id):
            self._consider(flight)

    @contextmanager
    def _contained(self, gateway_id: str) -> Iterator[None]:
        """Keep a fault here: the statement that was answered has nothing to do with it."""
        try:
            yield
        except Exception:  # noqa: BLE001 whatever it is, it is nobody's answer; it is in the log
            self.counts["broken"] += 1
            _log.exception("shadow broken", gateway_id=gateway_id)

    def _consider(self, flight: Flight) -> None:
        decision = flight.decision
        if decision is None or decision.is_shadow or flight.status is not QueryStatus.FINISHED:
            return
        group = self._router.plan.layout.groups.get(decision.group or "")
        if group is None or not group.shadow.share or decision.engine_id is None:
            return
        facts = decision.facts
        if facts.kind is not StatementKind.SELECT or not facts.is_read_only:
            return
        engine, account = str(decision.engine_id), self._accounts[group.name]
        took = max((flight.ended or 0.0) - (flight.admitted or 0.0), 0.0)
        worth = self._worth(flight, engine, took)
        account.worth = [a + b for a, b in zip(account.worth, worth, strict=True)]
        if not is_drawn(flight.request.gateway_id, group.shadow.share):
            return
        other = self._least_known(group, flight)
        if other is None:
            return
        extra = self._worth(flight, other, self._expected(flight, other, took))
        if not account.has_room(extra, group.shadow.budget):
            self.counts["over_budget"] += 1
            return
        self._start(flight, group, EngineId(other), extra)

    def _start(
        self, flight: Flight, group: Group, engine: EngineId, extra: tuple[float, float]
    ) -> None:
        answered = flight.decision
        is_full = self._running[group.name] >= group.shadow.maxRunning
        if answered is None or is_full or not self._router.has_spare_room(group, engine):
            self.counts["no_room"] += 1
            return
        asked = replace(flight.request, gateway_id=new_gateway_id())
        decision = self._router.decide_shadow(asked, answered, engine)
        if decision.denial is not None or decision.engine_id != engine:
            self.counts["not_possible"] += 1
            return
        tags = (*asked.tags, f"shadow_of:{answered.gateway_id}")
        request = replace(asked, protocol=PROTOCOL, source=SOURCE, tags=tags)
        again = Flight(request=request, decision=decision)
        again.decided = again.admitted = time.perf_counter()
        again.attempts = 1
        lease = None if decision.capacity.would_queue else self._router.try_acquire(asked, decision)
        if lease is None:
            self.counts["no_room"] += 1
            return
        self._running[group.name] += 1
        self._accounts[group.name].spend(extra)
        query = self._service.run(again, lease)
        task = asyncio.get_running_loop().create_task(self._watch(query, group, extra))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self, query: RunningQuery, group: Group, extra: tuple[float, float]) -> None:
        with self._contained(query.gateway_id):
            await self._follow(query, group, extra)

    async def _follow(self, query: RunningQuery, group: Group, extra: tuple[float, float]) -> None:
        """Throw its rows away; stop it when it takes too long or somebody waits."""
        deadline = time.perf_counter() + group.shadow.timeoutSecs
        outcome = "run"
        try:
            while True:
                try:
                    if await query.next_batch(LOOK_SECONDS) is None:
                        break
                except TimeoutError:
                    pass
                if time.perf_counter() > deadline or self._router.waiting():
                    outcome = "stopped"
                    await query.cancel("A shadow run gives way")
                    break
        except LakehouseError as error:
            outcome = "failed"
            _log.info("shadow run failed", gateway_id=query.gateway_id, error=str(error))
        finally:
            self._running[group.name] -= 1
            self.counts[outcome] += 1
            self._settle(query.flight, group.name, extra)

    def _settle(self, flight: Flight, group: str, extra: tuple[float, float]) -> None:
        """Book what it really took instead of what was expected."""
        ended = flight.ended or time.perf_counter()
        took = max(ended - (flight.admitted or ended), 0.0)
        engine = str(flight.decision.engine_id) if flight.decision is not None else ""
        account, really = self._accounts[group], self._worth(flight, engine, took)
        account.spend(extra, -1.0)
        account.spend(really)

    def _worth(self, flight: Flight, engine: str, seconds: float) -> tuple[float, float]:
        """Seconds, and money where the engine has a price."""
        decision = flight.decision
        estimate = decision.estimate if decision is not None else None
        scanned = flight.cost.bytes_scanned if flight.cost is not None else None
        if scanned is None and estimate is not None:
            scanned = estimate.bytes
        size = math.nan if scanned is None else float(scanned)
        money = float(self._price_of(engine, np.array([seconds]), np.array([size]))[0])
        return seconds, money if math.isfinite(money) else 0.0

    def _known(self, flight: Flight) -> Mapping[str, tuple[int, float]]:
        """Engine → runs of the template there, and how long they took."""
        decision = flight.decision
        template_id = decision.facts.template_id if decision is not None else ""
        found: dict[str, tuple[int, float]] = {}
        for one in self._book.profiles_of(template_id, in_seconds, utc_now()):
            runs, longest = found.get(one.engine_id, (0, 0.0))
            found[one.engine_id] = runs + one.runs, max(longest, one.p50_seconds or 0.0)
        return found

    def _least_known(self, group: Group, flight: Flight) -> str | None:
        answered = flight.decision.engine_id if flight.decision is not None else None
        known = self._known(flight)
        others = dict.fromkeys(
            str(one.engine_id)
            for one in group.members
            if one.engine_id != answered and not one.unusable
        )
        runs = {one: known.get(one, (0, 0.0))[0] for one in others}
        wanted = [one for one in others if runs[one] < ENOUGH_RUNS]
        return min(wanted, key=lambda one: runs[one], default=None)

    def _expected(self, flight: Flight, engine: str, took: float) -> float:
        runs, seconds = self._known(flight).get(engine, (0, 0.0))
        return seconds if runs else UNKNOWN_TIMES * took


def is_drawn(gateway_id: str, share: float) -> bool:
    """Whether the lot falls on a statement; another lot than that of tries."""
    return bool(gateway_id) and zlib.crc32(f"shadow:{gateway_id}".encode()) / 2**32 < share
