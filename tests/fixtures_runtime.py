"""Real engines for tests: one lake, one Spark Connect server and one Trino per session.

    @pytest.mark.spark
    def test_something(spark_server: Config) -> None:
        engine = spark_server.engines["spark"]     # running on engine.port
    @pytest.mark.trino
    def test_other(trino_server: Config) -> None: ...
    @pytest.mark.lake
    def test_third(demo_lake: Config) -> None: ...  # the demo tables at a small scale

All three share one configuration (`lake_config`), hence one catalog: Trino reads what Spark
writes. Close a Spark Connect session before the test session ends: a client whose server is
gone retries for minutes.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pytest

from lakehouse_core.config.environment import Machine, read_machine
from lakehouse_core.domain.errors import NotInstalledError
from lakehouse_core.runtime.artifacts import SPARK_JARS, ensure
from lakehouse_core.runtime.demo_lake import build_demo_lake, demo_lake_command
from lakehouse_core.runtime.java import Java, find_javas, java_for_spark, java_for_trino
from lakehouse_core.runtime.plan import Tools, spark_specs, trino_specs
from lakehouse_core.runtime.report import SilentReporter
from lakehouse_core.runtime.rundir import RUN_ID_VARIABLE, sweep
from lakehouse_core.runtime.secrets import ensure_tokens
from lakehouse_core.runtime.supervisor import Supervisor, Surroundings
from lakehouse_core.runtime.trino import ensure_server
from tests.rest_catalog import RestServer
from tools import rest_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.runtime.processes import ProcessSpec
    from tests.conftest import DemoConfig
    from tests.network import NetworkGuard

DEMO_SCALE = 0.01
# Whoever else uses the machine: a start that takes long is no fault of what is tested.
READY_SECONDS = 600


class StartProcess(Protocol):
    """Starts a supervised process and waits until it is ready; ended with the session."""

    def __call__(self, spec: ProcessSpec, log_dir: Path) -> Supervisor: ...


@pytest.fixture(scope="session")
def machine() -> Machine:
    """This machine, with the cache that all runs share."""
    return read_machine()


@pytest.fixture(scope="session")
def spark_java(machine: Machine) -> Java:
    """A Java for Spark; the tests that ask for it cannot do without."""
    return java_for_spark(find_javas(machine))


@pytest.fixture(scope="session")
def artifacts(machine: Machine, network_guard: NetworkGuard) -> list[Path]:
    """The jars that Spark needs for Iceberg, downloaded into the shared cache if need be."""
    with network_guard.opened():
        return ensure(machine, SPARK_JARS, SilentReporter())


@pytest.fixture(scope="session")
def start_process() -> Iterator[StartProcess]:
    """Start processes as `lakehelm up` does."""
    run_id = uuid.uuid4().hex
    running: list[Supervisor] = []

    def start(spec: ProcessSpec, log_dir: Path) -> Supervisor:
        around = Surroundings(
            log_dir=log_dir,
            env={**os.environ, RUN_ID_VARIABLE: run_id},
            reporter=SilentReporter(),
            on_change=lambda _: None,
        )
        patient = replace(spec, essential=True, after=(), ready_seconds=READY_SECONDS)
        supervisor = Supervisor([patient], around, {})
        running.append(supervisor)
        supervisor.bring_up()
        return supervisor

    yield start
    for supervisor in running:
        supervisor.stop()
    sweep(run_id)


@pytest.fixture(scope="session")
def lake_config(load_demo_config: DemoConfig) -> Config:
    """A configuration on free ports whose lake the engines of this session share."""
    config = load_demo_config(
        None,
        LAKEHELM__DEMO__SCALE=DEMO_SCALE,
        LAKEHELM__ENGINES__SPARK__DRIVER_MEMORY="1GiB",
        LAKEHELM__ENGINES__SPARK__MASTER="local[2]",
        LAKEHELM__ENGINES__TRINO__HEAP="1GiB",
    )
    # Its page of Connect forgets all but the last 200 statements, and one test counts them.
    conf = {"spark.sql.connect.ui.retainedStatements": "100000"}
    spark = config.engines["spark"].model_copy(update={"conf": conf})
    config = config.model_copy(update={"engines": {**config.engines, "spark": spark}})
    for catalog in config.catalogs.values():
        catalog.warehouse.mkdir(parents=True, exist_ok=True)
    ensure_tokens(config)  # with the ingest's token, Trino gets its event listener
    return config


@pytest.fixture(scope="session")
def rest_server(
    tmp_path_factory: pytest.TempPathFactory,
    machine: Machine,
    spark_java: Java,
    network_guard: NetworkGuard,
    start_process: StartProcess,
) -> RestServer:
    """Iceberg's REST catalog server; whoever asks for it finds what others left in it."""
    with network_guard.opened():
        jars = rest_catalog.ensure_server(machine, SilentReporter())
    server = RestServer(tmp_path_factory.mktemp("rest"))
    server.start(spark_java, jars, start_process)
    return server


@pytest.fixture(scope="session")
def demo_lake(
    lake_config: Config, machine: Machine, spark_java: Java, artifacts: list[Path]
) -> Config:
    """The demo tables, built once per session at a small scale."""
    del artifacts
    log = lake_config.home / "logs" / "demo-lake.log"
    command = demo_lake_command(lake_config, machine, spark_java)
    build_demo_lake(command, machine.variables, log, SilentReporter())
    return lake_config


@pytest.fixture(scope="session")
def spark_server(
    lake_config: Config,
    machine: Machine,
    spark_java: Java,
    artifacts: list[Path],
    start_process: StartProcess,
) -> Config:
    """A Spark Connect server on the session's lake."""
    del artifacts
    tools = Tools(machine=machine, spark_java=spark_java, trino_java=None, trino_server=None)
    (spec,) = spark_specs(lake_config, tools)
    start_process(spec, lake_config.home / "logs")
    return lake_config


@pytest.fixture(scope="session")
def trino_server(
    lake_config: Config,
    machine: Machine,
    network_guard: NetworkGuard,
    start_process: StartProcess,
) -> Config:
    """A Trino server on the session's lake; skipped on a machine without a Java for it."""
    try:
        java = java_for_trino(find_javas(machine))
    except NotInstalledError as error:
        pytest.skip(str(error))
    with network_guard.opened():
        server = ensure_server(machine, SilentReporter())
    tools = Tools(machine=machine, spark_java=None, trino_java=java, trino_server=server)
    (spec,) = trino_specs(lake_config, tools)
    start_process(spec, lake_config.home / "logs")
    return lake_config
