"""Which processes a configuration asks for: commands, ports, readiness, order."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import NotInstalledError
from lakehouse_core.routing.build import routing_of
from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.ports import PortUse
from lakehouse_core.runtime.processes import ProcessSpec
from lakehouse_core.runtime.readiness import (
    beats,
    file_exists,
    http_answers,
    port_open,
    trino_runs_statements,
    trino_started,
)
from lakehouse_core.runtime.spark import connect_server_command, spark_engine
from lakehouse_core.runtime.trino import trino_command, trino_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.config import Loaded
    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config
    from lakehouse_core.runtime.java import Java
    from lakehouse_core.runtime.readiness import ReadyCheck

AGENTS, GATEWAY, UI, WORKLOAD = "agents", "gateway", "ui", "workload"
# On two busy cores a JVM takes several times what it takes alone.
ENGINE_READY_SECONDS = 300.0
# An engine under load, or collecting garbage, answers late; three minutes of silence is a hang.
ENGINE_MISSES = 18
# The agents' loop may wait for the store for a minute.
HEARTBEAT_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What was found or unpacked for the engines; None for an engine that is left out."""

    machine: Machine
    spark_java: Java | None
    trino_java: Java | None
    trino_server: Path | None


def port_uses(config: Config) -> list[PortUse]:
    """Every port a run with this configuration listens on.

    Raises:
        ConfigError: the file that routing is in is wrong.
    """
    host, port, key = config.store.host, config.store.port, "store.port"
    uses = [
        PortUse(process="the store's writers", host=host, port=port, key=key),
        PortUse(process="the store's readers", host=host, port=port + 1, key=key, offset=1),
    ]
    spark = spark_engine(config)
    if spark is not None and spark[1].managed:
        name, engine = spark
        uses += [
            PortUse(process=name, host=engine.host, port=engine.port, key=f"engines.{name}.port"),
            PortUse(
                process=f"{name}'s pages",
                host=engine.host,
                port=engine.ui_port,
                key=f"engines.{name}.ui_port",
            ),
        ]
    trino = trino_engine(config)
    if trino is not None and trino[1].managed:
        name, server = trino
        uses.append(
            PortUse(process=name, host=server.host, port=server.port, key=f"engines.{name}.port")
        )
    gateway, ui = config.gateway, config.ui
    uses += [
        PortUse(
            process=GATEWAY, host=gateway.host, port=gateway.admin_port, key="gateway.admin_port"
        ),
        PortUse(process=UI, host=ui.host, port=ui.port, key="ui.port"),
    ]
    if gateway.sql.enabled:
        sql = gateway.sql
        uses.append(PortUse(process=GATEWAY, host=sql.host, port=sql.port, key="gateway.sql.port"))
        if sql.postgres_port is not None:
            key = "gateway.sql.postgres_port"
            uses.append(PortUse(process=GATEWAY, host=sql.host, port=sql.postgres_port, key=key))
        uses += _endpoint_ports(config)
    return uses


def _endpoint_ports(config: Config) -> Iterator[PortUse]:
    """Ports of their own that endpoints of the router have; one with a path needs none."""
    for name, endpoint in routing_of(config)[0].endpoints.items():
        if endpoint.port is not None and endpoint.path is None:
            yield PortUse(
                process=f"{GATEWAY}, endpoint {name}",
                host=config.gateway.sql.host,
                port=endpoint.port,
                key=f"routing.endpoints.{name}.port",
            )


def process_specs(loaded: Loaded, tools: Tools) -> list[ProcessSpec]:
    """The processes, in start order."""
    engines = [*spark_specs(loaded.config, tools), *trino_specs(loaded.config, tools)]
    specs = [_agents(loaded), *engines, _gateway(loaded), _ui(loaded)]
    if loaded.config.profile == "demo" and loaded.config.demo.workload:
        specs.append(_workload(loaded, tuple(spec.name for spec in engines)))
    return specs


def source_root() -> Path:
    """The folder that holds app.py and the packages."""
    return Path(__file__).parents[2]


def job_file(name: str) -> Path:
    """A file of `spark_jobs`.

    Raises:
        NotInstalledError: the package is not there.
    """
    spec = find_spec("spark_jobs")
    if spec is None or spec.origin is None:
        raise NotInstalledError("spark_jobs is not installed; install the project: make setup")
    return Path(spec.origin).parent / f"{name}.py"


