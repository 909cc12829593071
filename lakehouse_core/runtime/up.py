"""`lakehelm up`: prepare this machine, build the demo lake once, start everything, keep it running.

An engine that cannot take part (no Java for it, no network for its download) is left out and it is
said why; what the product cannot be without stops the start with a message.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import psutil

from lakehouse_core.config import load_config
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import ConfigError, LakehouseError
from lakehouse_core.runtime.artifacts import SPARK_JARS, ensure
from lakehouse_core.runtime.demo_lake import (
    build_demo_lake,
    demo_lake_command,
    marker_path,
    other_lake,
)
from lakehouse_core.runtime.java import find_javas, java_for_spark
from lakehouse_core.runtime.plan import Tools, port_uses, process_specs
from lakehouse_core.runtime.ports import require_free
from lakehouse_core.runtime.preflight import require_disk, select_engines
from lakehouse_core.runtime.rundir import RUN_ID_VARIABLE, RunDir, RunStatus, sweep
from lakehouse_core.runtime.secrets import ensure_tokens
from lakehouse_core.runtime.spark import spark_engine
from lakehouse_core.runtime.supervisor import Supervisor, Surroundings
from lakehouse_core.runtime.trino import ensure_server, trino_engine
from lakehouse_core.store.recover import damaged_since

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from lakehouse_core.config import Loaded
    from lakehouse_core.config.models import Config
    from lakehouse_core.runtime.preflight import Selection
    from lakehouse_core.runtime.report import Reporter
    from lakehouse_core.runtime.rundir import ProcessStatus

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What the command line may change for one run.

    Attributes:
        config: the file; None: the usual one.
        without: engines to leave out.
        scale: of the demo lake.
        rebuild: a demo lake of another scale may be dropped and built anew.
    """

    config: Path | None = None
    without: tuple[str, ...] = ()
    scale: float | None = None
    rebuild: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What a start that succeeded has brought up, and how long it took."""

    config: Config
    processes: tuple[ProcessStatus, ...]
    seconds: float


def run_up(
    options: UpOptions,
    variables: Mapping[str, str],
    reporter: Reporter,
    show: Callable[[Started], None],
) -> None:
    """Bring everything up and stay until a signal; returns after a clean stop.

    Args:
        options: from the command line.
        variables: of this process; the started ones get them too.
        reporter: hears what is going on.
        show: tells what has come up, once everything has.

    Raises:
        LakehouseError: the start failed; nothing of ours is left running.
        KeyboardInterrupt: a signal came before anything was started.
    """
    chosen = dict(variables)
    if options.scale is not None:
        chosen["LAKEHELM__DEMO__SCALE"] = repr(options.scale)
    loaded = load_config(options.config, chosen)
    run = RunDir(loaded.config.home)
    with run.locked(), _signals(_interrupt):
        _clear_leftovers(run, reporter)
        _Run(loaded, chosen, run, reporter, show).go(options)


class _Run:
    """One `lakehelm up`, from the checks to the stop."""

    def __init__(
        self,
        loaded: Loaded,
        variables: dict[str, str],
        run: RunDir,
        reporter: Reporter,
        show: Callable[[Started], None],
    ) -> None:
        self._loaded = loaded
        self._config = loaded.config
        self._reporter = reporter
        self._show = show
        self._run = run
        self._begun = time.monotonic()
        self._started = utc_now()
        self._status = RunStatus(
            run_id=uuid.uuid4().hex,
            supervisor_pid=os.getpid(),
            supervisor_created=psutil.Process().create_time(),
            started_at=self._started.isoformat(timespec="seconds"),
            config=str(loaded.path),
            profile=loaded.config.profile,
            phase="preparing",
        )
        self._env = variables | {RUN_ID_VARIABLE: self._status.run_id}
        self._machine = read_machine(self._env)

    def go(self, options: UpOptions) -> None:
        self._write_status(())
        try:
            loaded, tools, skipped = self._prepare(options)
            self._supervise(loaded, tools, skipped)
        finally:
            sweep(self._status.run_id)
            self._phase("stopped")

    def _prepare(self, options: UpOptions) -> tuple[Loaded, Tools, dict[str, str]]:
        keeps_lake = self._keeps_other_lake(options)
        selection = select_engines(self._config, self._machine, options.without)
        # Engines that are left out need no port: ask again once it is known which are.
        loaded = self._without(selection.skipped)
        require_free(port_uses(loaded.config))
        with_trino = selection.trino_java is not None
        require_disk(self._config.home, self._machine, with_trino=with_trino)
        for path in ensure_tokens(self._config):
            self._reporter.say(f"Created {path}")
        selection, server = self._fetch(selection)
        for name, why in selection.skipped.items():
            self._reporter.say(f"Going on without {name}: {why}")
        tools = Tools(
            machine=self._machine,
            spark_java=selection.spark_java,
            trino_java=selection.trino_java,
            trino_server=server,
        )
        if not keeps_lake:
            self._build_demo_lake()
        return self._without(selection.skipped), tools, selection.skipped

    def _fetch(self, selection: Selection) -> tuple[Selection, Path | None]:
        """Download what the engines need; an engine whose download fails is left out."""
        skipped = dict(selection.skipped)
        spark, trino = spark_engine(self._config), trino_engine(self._config)
        server = None
        spark_java, trino_java = selection.spark_java, selection.trino_java
        if spark is not None and spark_java is not None:
            try:
                ensure(self._machine, SPARK_JARS, self._reporter)
            except LakehouseError as error:
                skipped[spark[0]] = str(error)
                spark_java = None
        if trino is not None and trino_java is not None:
            try:
                server = ensure_server(self._machine, self._reporter)
            except LakehouseError as error:
                skipped[trino[0]] = str(error)
                trino_java = None
        chosen = replace(selection, spark_java=spark_java, trino_java=trino_java, skipped=skipped)
        return chosen, server

    def _keeps_other_lake(self, options: UpOptions) -> bool:
        """Whether the demo lake that is there is another than the one configured, and stays.

        Raises:
            ConfigError: another one was asked for, but not that this one be dropped.
        """
        config = self._config
        other = other_lake(config) if config.profile == "demo" else None
        if other is None:
            return False
        what = f"The demo lake in {marker_path(config).parent} has {other}"
        if options.rebuild:
            self._reporter.say(f"{what}: its tables are dropped and built anew")
            return False
        if options.scale is not None:
            raise ConfigError(
                f"{what}; --scale {options.scale:g} would drop its tables and build them anew: "
                "add --rebuild to have that done, or leave --scale out to keep them"
            )
        self._reporter.say(
            f"{what}, the configuration says scale {config.demo.scale:g} and seed "
            f"{config.demo.seed}: it is kept; `lakehelm up --rebuild` builds it anew"
        )
        return True

    def _build_demo_lake(self) -> None:
        """Build the demo lake when the profile wants one; without Spark an existing one will do."""
        config = self._config
        if config.profile != "demo" or spark_engine(config) is None:
            return
        try:
            java = java_for_spark(find_javas(self._machine))
            ensure(self._machine, SPARK_JARS, self._reporter)
        except LakehouseError:
            if marker_path(config).exists():
                return
            raise
        if not marker_path(config).exists():
            self._reporter.say(f"Building the demo lake at scale {config.demo.scale:g}, once")
        command = demo_lake_command(config, self._machine, java)
        build_demo_lake(command, self._env, config.home / "logs" / "demo-lake.log", self._reporter)

    def _supervise(self, loaded: Loaded, tools: Tools, skipped: dict[str, str]) -> None:
        around = Surroundings(
            log_dir=loaded.config.home / "logs",
            env=self._env,
            reporter=self._reporter,
            on_change=self._write_status,
        )
        specs = process_specs(loaded, tools)
        supervisor = Supervisor(specs, around, skipped)
        self._reporter.say(f"Starting {', '.join(spec.name for spec in specs)}")
        with _signals(lambda *_: supervisor.request_stop()):
            try:
                self._phase("starting")
                if supervisor.bring_up():
                    self._phase("up")
                    self._tell_damage()
                    took = time.monotonic() - self._begun
                    processes = tuple(supervisor.statuses())
                    self._show(Started(config=loaded.config, processes=processes, seconds=took))
                    supervisor.supervise()
            finally:
                self._phase("stopping")
                self._reporter.say("Stopping")
                supervisor.stop()

    def _tell_damage(self) -> None:
        """A store that began anew, or from a backup, is not only for the log."""
        damaged = damaged_since(self._config.store, self._started)
        if damaged:
            aside = ", ".join(str(path) for path in damaged)
            self._reporter.say(
                f"The store was damaged and has been rebuilt as far as possible; put aside: "
                f"{aside}. `lakehelm doctor` says from what"
            )

    def _without(self, skipped: Mapping[str, str]) -> Loaded:
        """The configuration with these engines off, as the started processes will read it."""
        for name in skipped:
            variable = name.upper().replace("-", "_").replace(".", "_")
            self._env[f"LAKEHELM__ENGINES__{variable}__ENABLED"] = "false"
        return load_config(self._loaded.path, self._env)

    def _phase(self, phase: str) -> None:
        self._status = replace(self._status, phase=phase)
        self._write_status(self._status.processes)

    def _write_status(self, processes: Sequence[ProcessStatus]) -> None:
        self._status = replace(self._status, processes=tuple(processes))
        try:
            self._run.write(self._status)
        except OSError as error:  # a full disk must not stop what runs
            self._reporter.say(f"{self._run.status_path} could not be written: {error}")


def stop_running(home: Path, reporter: Reporter, timeout_seconds: float = 120.0) -> bool:
    """`lakehelm down`: end the supervisor of this home, or what a dead one left; False if nothing.

    Raises:
        LakehouseError: the supervisor does not end.
    """
    run = RunDir(home)
    status = run.read()
    if status is None:
        return False
    if not status.is_alive:
        return bool(sweep(status.run_id))
    supervisor = psutil.Process(status.supervisor_pid)
    reporter.say(f"Stopping Lakehelm (pid {supervisor.pid})")
    supervisor.terminate()
    try:
        supervisor.wait(timeout_seconds)
    except psutil.TimeoutExpired as error:
        raise LakehouseError(
            f"Lakehelm (pid {supervisor.pid}) still runs after {timeout_seconds:.0f} s; "
            f"see the logs in {home / 'logs'}, then end it with: kill -9 {supervisor.pid}"
        ) from error
    return True


def _clear_leftovers(run: RunDir, reporter: Reporter) -> None:
    """End processes of a supervisor that was killed; the lock says that it is gone."""
    shutil.rmtree(run.path / "spark-tmp", ignore_errors=True)
    previous = run.read()
    if previous is None or previous.phase == "stopped":
        return
    ended = sweep(previous.run_id)
    if ended:
        reporter.say(f"Ended {len(ended)} processes that an earlier run left behind")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _signals(handler: Callable[..., object]) -> Iterator[None]:
    """Send the stop signals to the handler while inside."""
    numbers = [
        number
        for number in STOP_SIGNALS
        # Under nohup the terminal's end is to be survived.
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
