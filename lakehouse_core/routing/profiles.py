"""What each engine needed for each template: the newest runs in memory, quantiles on request.

    book = ProfileBook()
    book.record(Run("t1", "trino", at=…, seconds=2.1, scan_bytes=5e9))
    book.profile("t1", "trino", size_class=32).p50_seconds

Runs are kept, not averages: a price that changed at noon reprices all of them, one absurd timing
can be told from a change, and a year's scan is not mixed with a day's. Old runs weigh less, and
what is not used is let go.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np

from lakehouse_core.routing.predict_local import TemplateRuns
from lakehouse_core.routing.profiles_wear import WearSlopes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from numpy.typing import NDArray


class Valuation(Protocol):
    """What runs are worth under an objective: seconds themselves, or money at today's prices."""

    def __call__(
        self, engine_id: str, seconds: NDArray[np.float64], scan_bytes: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        """One value per run; bytes are NaN where unknown."""
        ...


_Made = TypeVar("_Made")
_RECENT = 4  # so many runs in a row that differ from those before are a change, one is an accident
_CHANGED = math.log(1.5)
_FORGOTTEN = 0.05  # weight of what was before a change
_BESIDE = 16  # runs that a run is compared with to learn what wear costs
_NAMED = 3
KEPT_SECONDS = 60.0  # how long what was made of a template's runs is used, when none is added


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a statement on an engine.

    Attributes:
        template_id: its template.
        engine_id: where it ran.
        at: when it was submitted.
        seconds: on the engine, to the last row. Waiting for a place is not the engine's fault;
            what it will be is told by the load of the moment.
        scan_bytes: bytes it read; None when the engine does not say.
        failed: it ended with an error that was not the statement's fault.
        estimated_bytes: what it was expected to read; None when nobody knew.
        wear: of the tables it read, see `profiles_wear`; None when nobody knew.
        name: id of the query, for traces.
    """

    template_id: str
    engine_id: str
    at: datetime
    seconds: float
    scan_bytes: float | None = None
    failed: bool = False
    estimated_bytes: float | None = None
    wear: float | None = None
    name: str = ""

    @property
    def size_bytes(self) -> float | None:
        """What tells a day from a year: as estimated, since the next statement is estimated too."""
        return self.scan_bytes if self.estimated_bytes is None else self.estimated_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A template on an engine within a class of sizes.

    Attributes:
        size_class: whole part of log2 of the bytes scanned; None: unknown.
        runs: how many are held.
        weight: how many they count for, old ones less.
        p50_seconds: of runs that ended well; None without any.
        p95_seconds: likewise.
        p50_value: of what the objective counts, such as money.
        p95_value: likewise.
        failure_rate: share that failed, by weight.
        spread: standard deviation of the logarithm, robust; None below three runs.
        last_at: the newest run.
    """

    template_id: str
    engine_id: str
    size_class: int | None
    runs: int
    weight: float
    p50_seconds: float | None
    p95_seconds: float | None
    p50_value: float | None
    p95_value: float | None
    failure_rate: float
    spread: float | None
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How much is remembered, and for how long.

    Attributes:
        runs: newest runs kept per template and engine.
        half_runs: after so many newer runs a run counts half.
        half_days: after so many days a run counts half.
        days: after so many days without a run a template is let go.
        templates: so many at most; those used longest ago give way.
        fresh_seconds: after so long new runs count.
    """

    runs: int = 64
    half_runs: float = 24.0
    half_days: float = 14.0
    days: float = 90.0
    templates: int = 50_000
    fresh_seconds: float = 1.0


def in_seconds(
    engine_id: str, seconds: NDArray[np.float64], scan_bytes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The valuation of those who want to be quick."""
    del engine_id, scan_bytes
    return seconds


def size_class(scan_bytes: float | None) -> int | None:
    """The class of sizes: one per doubling."""
    if scan_bytes is None or not math.isfinite(scan_bytes):
        return None
    return int(math.log2(1.0 + max(scan_bytes, 0.0)))


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was made of a template's runs, when, and of which of them."""

    at: datetime
    version: int
    made: Any


class ProfileBook:
    """The newest runs of every template on every engine; for any number of threads."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = memory or Memory()
        self._runs: OrderedDict[str, dict[str, deque[Run]]] = OrderedDict()
        self._made: dict[str, dict[Any, _Kept]] = {}
        self._versions: dict[str, int] = {}
        self._slopes = WearSlopes()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._runs)

    def record(self, run: Run) -> None:
        """Add one run; one that comes late finds its place."""
        if not math.isfinite(run.seconds) or run.seconds < 0:
            return
        with self._lock:
            engines = self._runs.setdefault(run.template_id, {})
            runs = engines.setdefault(run.engine_id, deque(maxlen=self._memory.runs))
            if run.wear is not None and not run.failed:
                others = [
                    (one.wear, math.log(max(one.seconds, 1e-9)))
                    for one in islice(reversed(runs), _BESIDE)
                    if one.wear is not None and not one.failed
                ]
                log = math.log(max(run.seconds, 1e-9))
                self._slopes.learn(run.engine_id, run.wear, log, others)
            if runs and runs[-1].at > run.at:
                ordered = sorted((*runs, run), key=lambda one: one.at)
                engines[run.engine_id] = deque(ordered, maxlen=self._memory.runs)
            else:
                runs.append(run)
            self._versions[run.template_id] = self._versions.get(run.template_id, 0) + 1
            self._runs.move_to_end(run.template_id)
            while len(self._runs) > self._memory.templates:
                self._let_go(next(iter(self._runs)))

    def record_all(self, runs: Iterable[Run]) -> None:
        """Add many, oldest first."""
        for run in runs:
            self.record(run)

    def forget_cold(self, now: datetime) -> int:
        """Let go of templates that did not run for long; how many there were."""
        with self._lock:
            cold = [
                template_id
                for template_id, engines in self._runs.items()
                if all((now - runs[-1].at).days >= self._memory.days for runs in engines.values())
            ]
            for template_id in cold:
                self._let_go(template_id)
        return len(cold)

    def _let_go(self, template_id: str) -> None:
        del self._runs[template_id]
        self._made.pop(template_id, None)
        self._versions.pop(template_id, None)

    def runs_of(
        self,
        template_id: str,
        engines: Sequence[str],
        value_of: Valuation,
        now: datetime,
    ) -> TemplateRuns | None:
        """The runs of a template as the predictor takes them; None when there is none.

        A failed run counts itself and the dearest typical run on another engine: the statement
        still has to be run. Used again for a minute; when runs were added, for a second.
        """
        key = ("runs", tuple(engines), value_of)
        return self._kept(
            template_id, key, now, lambda: self._runs_of(template_id, engines, value_of, now)
        )

    def profiles_of(
        self, template_id: str, value_of: Valuation, now: datetime
    ) -> tuple[Profile, ...]:
        """The profiles of one template; used again as `runs_of`."""
        return self._kept(
            template_id,
            ("profiles", value_of),
            now,
            lambda: tuple(self.profiles(value_of=value_of, now=now, template_id=template_id)),
        )

    def told(self, template_id: str, engines: tuple[str, ...], now: datetime) -> str:
        """Which runs of a template are held, in words: how many per engine, the newest by name."""
        key = ("told", engines)
        return self._kept(template_id, key, now, lambda: self._told(template_id, engines))

    def _told(self, template_id: str, engines: Sequence[str]) -> str:
        with self._lock:
            held = {
                engine: (len(runs), [one.name for one in islice(reversed(runs), _NAMED)])
                for engine, runs in self._runs.get(template_id, {}).items()
            }
        return "; ".join(_counted(one, *held[one]) for one in engines if one in held)

    def _kept(self, template_id: str, key: Any, now: datetime, make: Callable[[], _Made]) -> _Made:
        known = self._made.get(template_id, {}).get(key)
        version = self._versions.get(template_id, 0)
        if known is not None:
            # Of a template that runs all the time not every run is worth counting anew.
            limit = KEPT_SECONDS if known.version == version else self._memory.fresh_seconds
            if 0 <= (now - known.at).total_seconds() < limit:
                return cast("_Made", known.made)
        made = make()
        with self._lock:
            if template_id in self._runs:
                self._made.setdefault(template_id, {})[key] = _Kept(now, version, made)
        return made

    def _runs_of(
        self,
        template_id: str,
        engines: Sequence[str],
        value_of: Valuation,
        now: datetime,
    ) -> TemplateRuns | None:
        with self._lock:
            held = {name: list(runs) for name, runs in self._runs.get(template_id, {}).items()}
        parts = [
            (place, valued_runs(held[name], value_of, name))
            for place, name in enumerate(engines)
            if held.get(name)
        ]
        if not parts:
            return None
        typical = {place: typical_of(values, failed) for place, (values, failed) in parts}
        rows = sum(len(values) for _, (values, _) in parts)
        logs = np.full((rows, len(engines)), np.nan)
        size, weight, is_worn = np.full(rows, np.nan), np.zeros(rows), np.zeros(rows)
        slope = np.zeros(len(engines))
        start = 0
        for place, (values, failed) in parts:
            others = [one for other, one in typical.items() if other != place]
            cost = with_reruns(values, failed, typical[place], others)
            end, runs = start + len(values), held[engines[place]]
            slope[place] = self._slopes.of(engines[place]) * _share_of_time(
                value_of, engines[place]
            )
            wear = np.array([math.nan if run.wear is None else run.wear for run in runs])
            is_worn[start:end] = np.isfinite(wear)
            # As on a table in good condition; what its present condition adds is told later.
            logs[start:end, place] = np.log(np.maximum(cost, 1e-9)) - slope[place] * np.nan_to_num(
                wear
            )
            size[start:end] = [_size(run) for run in runs]
            weight[start:end] = self._weights(runs, logs[start:end, place], now)
            start = end
        return TemplateRuns.of(logs, size, weight, is_worn[:, None] * slope[None, :])

    def profile(
        self,
        template_id: str,
        engine_id: str,
        *,
        value_of: Valuation,
        now: datetime,
        size_class: int | None = None,
    ) -> Profile | None:
        """Quantiles of one template on one engine, of one class of sizes."""
        found = [
            one
            for one in self.profiles(value_of=value_of, now=now, template_id=template_id)
            if one.engine_id == engine_id and one.size_class == size_class
        ]
        return found[0] if found else None

    def profiles(
        self,
        *,
        value_of: Valuation,
        now: datetime,
        template_id: str | None = None,
    ) -> Iterator[Profile]:
        """Every profile, or those of one template."""
        with self._lock:
            chosen = (
                self._runs
                if template_id is None
                else {template_id: self._runs.get(template_id, {})}
            )
            held = [
                (one, engine, list(runs))
                for one, engines in chosen.items()
                for engine, runs in engines.items()
            ]
        for one, engine, runs in held:
            classes: dict[int | None, list[Run]] = {}
            for run in runs:
                classes.setdefault(size_class(run.size_bytes), []).append(run)
            for number, some in classes.items():
                yield self._profile(one, engine, number, some, value_of, now)

    def _profile(
        self,
        template_id: str,
        engine_id: str,
        number: int | None,
        runs: list[Run],
        value_of: Valuation,
        now: datetime,
    ) -> Profile:
        values, failed = valued_runs(runs, value_of, engine_id)
        seconds = np.array([run.seconds for run in runs])
        weights = self._weights(runs, np.log(np.maximum(seconds, 1e-9)), now)
        good = ~failed
        logs = np.log(np.maximum(seconds[good], 1e-9))
        middle = float(np.median(logs)) if len(logs) else 0.0
        spread = 1.4826 * float(np.median(np.abs(logs - middle))) if len(logs) >= 3 else None
        return Profile(
            template_id=template_id,
            engine_id=engine_id,
            size_class=number,
            runs=len(runs),
            weight=float(weights.sum()),
            p50_seconds=_quantile(seconds[good], weights[good], 0.5),
            p95_seconds=_quantile(seconds[good], weights[good], 0.95),
            p50_value=_quantile(values[good], weights[good], 0.5),
            p95_value=_quantile(values[good], weights[good], 0.95),
            failure_rate=float((weights * failed).sum() / max(float(weights.sum()), 1e-12)),
            spread=spread,
            last_at=runs[-1].at,
        )

    def _weights(
        self, runs: list[Run], logs: NDArray[np.float64], now: datetime
    ) -> NDArray[np.float64]:
        """Old runs weigh less, and those before a change next to nothing."""
        newer = np.arange(len(runs))[::-1]
        days = np.array([max((now - run.at).total_seconds(), 0.0) / 86_400 for run in runs])
        weights = 0.5 ** (newer / self._memory.half_runs) * 0.5 ** (days / self._memory.half_days)
        change = _change(logs)
        if change is not None:
            weights[:change] *= _FORGOTTEN
        return np.asarray(weights)


def _change(logs: NDArray[np.float64]) -> int | None:
    """Where the engine's speed changed for good; None when it did not."""
    if len(logs) < 2 * _RECENT:
        return None
    recent, older = logs[-_RECENT:], logs[:-_RECENT]
    middle = float(np.median(older))
    spread = 1.4826 * float(np.median(np.abs(older - middle)))
    limit = max(3 * spread, _CHANGED)
    now = float(np.median(recent))
    if abs(now - middle) <= limit:
        return None
    # Everything since the last run that still was as before.
    as_before = np.flatnonzero(np.abs(logs - middle) < np.abs(logs - now))
    return int(as_before[-1]) + 1 if len(as_before) else None


def valued_runs(runs: Sequence[Run], value_of: Valuation, engine: str) -> tuple[Any, Any]:
    """What runs of one engine are worth, and which of them failed."""
    seconds = np.array([run.seconds for run in runs])
    sizes = np.array([_or_nan(run.scan_bytes, run.estimated_bytes) for run in runs])
    return value_of(engine, seconds, sizes), np.array([run.failed for run in runs], np.bool_)


def typical_of(values: NDArray[np.float64], failed: NDArray[np.bool_]) -> float:
    """The median of runs that ended well; NaN without any."""
    good = values[~failed & np.isfinite(values)]
    return float(np.median(good)) if len(good) else math.nan


def with_reruns(
    values: NDArray[np.float64],
    failed: NDArray[np.bool_],
    own: float,
    others: Iterable[float],
) -> NDArray[np.float64]:
    """What runs of one engine cost when those that failed must be followed by another.

    Args:
        values: of the runs themselves.
        failed: which of them failed.
        own: a typical run of this engine; NaN: not known.
        others: typical runs of the other engines.
    """
    known = [one for one in others if math.isfinite(one)]
    again = max(known, default=own if math.isfinite(own) else 0.0)
    if not again:
        again = float(np.nanmax(values, initial=0.0))
    return np.where(failed, values + again, values)


def _share_of_time(value_of: Valuation, engine: str) -> float:
    """How far a value follows the seconds: 1 what is paid by time, 0 what is paid by bytes."""
    size = np.full(2, 1e9)
    short, long = value_of(engine, np.array([1.0, 2.0]), size)
    if not (short > 0 and long > 0):
        return 0.0
    return math.log2(long / short)


def _counted(engine: str, count: int, newest: list[str]) -> str:
    names = [one for one in newest if one]
    if not names:
        return f"{engine} {count}"
    return f"{engine} {count} ({', '.join(names)}{', …' if count > len(names) else ''})"


def _or_nan(*known: float | None) -> float:
    return next((one for one in known if one is not None), math.nan)


def _size(run: Run) -> float:
    size = run.size_bytes
    return math.nan if size is None else math.log2(1.0 + max(size, 0.0))


def _quantile(values: Any, weights: Any, share: float) -> float | None:
    """A weighted quantile: the least value that share of the weight does not exceed."""
    if not len(values):
        return None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][int(np.searchsorted(reached, share * reached[-1]))])
