"""The retention agent: history leaves the store when its time is over, and so do our own traces."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from agents.collect import read_watermark
from agents.runs import Result
from collectors.spark.retention import drop_read_logs, engines_with_logs
from lakehouse_core.store.literals import literal
from lakehouse_core.store.retention import LAST_SUCCESSES, apply_retention

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore

IDLE_RUNS_KEPT = timedelta(days=1)
_IDLE = f"""outcome = 'ok' AND rows_written = 0 AND dead_letters = 0
AND NOT ({LAST_SUCCESSES}) AND started_at < """


def run_once(store: OwnerStore, config: Config, clock: Clock) -> Result:
    """Drop what is older than the retention; runs that did nothing go after a day.

    The last success of each agent stays, however old: freshness is told from it. Event logs that a
    managed Spark wrote and that were read to their end go with it.
    """
    kept = config.store
    lost = apply_retention(store, kept.retention, clock, keep_costs=kept.cost_retention)
    dropped = sum(lost.values())
    dropped += _drop_idle_runs(store, clock)
    return Result(rows=dropped, error=_drop_read_logs(store, config, clock))


def _drop_read_logs(store: OwnerStore, config: Config, clock: Clock) -> str | None:
    for name, engine in engines_with_logs(config):
        watermark = read_watermark(store, name)
        try:
            drop_read_logs(engine, watermark.position if watermark else None, clock())
        except OSError as error:
            return f"event logs of {name} that were read cannot be removed: {error}"
    return None


def _drop_idle_runs(store: OwnerStore, clock: Clock) -> int:
    limit = literal(clock() - IDLE_RUNS_KEPT)
    found = store.read(f"SELECT count(*) AS idle FROM agent_run WHERE {_IDLE}{limit}")  # noqa: S608 a literal of ours
    idle = int(found.column("idle")[0].as_py())
    if idle:
        store.transact("agent_run", [f"DELETE FROM agent_run WHERE {_IDLE}{limit}"])  # noqa: S608 as above
    return idle
