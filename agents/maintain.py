"""The maintain agent: carries out approved actions and measures what they brought."""

from __future__ import annotations

import time
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from agents.runs import Result
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.agent import AgentProgress, AgentRequest
from lakehouse_core.domain.errors import CatalogError, StoreError
from lakehouse_core.domain.maintenance import Kind
from lakehouse_core.maintenance.etl import finished_etl
from lakehouse_core.maintenance.execute import Maintainer, Surroundings
from lakehouse_core.maintenance.look import Lookout
from lakehouse_core.maintenance.savings import measure_savings
from lakehouse_core.maintenance.states import Ledger
from lakehouse_core.recommend.after_etl import etl_key, propose_after_etl
from lakehouse_core.recommend.propose import dedupe_key
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from agents.watch import Lease
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.runtime.jobs import Progress
    from lakehouse_core.store.owner import OwnerStore

ASKED_AFTER_WORK = ("collect:iceberg",)
ASKED_AFTER_ETL = ("recommend",)
ETL_MEMORY = timedelta(hours=1)
OPEN_SQL = """
SELECT action_id FROM action WHERE list_contains($keys::VARCHAR[], dedupe_key)
  AND state IN ('proposed', 'snoozed', 'approved', 'scheduled', 'running', 'verifying') LIMIT 1
"""
_log = structlog.get_logger(__name__)


class Maintain:
    """Keeps what it learned about tables from run to run."""

    def __init__(
        self, store: OwnerStore, config: Config, clock: Clock, is_stopping: Callable[[], bool]
    ) -> None:
        self._store = store
        self._config = config
        self._clock = clock
        self._is_stopping = is_stopping
        self._ended: dict[str, datetime] | None = None  # None: not looked yet
        self._told: dict[str, float] = {}
        self._hand = _Hand()
        self._maintainer: Maintainer | None = None

    def run_once(self, lease: Lease) -> Result:
        """One round; errors are the job's.

        The Spark job is a process of its own: it is ended when this process stops or the run was
        given up, and the next round finds out how far it came.
        """
        if self._maintainer is None:
            self._maintainer = self._build()
        self._hand.lease = lease
        moved = self._maintainer.run_once()
        if moved:
            self._ask(ASKED_AFTER_WORK)
        self.notice_etl()
        return Result(rows=moved)

    def forget(self) -> None:
        """A run that hangs has the maintainer in its hands: the next one gets another."""
        self._hand, self._maintainer = _Hand(), None

    def _build(self) -> Maintainer:
        hand = self._hand
        around = Surroundings(
            machine=read_machine(),
            clock=self._clock,
            on_progress=hand.on_progress,
            on_action=self._tell,
            is_stopping=lambda: hand.is_lost or self._is_stopping(),
        )
        return Maintainer(self._config, self._store, around)

    def notice_etl(self) -> None:
        """A batch job that has just ended is the best moment to look at what it wrote."""
        ended = finished_etl(self._store, self._clock() - ETL_MEMORY)
        news = {} if self._ended is None else dict(ended.items() - self._ended.items())
        for table_id, at in news.items():
            self._after_etl(table_id, (self._ended or {}).get(table_id, at - ETL_MEMORY))
        if news:
            self._ask(ASKED_AFTER_ETL)  # it lets policies approve what was proposed here
        self._ended = ended

    def _after_etl(self, table_id: str, since: datetime) -> None:
        """Propose to put together what the job wrote, unless the table is worked on anyway."""
        if self._config.spark.remote:
            return  # a procedure cannot be told single partitions
        keys = [etl_key(table_id), dedupe_key(table_id, Kind.COMPACT)]
        if self._store.read(OPEN_SQL, keys=keys).num_rows:
            return
        lookout = Lookout(self._config, self._clock)
        try:
            action = propose_after_etl(lookout, table_id, since, self._config)
        except CatalogError as error:  # the next collection says so on the pages
            _log.warning("maintain.etl_not_looked_at", table=table_id, detail=str(error))
            return
        finally:
            lookout.close()
        if action is not None:
            Ledger(self._store, self._clock).propose(action)

    def _ask(self, agents: Collection[str]) -> None:
        wishes = [
            AgentRequest(
                request_id=uuid.uuid4().hex, agent=name, asked_at=self._clock(), state="waiting"
            )
            for name in agents
        ]
        self._write("agent_request", wishes)

    def _tell(self, action_id: str, progress: Progress) -> None:
        """Note how far an action is, once a second at most."""
        now = time.monotonic()
        if now - self._told.get(action_id, 0.0) < 1.0 and progress.done < progress.total:
            return
        self._told[action_id] = now
        noted = AgentProgress(
            agent=f"maintain/{action_id}",
            done=progress.done,
            total=progress.total,
            unit=progress.what.removeprefix(action_id).strip()[:200],
            updated_at=self._clock(),
        )
        self._write("agent_progress", [noted])

    def _write(self, table: str, rows: list[AgentRequest] | list[AgentProgress]) -> None:
        try:
            self._store.upsert(table, to_arrow(table, rows))
        except StoreError as error:  # the work goes on; the schedule comes by itself
            _log.warning("maintain.not_written", table=table, detail=str(error))


class Savings:
    """The savings ledger, on a schedule of its own."""

    def __init__(self, store: OwnerStore, config: Config, clock: Clock) -> None:
        self._store = store
        self._config = config
        self._clock = clock

    def run_once(self) -> Result:
        """Measure what verified actions brought, from the queries since."""
        return Result(rows=measure_savings(self._store, self._config, self._clock()))


class _Hand:
    """The lease of the run that has a maintainer in its hands."""

    lease: Lease | None = None

    @property
    def is_lost(self) -> bool:
        return self.lease is None or self.lease.is_lost

    def on_progress(self, done: int, total: int | None) -> None:
        if self.lease is not None:
            self.lease.on_progress(done, total)
