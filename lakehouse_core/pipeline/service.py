"""One run of the pipeline: notice what is new, export it, run Spark, load gold.

The order makes a crash harmless at any point: an export lands whole before Spark hears of it;
bronze remembers which exports it has; the lake's state is written when gold is whole; the store's
watermark when the store has gold; rows leave the landing folder last.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.agent import Watermark
from lakehouse_core.pipeline import export as exporting
from lakehouse_core.pipeline.care import plan_care
from lakehouse_core.pipeline.job import plan_document, run_spark
from lakehouse_core.pipeline.landing import Export, Landing
from lakehouse_core.pipeline.load import load
from lakehouse_core.pipeline.state import LakeState, read_state
from lakehouse_core.store.columns import known_columns
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.runtime.jobs import Progress
    from lakehouse_core.store.port import TelemetryStore

WATERMARK = "pipeline"
WATERMARK_SQL = "SELECT position, event_at, updated_at FROM watermark WHERE source = $source"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineReport:
    """What a run did.

    Attributes:
        outcome: `ok`, or `nothing_new` when no Spark was started.
        run_id: the run, as snapshots and logs name it; None when there was none.
        exports: the exports it carried on.
        rows: rows they hold.
        through: the last export that gold and store hold.
        exported_at: when the store was read for it: figures are as of then.
        seconds: the whole run, export and load included.
        stages: per stage rows in, rows out, seconds, tables.
        snapshots: table → its snapshot after the run.
        loaded: store table → gold rows loaded.
        recomputed: gold table → hours or days computed anew.
        retries: commits repeated because of other writers.
    """

    outcome: str
    run_id: str | None = None
    exports: tuple[str, ...] = ()
    rows: int = 0
    through: str | None = None
    exported_at: datetime | None = None
    seconds: float = 0.0
    stages: tuple[dict[str, Any], ...] = ()
    snapshots: dict[str, int] = field(default_factory=dict)
    loaded: dict[str, int] = field(default_factory=dict)
    recomputed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    retries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a run needs besides configuration and store.

    Attributes:
        spark: runs a plan and returns its report; by default in a process of its own.
    """

    machine: Machine
    clock: Clock
    on_progress: Callable[[Progress], None] = lambda _: None
    is_stopping: Callable[[], bool] = lambda: False
    spark: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    def run_plan(self, config: Config, plan: dict[str, Any]) -> dict[str, Any]:
        """The report of a plan."""
        if self.spark is not None:
            return self.spark(plan)
        return run_spark(
            config,
            self.machine,
            plan,
            on_progress=self.on_progress,
            is_stopping=self.is_stopping,
        )


def run_pipeline(config: Config, store: TelemetryStore, around: Surroundings) -> PipelineReport:
    """Run once, or find out in milliseconds that there is nothing to do.

    Raises:
        PipelineBusyError: another run is under way.
        PipelineStoppedError: the run was ended before its time.
        PipelineError: a stage failed; says which and why.
        CatalogError: the lake's catalog cannot be read.
        StoreError: the store cannot be read or written.
    """
    landing = Landing(config.pipeline.landing)
    with landing.locked():
        return _Run(config, store, around, landing).all()


def loaded_through(store: TelemetryStore) -> dict[str, Any]:
    """What the store's gold rests on: `through` (an export) and `exported_at`; empty before."""
    rows = store.read(WATERMARK_SQL, source=WATERMARK).to_pylist()
    return dict(json.loads(rows[0]["position"])) if rows else {}


