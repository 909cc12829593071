"""What the gateway learns from: the runs of the store, and its own as they end.

    learner = Learner(store, ProfileBook())
    learner.catch_up()                       # off the event loop, again and again
    service = QueryService(router, engines, LearningRecorder(recorder, learner))

The store knows runs of every engine, whoever sent them, but later; the gateway's own count at once.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import EngineUnavailableError, StoreError
from lakehouse_core.domain.query import QueryStatus, StatementKind
from lakehouse_core.gateway.upkeep import Job
from lakehouse_core.routing.learned import REMEMBERED_DAYS, Models, make_predictor, valuations_of
from lakehouse_core.routing.profiles import ProfileBook, Run
from lakehouse_core.routing.profiles_history import past_runs
from lakehouse_core.routing.profiles_wear import wear_of

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.gateway.flight import Flight
    from lakehouse_core.gateway.ports import Recorder
    from lakehouse_core.routing.predict import LearningPredictor
    from lakehouse_core.routing.profiles import Valuation
    from lakehouse_core.routing.request import ScanEstimator
    from lakehouse_core.store.port import TelemetryStore

_log = structlog.get_logger(__name__)
CATCH_UP_SECONDS = 60.0
# Rows may come late: spools wait for the store, collectors for their turn.
_OVERLAP = timedelta(minutes=15)
_MOST_KNOWN = 200_000


class Learner:
    """Fills the profiles; `note` on the event loop, `catch_up` in one thread at a time."""

    def __init__(self, store: TelemetryStore, book: ProfileBook, clock: Clock = utc_now) -> None:
        self._store = store
        self._book = book
        self._clock = clock
        self._after: datetime | None = None
        self._known: OrderedDict[str, None] = OrderedDict()

    def catch_up(self) -> int:
        """Take in what the store has heard of, and let go of what is cold; how many runs it was.

        A store that does not answer is asked again next time.
        """
        now = self._clock()
        try:
            past = past_runs(
                self._store,
                now - timedelta(days=REMEMBERED_DAYS),
                after=self._after,
                has_texts=False,
            )
        except StoreError as error:
            _log.info("runs not read", error=str(error))
            return 0
        fresh = [one.run for one in past if one.run.name not in self._known]
        for run in fresh:
            self._take(run)
        if past:
            self._after = max(one.collected_at for one in past) - _OVERLAP
        self._book.forget_cold(now)
        return len(fresh)

    def note(self, flight: Flight) -> None:
        """Take in a statement that is over, when it tells something about its engine."""
        run = run_of(flight)
        if run is not None:
            self._take(run)

    def _take(self, run: Run) -> None:
        self._known[run.name] = None
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        self._book.record(run)


class LearningRecorder:
    """A `Recorder` that lets a learner see each flight before it is kept."""

    def __init__(self, inner: Recorder, learner: Learner) -> None:
        self._inner = inner
        self._learner = learner

    def note(self, flight: Flight) -> None:
        """See `Recorder.note`."""
        self._learner.note(flight)
        self._inner.note(flight)


@dataclass(frozen=True, slots=True)
class Learning:
    """The part of a gateway that learns."""

    predictor: LearningPredictor
    learner: Learner
    book: ProfileBook
    price_of: Valuation
    jobs: tuple[Job, ...]

    def recorder(self, inner: Recorder) -> LearningRecorder:
        """A recorder that teaches, too."""
        return LearningRecorder(inner, self.learner)


def make_learning(config: Config, store: TelemetryStore, estimator: ScanEstimator) -> Learning:
    """What chooses by the past, and what it is fed with."""
    book = ProfileBook()
    predictor = make_predictor(config, book, estimator)
    learner, models = Learner(store, book), Models(config, predictor)
    jobs = (
        Job("profiles", learner.catch_up, CATCH_UP_SECONDS),
        Job("models", models.look, CATCH_UP_SECONDS),
    )
    return Learning(predictor, learner, book, valuations_of(config)["cost"], jobs)


def run_of(flight: Flight) -> Run | None:
    """A statement as a run of its engine; None when it says nothing about it.

    Only reads may be sent elsewhere; a statement that was wrong or was stopped is no fault of the
    engine's, and neither is what broke in the gateway.
    """
    decision = flight.decision
    if decision is None or decision.engine_id is None or flight.admitted is None:
        return None
    is_gone = isinstance(flight.error, EngineUnavailableError)
    is_failed = flight.status is QueryStatus.FAILED and is_gone
    is_told = flight.status is QueryStatus.FINISHED or is_failed
    if flight.ended is None or not is_told or decision.facts.kind is not StatementKind.SELECT:
        return None
    estimate = decision.estimate
    scanned = flight.cost.bytes_scanned if flight.cost is not None else None
    return Run(
        template_id=decision.facts.template_id,
        engine_id=decision.engine_id,
        at=flight.submitted_at,
        seconds=max(flight.ended - flight.admitted, 0.0),
        scan_bytes=None if scanned is None else float(scanned),
        failed=is_failed,
        estimated_bytes=None if estimate is None else estimate.bytes,
        wear=None if estimate is None else wear_of(estimate.files, estimate.bytes),
        name=flight.request.gateway_id,
    )