def _agents(loaded: Loaded) -> ProcessSpec:
    store = loaded.config.store
    mark = loaded.config.home / "run" / "agents.ready"

    def clear() -> None:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.unlink(missing_ok=True)

    return ProcessSpec(
        name=AGENTS,
        command=_python(loaded, "-m", "agents", "--config", str(loaded.path)),
        ready=_all_of(file_exists(mark), port_open(store.host, store.port)),
        alive=beats(mark, HEARTBEAT_SECONDS),
        ready_seconds=120.0,
        stop_seconds=30.0,
        before_start=clear,
    )


def spark_specs(config: Config, tools: Tools) -> list[ProcessSpec]:
    """The Connect server, when it is managed and has its Java."""
    found = spark_engine(config)
    if found is None or not found[1].managed or tools.spark_java is None:
        return []
    name, engine = found
    return [
        ProcessSpec(
            name=name,
            command=connect_server_command(config, tools.machine, tools.spark_java),
            ready=port_open(engine.host, engine.port),
            alive=port_open(engine.host, engine.port),
            misses=ENGINE_MISSES,
            after=(AGENTS,),
            ready_seconds=ENGINE_READY_SECONDS,
            essential=False,
            url=f"http://{engine.host}:{engine.ui_port}",
        )
    ]


def trino_specs(config: Config, tools: Tools) -> list[ProcessSpec]:
    """Trino, when it is managed and has its Java and its server."""
    found = trino_engine(config)
    if found is None or not found[1].managed:
        return []
    if tools.trino_java is None or tools.trino_server is None:
        return []
    name, engine = found
    return [
        ProcessSpec(
            name=name,
            command=trino_command(config, engine, tools.trino_server, tools.trino_java),
            ready=trino_runs_statements(engine.host, engine.port, config.catalogs),
            alive=http_answers(engine.host, engine.port, "/v1/info", trino_started),
            misses=ENGINE_MISSES,
            after=(AGENTS,),
            ready_seconds=ENGINE_READY_SECONDS,
            essential=False,
            url=f"http://{engine.host}:{engine.port}/ui/",
        )
    ]


def _gateway(loaded: Loaded) -> ProcessSpec:
    gateway = loaded.config.gateway
    return ProcessSpec(
        name=GATEWAY,
        command=_python(loaded, "-m", "lakehouse_core.gateway", "--config", str(loaded.path)),
        ready=http_answers(gateway.host, gateway.admin_port, "/readyz"),
        # Not /readyz: a gateway whose store is away is not mended by a restart.
        alive=http_answers(gateway.host, gateway.admin_port, "/livez"),
        after=(AGENTS,),
        ready_seconds=120.0,
        url=f"http://{gateway.host}:{gateway.admin_port}",
    )


def _ui(loaded: Loaded) -> ProcessSpec:
    ui = loaded.config.ui
    command = _python(
        loaded,
        "-m",
        "streamlit",
        "run",
        str(source_root() / "app.py"),
        f"--server.address={ui.host}",
        f"--server.port={ui.port}",
        "--server.headless=true",
        "--browser.gatherUsageStats=false",
    )
    return ProcessSpec(
        name=UI,
        command=command,
        ready=http_answers(ui.host, ui.port, "/_stcore/health"),
        alive=http_answers(ui.host, ui.port, "/_stcore/health"),
        after=(AGENTS, GATEWAY),
        ready_seconds=120.0,
        url=f"http://{ui.host}:{ui.port}",
    )


def _workload(loaded: Loaded, engines: tuple[str, ...]) -> ProcessSpec:
    start = "from lakehouse_core.cli import main; main()"
    arguments = ("demo", "workload", "--forever", "--config", str(loaded.path))
    return ProcessSpec(
        name=WORKLOAD,
        command=_python(loaded, "-c", start, *arguments),
        after=(AGENTS, GATEWAY, *engines),
        essential=False,
    )


def _python(loaded: Loaded, *arguments: str) -> Command:
    """A Python process of ours: same interpreter, same configuration file, our folder."""
    return Command(
        argv=(sys.executable, *arguments),
        env={"LAKEHELM_CONFIG": str(loaded.path), "PYTHONUNBUFFERED": "1"},
        cwd=source_root(),
    )


def _all_of(*checks: ReadyCheck) -> ReadyCheck:
    def check(pid: int) -> str | None:
        return next((missing for c in checks if (missing := c(pid)) is not None), None)

    return check