class _Run:
    def __init__(
        self, config: Config, store: TelemetryStore, around: Surroundings, landing: Landing
    ) -> None:
        self._config = config
        self._store = store
        self._around = around
        self._landing = landing
        self._started = time.monotonic()

    def all(self) -> PipelineReport:
        state = read_state(self._config)
        loaded = loaded_through(self._store)
        chain = usable_chain(self._landing, state)
        waiting = [one for one in chain if state.through is None or one.id > state.through]
        cursor = chain[-1].cursor if chain else state.cursor
        is_loaded = loaded.get("through") == state.through
        if not waiting and is_loaded and exporting.is_same(self._store, cursor):
            return self._nothing(state, loaded)
        export = self._export(chain, state)
        if export is not None:
            waiting.append(export)
        if not waiting and is_loaded:
            return self._nothing(state, loaded)
        return self._carry_on(state, waiting, loaded.get("through"))

    def _export(self, chain: tuple[Export, ...], state: LakeState) -> Export | None:
        last = chain[-1] if chain else _remembered(state)
        overlap = self._config.pipeline.overlap
        return exporting.export(self._store, self._landing, last, overlap, self._around.clock)

    def _carry_on(
        self, state: LakeState, waiting: list[Export], loaded: str | None
    ) -> PipelineReport:
        config, around = self._config, self._around
        run_id = f"{around.clock():%Y%m%dT%H%M%S%f}"
        rest = {
            "run_id": run_id,
            "after": _earlier(state.through, loaded),
            "cursor": waiting[-1].cursor if waiting else state.cursor,
            "columns": known_columns(self._store),
            "care": plan_care(state, config.pipeline, around.clock()),
        }
        plan = plan_document(config, around.machine, self._landing, waiting, rest)
        done = around.run_plan(config, plan)
        after = read_state(config)
        started = time.monotonic()
        rows = load(self._store, after, done["recomputed"])
        seconds = round(time.monotonic() - started, 3)
        exported_at = waiting[-1].moment if waiting else around.clock()
        self._acknowledge(done["through"], exported_at)
        stages = (*done["stages"], _load_stage(rows, seconds))
        return PipelineReport(
            outcome="ok",
            run_id=run_id,
            exports=tuple(one.id for one in waiting),
            rows=sum(one.rows for one in waiting),
            through=done["through"],
            exported_at=exported_at,
            seconds=self._seconds(),
            stages=stages,
            snapshots={n: t.current.snapshot_id for n, t in after.tables.items() if t.current},
            loaded=rows,
            recomputed={name: tuple(at) for name, at in done["recomputed"].items()},
            retries=done["retries"],
        )

    def _acknowledge(self, through: str, exported_at: datetime) -> None:
        """Gold is in the store: say so, then let go of the rows."""
        position = json.dumps({"through": through, "exported_at": exported_at.isoformat()})
        mark = Watermark(
            source=WATERMARK,
            position=position,
            event_at=exported_at,
            updated_at=self._around.clock(),
        )
        self._store.upsert("watermark", to_arrow("watermark", [mark]))
        self._landing.settle(through)

    def _nothing(self, state: LakeState, loaded: dict[str, Any]) -> PipelineReport:
        at = loaded.get("exported_at")
        return PipelineReport(
            outcome="nothing_new",
            through=state.through,
            exported_at=datetime.fromisoformat(at) if at else None,
            seconds=self._seconds(),
        )

    def _seconds(self) -> float:
        return round(time.monotonic() - self._started, 3)


def usable_chain(landing: Landing, state: LakeState) -> tuple[Export, ...]:
    """The landed exports that go on from what the lake holds, oldest first.

    A lake that was rebuilt or rolled back, or a landing folder that lost files, breaks the chain:
    then what landed is of no use and the export starts from the lake's own cursor.
    """
    exports = landing.exports()
    waiting = [one for one in exports if state.through is None or one.id > state.through]
    is_whole = all(landing.has_rows(one) for one in waiting)
    links = [one.follows for one in waiting] == [state.through, *(one.id for one in waiting)][
        : len(waiting)
    ]
    if is_whole and links and (waiting or (exports and exports[-1].id == state.through)):
        return exports
    landing.clear()
    return ()


def _remembered(state: LakeState) -> Export | None:
    """What the lake says of its last export: where to go on, without what was seen."""
    if state.through is None:
        return None
    return Export(id=state.through, exported_at="", follows=None, tables={}, cursor=state.cursor)


def _earlier(through: str | None, loaded: str | None) -> str | None:
    return None if through is None or loaded is None else min(through, loaded)


def _load_stage(rows: dict[str, int], seconds: float) -> dict[str, Any]:
    total = sum(rows.values())
    return {
        "name": "load",
        "tables": sorted(rows),
        "rows_in": total,
        "rows_out": total,
        "seconds": seconds,
        "facts": {},
    }
