"""Advice for one table: what is read now, what each layout would read, which one pays.

Pure: a sample, the files as they are and a workload in, an `Advice` out. The present layout is not
simulated: its conditions are planned against the bounds of the real files.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.catalog.overlap import mean_overlap
from lakehouse_core.domain.layout import PRESENT, Layout
from lakehouse_core.layout.arrange import arrange, output_files
from lakehouse_core.layout.candidates import Tried, column_worths, search
from lakehouse_core.layout.decision import Costs, Pricing, Row, Rules, Verdict, decide
from lakehouse_core.layout.packing import Packing
from lakehouse_core.layout.partitioning import partition_advice
from lakehouse_core.layout.simulate import replay, simulate

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from decimal import Decimal

    from lakehouse_core.catalog.estimate import FileBounds
    from lakehouse_core.domain.layout import LayoutKind
    from lakehouse_core.layout.candidates import ColumnWorth
    from lakehouse_core.layout.decision import ScanPrice
    from lakehouse_core.layout.sample import Sample
    from lakehouse_core.layout.simulate import Replay
    from lakehouse_core.layout.workload import Unusable, Workload

FINALISTS = 4
SEARCHED = 600  # conditions that the search replays
_PARTS = 3
_SMALLER_GAINS = 0.92  # smaller files must bring this much, for every halving
_FEW_FILES = 32  # up to so many, one halving says little of the next: curves skip in steps
_LEAST_ERROR = 0.02  # Spark cuts files at bounds of a sample of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is given besides the table and its workload.

    Attributes:
        prices: per engine; engines without one count as the mean of the others.
        target_bytes: how large files are by default.
        least_bytes: no smaller files are advised.
        rewrite_usd: what carrying it out costs; None where nothing is priced.
        growth: new data in a month, as a share of the table.
        curves: those that can be carried out here.
        held: what was advised before; it is kept unless another is clearly better.
    """

    prices: Mapping[str, ScanPrice]
    target_bytes: int
    least_bytes: int
    rules: Rules = field(default_factory=Rules)
    rewrite_usd: Decimal | None = None
    growth: float = 0.0
    curves: tuple[LayoutKind, ...] = ("zorder", "hilbert")
    held: Layout | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One layout that was tried.

    Attributes:
        cost: of the workload per month: USD, or bytes where nothing is priced; with what new data
            costs that does not follow the layout.
        read_share: what reading costs then, as a share of what it costs now.
    """

    layout: str
    cost: float
    read_share: float
    files: int
    survives_appends: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the advised layout would read, per run of the workload as a whole.

    Attributes:
        bytes_now: of all scans of the window, weighted by their runs.
        bytes_then: the same under the layout; `low` and `high` are how far it may be off.
    """

    bytes_now: float
    files_now: float
    bytes_then: float
    bytes_low: float
    bytes_high: float
    files_then: float
    table_bytes_then: float
    table_files_then: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """How sorted the files really are by a column: 0 when each has its own range, 1 when none."""

    column: str
    overlap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What is advised for a table, and all that led to it."""

    table_id: str
    layout: Layout | None
    reason: str
    target_bytes: int
    columns: tuple[ColumnWorth, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    prediction: Prediction | None = None
    rows: tuple[Row, ...] = ()
    usd_month_now: Decimal | None = None
    usd_month_then: Decimal | None = None
    rewrite_usd: Decimal | None = None
    runs: int = 0
    observed_days: float = 1.0
    sample_rows: int = 0
    sample_share: float = 0.0
    unusable: tuple[Unusable, ...] = ()
    unread_runs: int = 0
    partitioning: tuple[str, ...] = ()
    overlaps: tuple[Overlap, ...] = ()

    @property
    def saved_usd_month(self) -> Decimal | None:
        """What readers save in a month, what larger files alone would included."""
        if self.usd_month_now is None or self.usd_month_then is None:
            return None
        return self.usd_month_now - self.usd_month_then


def advise(sample: Sample, files: FileBounds, workload: Workload, setting: Setting) -> Advice:
    """The advice for a table.

    Args:
        sample: of its rows.
        files: its data files with the bounds of the columns that are tested.
        workload: who reads it.
        setting: prices, sizes and rules.
    """
    why_not = _too_little(sample, files, workload, setting)
    if why_not is not None:
        return nothing(workload, setting.target_bytes, why_not)
    advisor = _Advisor(sample, files, workload, setting)
    return advisor.advice()


def try_layout(
    sample: Sample, files: FileBounds, workload: Workload, setting: Setting, layout: Layout
) -> Advice:
    """What one given layout would bring, whether it pays or not; of an empty table only why not.

    Raises:
        ValueError: the layout cannot be tried: a column is not known, or has no order.
    """
    check_columns(layout, sample.spaces)
    why_not = too_little_known(workload, sample.rows.num_rows)
    if why_not is not None:
        return nothing(workload, setting.target_bytes, why_not)
    return _Advisor(sample, files, workload, setting).figures(layout)


def overlaps(files: FileBounds, columns: Sequence[str]) -> tuple[Overlap, ...]:
    """How much the files overlap in each column of which they keep bounds."""
    found = []
    for name in columns:
        axes = files.axes.get(name, ())
        if axes:
            axis = axes[-1]  # the files' own bounds; partitions come before
            known = (axis.lower >= 0) & (axis.upper < np.iinfo(np.int32).max)
            known &= axis.lower <= axis.upper
            lower, upper = axis.lower[known].astype(np.int64), axis.upper[known].astype(np.int64)
            if len(lower):
                share = mean_overlap(np.zeros(len(lower), np.int64), lower, upper)
                found.append(Overlap(column=name, overlap=round(share, 4)))
    return tuple(found)


def _too_little(
    sample: Sample, files: FileBounds, workload: Workload, setting: Setting
) -> str | None:
    rules = setting.rules
    why_not = too_little_known(workload, sample.rows.num_rows, rules.min_runs)
    if why_not is not None:
        return why_not
    if max(len(files.sizes), sample.table_bytes / setting.least_bytes) < rules.min_files:
        return "The table is too small to have files that could be skipped"
    return None


def check_columns(layout: Layout, known: Collection[str]) -> None:
    """See that a layout names columns that rows can be ordered by.

    Raises:
        ValueError: it names others; says which, and which there are.
    """
    unknown = [name for name in layout.all_columns if name not in known]
    if unknown:
        names = ", ".join(sorted(known))
        raise ValueError(f"{', '.join(unknown)} cannot be ordered by; columns that can: {names}")


def too_little_known(workload: Workload, rows: int, min_runs: int = 1) -> str | None:
    """Why nothing can be said, whatever the rows are; None: something can.

    Args:
        workload: who reads the table.
        rows: that it has.
        min_runs: fewer say nothing.
    """
    if not workload.patterns:
        return "No query that reads the table was seen, or none whose text is understood"
    if workload.runs < min_runs:
        return f"{workload.runs:,} runs were seen; {min_runs:,} are needed to say something"
    return None if rows else "The table is empty"


def nothing(workload: Workload, target_bytes: int, reason: str) -> Advice:
    """To leave a table as it is."""
    return Advice(
        table_id=workload.table_id,
        layout=None,
        reason=reason,
        target_bytes=target_bytes,
        runs=workload.runs,
        observed_days=workload.observed_days,
        unusable=workload.unusable,
        unread_runs=workload.unread_runs,
    )


class _Advisor:
    def __init__(
        self, sample: Sample, files: FileBounds, workload: Workload, setting: Setting
    ) -> None:
        self._sample = sample
        self._files = files
        self._workload = workload
        self._setting = setting
        self._now = replay(workload.conditions, files)
        self._pricing = Pricing(workload, setting.prices, self._now)
        self._cost_now = self._pricing.cost(self._now)
        self._drawn = self._pricing.drawn(SEARCHED)
        self._worths = column_worths(sample, workload.conditions, self._pricing.per_byte)
        self._densities: dict[Layout, float] = {}
        self._packing: Packing | None = None

    def advice(self) -> Advice:
        tried = self._search()
        if not tried:
            return self._advice(None, PRESENT, self._setting.target_bytes, [], _NO_USE)
        layout = self._chosen(tried, self._search_target)
        target = self._target(layout)
        if self._files_of(target) < self._files_of(self._search_target):
            # In fewer files than were searched with, a simpler order may serve as well.
            layout = self._chosen(tried, target)
        then = self._replay(layout, target, dense=True)
        error = self._error(layout, target, then)
        cost = self._lasting(layout, self._pricing.cost(then))
        rewrite = self._setting.rewrite_usd if self._pricing.is_priced else None
        verdict = decide(
            layout,
            Costs(self._cost_now, self._put_together(then), cost, cost * (1 + error)),
            rewrite=None if rewrite is None else float(rewrite),
            rules=self._setting.rules,
        )
        return self._advice(verdict.layout, layout, target, tried, verdict, then, error)

    def figures(self, layout: Layout) -> Advice:
        """Of one layout, undecided."""
        if layout.kind == "present":
            return self._advice(None, layout, self._setting.target_bytes, [], _AS_IT_IS)
        target = self._setting.target_bytes
        then = self._replay(layout, target, dense=True)
        cost = self._pricing.cost(then)
        tried = [Tried(layout, cost, "asked for")]
        share = cost / self._cost_now if self._cost_now > 0 else 1.0
        reason = f"Under {layout}, reading costs {share:.0%} of what it costs now"
        verdict = Verdict(layout=layout, reason=reason)
        return self._advice(
            layout, layout, target, tried, verdict, then, self._error(layout, target, then)
        )

    def _put_together(self, then: Replay) -> float:
        """What reading would cost in files as large as a layout's, the rows as they lie now."""
        file_bytes = then.total_bytes / max(1, then.total_files)
        files = np.minimum(self._now.files, np.ceil(self._now.size / max(1.0, file_bytes)))
        return self._pricing.cost(replace(self._now, files=files))

    def _search(self) -> list[Tried]:
        if self._cost_now <= 0:
            return []
        return search(
            self._worths, self._sample.spaces, self._search_cost, curves=self._setting.curves
        )

    def _search_cost(self, layout: Layout) -> float:
        """What a layout costs, about: of many conditions some stand for all."""
        drawn, pricing = self._drawn, self._pricing
        if drawn is None:
            cost = pricing.cost(self._replay(layout, self._search_target))
        else:
            places, factor = drawn
            some = [self._workload.conditions[int(one)] for one in places]
            found = simulate(layout, self._sample, some, target_bytes=self._search_target)
            per_byte, per_file = pricing.per_byte[places], pricing.per_file[places]
            cost = float(factor @ (per_byte * found.size + per_file * found.files))
        return self._lasting(layout, cost)

    @property
    def _search_target(self) -> int:
        """A table of few files is searched with as many as it may have: orders then differ."""
        setting = self._setting
        some = self._sample.table_bytes / 16
        return int(min(setting.target_bytes, max(setting.least_bytes, some)))

    def _chosen(self, tried: Sequence[Tried], target: int) -> Layout:
        """The cheapest; of those that serve alike the simplest, or the one that was advised.

        Args:
            tried: the cheapest first.
            target: bytes of a file.
        """
        finalists = [one.layout for one in tried[:FINALISTS]]
        held = self._setting.held
        if held is not None and set(held.all_columns) <= self._sample.spaces.keys():
            finalists.append(held)
        near = [one for one in tried if one.cost <= tried[0].cost * (1 + 2 * self._rules.tie)]
        simple = sorted(near, key=lambda one: (one.layout.complexity, one.cost))[:FINALISTS]
        pool = dict.fromkeys([*finalists, *(one.layout for one in simple)])
        costs = {
            one: self._lasting(one, self._pricing.cost(self._replay(one, target, dense=True)))
            for one in pool
        }
        best = min(costs.values())
        if held is not None and costs.get(held, np.inf) <= best * (1 + self._rules.hold):
            return held
        alike = [one for one, cost in costs.items() if cost <= best * (1 + self._rules.tie)]
        return min(alike, key=lambda one: (one.complexity, costs[one], str(one)))

    @property
    def _rules(self) -> Rules:
        return self._setting.rules

    def _target(self, layout: Layout) -> int:
        """The largest size of files that smaller ones do not beat clearly."""
        target = smaller = self._setting.target_bytes
        cost, asked = self._pricing.cost(self._replay(layout, target)), 1.0
        while smaller // 2 >= self._setting.least_bytes:
            smaller //= 2
            if self._files_of(smaller) == self._files_of(target):
                continue  # the table has as few files as before
            asked *= _SMALLER_GAINS
            less = self._pricing.cost(self._replay(layout, smaller))
            if less <= cost * asked:
                target, cost, asked = smaller, less, 1.0
            elif self._files_of(smaller) > _FEW_FILES:
                break
        return target

    def _files_of(self, target: int) -> int:
        return sum(output_files(size, target) for size in self._sample.partition_bytes)

    def _lasting(self, layout: Layout, cost: float) -> float:
        """With what new data costs until the next rewrite, where writers cannot keep the layout."""
        if layout.survives_appends:
            return cost
        lost = min(1.0, self._setting.growth / 2)
        return cost + lost * max(0.0, self._cost_now - cost)

    def _replay(
        self, layout: Layout, target: int, *, dense: bool = False, sample: Sample | None = None
    ) -> Replay:
        return simulate(
            layout,
            sample or self._sample,
            self._workload.conditions,
            target_bytes=target,
            density=self._density(layout) if dense else 1.0,
        )

    def _density(self, layout: Layout) -> float:
        """Bytes of a row under the layout over what they are now."""
        if layout not in self._densities:
            sample = self._sample
            if self._packing is None:
                row_bytes = sample.table_bytes / max(1, sample.table_rows)
                file_rows = self._setting.target_bytes / max(1.0, row_bytes)
                self._packing = Packing(
                    sample.rows, sample.fraction, row_bytes, file_rows=file_rows
                )
            one_each = [1] * len(sample.partition_bytes)
            order = arrange(layout, sample.spaces, sample.partition, one_each).order
            self._densities[layout] = self._packing.share(order)
        return self._densities[layout]

    def _error(self, layout: Layout, target: int, then: Replay) -> float:
        """How far the estimate may be off, from what parts of the sample say."""
        sample = self._sample
        if sample.fraction >= 1 or sample.rows.num_rows < 100 * _PARTS:
            return _LEAST_ERROR
        whole = self._pricing.cost(then)
        parts = [
            self._pricing.cost(
                self._replay(layout, target, dense=True, sample=sample.part(one, _PARTS))
            )
            for one in range(_PARTS)
        ]
        if not whole:
            return _LEAST_ERROR
        noise = float(np.std(parts)) / whole / _PARTS**0.5
        drift = abs(float(np.mean(parts)) - whole) / whole / 2
        return float(max(_LEAST_ERROR, noise + drift))

    def _advice(  # noqa: PLR0913, PLR0917 one figure each
        self,
        advised: Layout | None,
        shown: Layout,
        target: int,
        tried: Sequence[Tried],
        verdict: Verdict,
        then: Replay | None = None,
        error: float = 0.0,
    ) -> Advice:
        sample, workload, pricing = self._sample, self._workload, self._pricing
        after = self._now if then is None else then
        return Advice(
            table_id=workload.table_id,
            layout=advised,
            reason=verdict.reason,
            target_bytes=target,
            columns=tuple(self._worths),
            candidates=tuple(self._candidate(one) for one in tried),
            prediction=self._prediction(after, error),
            rows=tuple(pricing.rows(after)),
            usd_month_now=pricing.usd(self._now),
            usd_month_then=pricing.usd(after),
            rewrite_usd=self._setting.rewrite_usd,
            runs=workload.runs,
            observed_days=workload.observed_days,
            sample_rows=sample.rows.num_rows,
            sample_share=sample.fraction,
            unusable=workload.unusable,
            unread_runs=workload.unread_runs,
            partitioning=partition_advice(sample, self._worths, self._setting.least_bytes),
            overlaps=overlaps(self._files, [one.column for one in self._worths]),
        )

    def _candidate(self, tried: Tried) -> Candidate:
        return Candidate(
            layout=str(tried.layout),
            cost=tried.cost,
            read_share=tried.cost / self._cost_now if self._cost_now else 1.0,
            files=int(np.ceil(self._sample.table_bytes / self._search_target)),
            survives_appends=tried.layout.survives_appends,
            why=tried.why,
        )

    def _prediction(self, then: Replay, error: float) -> Prediction:
        def total(replayed: Replay) -> tuple[float, float]:
            pairs = [
                (pattern.runs, self._pricing.per_run(pattern, replayed))
                for pattern in self._workload.patterns
            ]
            return (
                sum(runs * size for runs, (size, _) in pairs),
                sum(runs * files for runs, (_, files) in pairs),
            )

        now_size, now_files = total(self._now)
        size, files = total(then)
        return Prediction(
            bytes_now=now_size,
            files_now=now_files,
            bytes_then=size,
            bytes_low=size * max(0.0, 1 - error),
            bytes_high=size * (1 + error),
            files_then=files,
            table_bytes_then=then.total_bytes,
            table_files_then=then.total_files,
        )


_NO_USE = Verdict(layout=None, reason="No condition of a query could spare a file under any layout")
_AS_IT_IS = Verdict(layout=None, reason="The table as it is")
