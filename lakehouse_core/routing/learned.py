"""From the configuration to a predictor: profiles, prices, and the models that were trained.

The gateway keeps one and feeds it; `lakehelm route explain` and `route replay` make one of what the
store knows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.config.models import DuckDBEngine
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import ModelUnreadableError
from lakehouse_core.routing import predict_file
from lakehouse_core.routing.predict import LearningPredictor
from lakehouse_core.routing.profiles import ProfileBook, in_seconds
from lakehouse_core.routing.profiles_history import past_runs
from lakehouse_core.routing.valuation import PricedRuns

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.routing.predict_training import Trained
    from lakehouse_core.routing.profiles import Run, Valuation
    from lakehouse_core.routing.request import Objective, ScanEstimator
    from lakehouse_core.store.port import TelemetryStore

_log = structlog.get_logger(__name__)
REMEMBERED_DAYS = 90
OBJECTIVES: tuple[Objective, ...] = ("latency", "cost")


def valuations_of(config: Config) -> dict[Objective, Valuation]:
    """What runs are worth under each objective: seconds, or money by the price book."""
    prices = config.prices
    cores = {
        name: engine.threads
        for name, engine in config.engines.items()
        if isinstance(engine, DuckDBEngine)
    }
    return {
        "latency": in_seconds,
        "cost": PricedRuns(prices.book_of(prices.all_prices(utc_now())), cores),
    }


def make_predictor(
    config: Config, book: ProfileBook, estimator: ScanEstimator | None, clock: Clock = utc_now
) -> LearningPredictor:
    """A predictor on these profiles; models come from `Models`."""
    valuations = valuations_of(config)
    return LearningPredictor(book, valuations=valuations, estimator=estimator, clock=clock)


def recall(
    config: Config, estimator: ScanEstimator | None, clock: Clock = utc_now
) -> tuple[ProfileBook, LearningPredictor]:
    """A predictor for a command, with the models there are, and the profiles to be filled."""
    book = ProfileBook()
    predictor = make_predictor(config, book, estimator, clock)
    Models(config, predictor).look()
    return book, predictor


def remembered_runs(store: TelemetryStore, clock: Clock = utc_now) -> list[Run]:
    """The runs of the store that profiles are made of, oldest first.

    Raises:
        StoreError: the store does not answer.
    """
    since = clock() - timedelta(days=REMEMBERED_DAYS)
    return [one.run for one in past_runs(store, since, has_texts=False)]


def model_path(config: Config, objective: Objective) -> Path:
    """Where the model of an objective is kept."""
    return config.home / "models" / f"{objective}.npz"


class Models:
    """Gives a predictor the models that were trained, as soon as they are there."""

    def __init__(self, config: Config, predictor: LearningPredictor) -> None:
        self._paths = {one: model_path(config, one) for one in OBJECTIVES}
        self._predictor = predictor
        self._seen: dict[Objective, int | None] = dict.fromkeys(OBJECTIVES)

    def look(self) -> None:
        """Take up models that are new, and let go of those that were taken away."""
        for objective, path in self._paths.items():
            try:
                at = path.stat().st_mtime_ns
            except FileNotFoundError:
                at = None
            if at == self._seen[objective]:
                continue
            self._seen[objective] = at
            self._predictor.use(objective, None if at is None else _loaded(path))


def _loaded(path: Path) -> Trained | None:
    try:
        return predict_file.load(path)
    except ModelUnreadableError as error:
        _log.warning("routing model not used", error=str(error))
        return None
