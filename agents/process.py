"""The agents process: owns the store, serves it, runs the jobs, stops cleanly."""

from __future__ import annotations

import os
import signal
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from agents.decide import Decisions
from agents.jobs import Workshop, scheduled_jobs
from agents.probe import EnginePool
from agents.progress import ProgressBoard
from agents.propose import Proposals
from agents.requests import Requests
from agents.runs import close_interrupted_runs
from agents.scheduler import Scheduler
from agents.states import read_circuits, write_states
from agents.switch import Switches
from agents.trials import TrialDecisions
from lakehouse_core.bootstrap import open_engine
from lakehouse_core.config.models import DuckDBEngine, SparkEngine
from lakehouse_core.config.secrets import resolve_secret
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.store.owner import OwnerStore, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.config.models import Config

READY_FILE = "agents.ready"
PATIENCE = timedelta(seconds=15)
_HEARTBEAT_SECONDS = 1.0
_log = structlog.get_logger(__name__)


def run(config: Config, *, clock: Clock = utc_now, stop: threading.Event | None = None) -> int:
    """Run until SIGTERM or SIGINT (or `stop`); returns the exit code.

    Raises:
        LakehouseError: the store cannot be opened or served; says why.
    """
    stop = stop or threading.Event()
    _stop_on_signals(stop)
    for folder in _our_folders(config):
        folder.mkdir(parents=True, exist_ok=True)
    tokens = Tokens(
        writer=resolve_secret(config.store.writer_token),
        reader=resolve_secret(config.store.reader_token),
    )
    with OwnerStore.open(config.store, tokens=tokens, clock=clock) as store:
        interrupted = close_interrupted_runs(store, clock)
        engines = EnginePool(config, lambda name: open_engine(config, name))
        progress = ProgressBoard(store, clock)
        shop = Workshop(config, store, clock, engines, stop.is_set, progress)
        jobs = scheduled_jobs(shop)
        requests = Requests(store, clock, [job.name for job in jobs])
        decisions = Decisions(store, config.maintenance, clock)
        proposals = Proposals(store, config, clock)
        switches = Switches(store, clock)
        trials = TrialDecisions(store, clock)
        scheduler = Scheduler(
            jobs,
            clock=clock,
            circuits=read_circuits(store),
            on_end=lambda ended: requests.when_ended(ended.run),
            on_change=lambda state: write_states(store, [state]),
        )
        ready = config.home / "run" / READY_FILE
        ready.parent.mkdir(parents=True, exist_ok=True)
        scheduler.start()
        ready.write_text(f"{os.getpid()}\n", encoding="ascii")
        _log.info("agents.ready", pid=os.getpid(), interrupted_runs=interrupted)
        try:
            while not stop.wait(_HEARTBEAT_SECONDS):
                _beat(ready)
                scheduler.keep_in_step()
                requests.take_up(scheduler.running, scheduler.run_now)
                decisions.take_up()
                proposals.take_up()
                trials.take_up()
                switches.take_up()
                progress.flush(scheduler.running)
        finally:
            ready.unlink(missing_ok=True)
            is_quiet = scheduler.stop(PATIENCE)
        if is_quiet:
            shop.close()
    abandoned = sorted({*scheduler.running, *scheduler.abandoned})
    _log.info("agents.stopped", abandoned=abandoned)
    if abandoned:
        # A job hangs in somebody else's answer. What it had acknowledged is in the store, which is
        # closed; waiting for its thread would only make the supervisor kill us.
        sys.stdout.flush()
        os._exit(0)
    return 0


def _beat(ready: Path) -> None:
    """Tell the supervisor that this loop goes round."""
    try:
        ready.touch()
    except OSError as error:
        _log.warning("heartbeat not written", file=str(ready), error=str(error))


def _our_folders(config: Config) -> Iterator[Path]:
    """Folders that our own engines write their history to: empty is not the same as missing."""
    for engine in config.engines.values():
        if isinstance(engine, DuckDBEngine):
            yield Path(engine.journal)
        elif isinstance(engine, SparkEngine) and engine.managed:
            yield Path(engine.event_log)


def _stop_on_signals(stop: threading.Event) -> None:
    if threading.current_thread() is not threading.main_thread():
        return  # a test runs us in a thread and stops us by the event
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
