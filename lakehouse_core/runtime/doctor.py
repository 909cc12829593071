"""`lakehelm doctor`: checks as data, each with what was found and how to fix it."""

from __future__ import annotations

import contextlib
import platform
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import duckdb
from pydantic import SecretStr

from lakehouse_core import duck
from lakehouse_core.catalog.loader import open_catalog
from lakehouse_core.config import load_config
from lakehouse_core.config.catalogs import RestCatalog, SqliteCatalog
from lakehouse_core.config.models import (
    DuckDBEngine,
    HistoryOnlyEngine,
    SparkEngine,
    TrinoEngine,
)
from lakehouse_core.config.secrets import resolve_secret
from lakehouse_core.config.walk import leaves
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import (
    CatalogError,
    CatalogRefusedError,
    ConfigError,
    LakehouseError,
    NotInstalledError,
)
from lakehouse_core.runtime.artifacts import SPARK_JARS, TRINO_SERVER, cached_path, is_cached
from lakehouse_core.runtime.java import find_javas, java_for_spark, java_for_trino
from lakehouse_core.runtime.plan import port_uses
from lakehouse_core.runtime.ports import describe_taken, holder_of, is_free
from lakehouse_core.runtime.preflight import HOME_MIN_BYTES, free_bytes, needed_bytes
from lakehouse_core.runtime.readiness import http_answer, port_answer, trino_started
from lakehouse_core.runtime.rundir import RunDir, processes_of
from lakehouse_core.runtime.spark import spark_engine
from lakehouse_core.runtime.trino import server_dir, trino_engine
from lakehouse_core.views.store_care import newest_backup, recoveries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config, EngineConfig
    from lakehouse_core.runtime.java import Java
    from lakehouse_core.runtime.rundir import RunStatus
    from lakehouse_core.store.client import StoreClient

    OpenStore = Callable[[Config], StoreClient]

Status = Literal["ok", "warn", "fail"]
EXTENSIONS = ("avro", "iceberg", "httpfs", "quack", "tpch", "tpcds")
START = "lakehelm up"
COMFORTABLE_BYTES = 5 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at; `fix` says what to do unless all is well."""

    id: str
    status: Status
    found: str
    fix: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What the checks look at, gathered once."""

    config: Config
    machine: Machine
    javas: tuple[Java, ...]
    run: RunStatus | None  # of a supervisor that is alive
    open_store: OpenStore


def examine(config_file: Path, machine: Machine, open_store: OpenStore) -> list[Check]:
    """Look at everything; a check that fails never keeps another from being made."""
    checks = [check_python()]
    try:
        config = load_config(config_file, machine.variables).config
    except ConfigError as error:
        fix = "Correct the file; `lakehelm config validate` checks it"
        return [*checks, Check(id="config", status="fail", found=str(error), fix=fix)]
    checks.append(Check(id="config", status="ok", found=f"{config_file}: valid"))
    status = RunDir(config.home).read()
    patient = Patient(
        config=config,
        machine=machine,
        javas=find_javas(machine),
        run=status if status is not None and status.is_alive else None,
        open_store=open_store,
    )
    for look in LOOKS:
        checks += look(patient)
    return checks


def check_python() -> Check:
    """Python 3.11, which the pinned packages are for."""
    found = f"{platform.python_version()} in {sys.executable}"
    if platform.python_version_tuple()[:2] == ("3", "11"):
        return Check(id="python", status="ok", found=found)
    return Check(id="python", status="fail", found=found, fix="Use Python 3.11: make setup")


def check_java(patient: Patient) -> Iterator[Check]:
    """A Java for each engine we start; Trino may be done without, Spark builds the lake."""
    home = patient.machine.java_home
    if home is not None and not (home / "bin" / "java").is_file():
        fix = "Point JAVA_HOME to a JDK, or unset it"
        found = f"{home} has no bin/java; it is ignored"
        yield Check(id="java-home", status="warn", found=found, fix=fix)
    spark, trino = spark_engine(patient.config), trino_engine(patient.config)
    if spark is not None and spark[1].managed:
        yield _java("java-spark", patient.javas, java_for_spark, "fail")
    if trino is not None and trino[1].managed:
        yield _java("java-trino", patient.javas, java_for_trino, "warn")


def _java(
    name: str, javas: tuple[Java, ...], pick: Callable[[tuple[Java, ...]], Java], lack: Status
) -> Check:
    try:
        java = pick(javas)
    except NotInstalledError as error:
        what, _, fix = str(error).partition(". ")
        return Check(id=name, status=lack, found=what, fix=fix)
    return Check(id=name, status="ok", found=f"{java.version} in {java.home} ({java.origin})")


def check_artifacts(patient: Patient) -> Iterator[Check]:
    """Downloads in the cache; what is missing comes with the next start."""
    fix = f"`{START}` downloads it, or put it there by hand"
    for artifact in SPARK_JARS:
        path = cached_path(patient.machine, artifact)
        name = f"jar-{artifact.coordinates.name}"
        if is_cached(patient.machine, artifact):
            yield Check(id=name, status="ok", found=f"{path}, verified")
        else:
            state = "not verified yet" if path.exists() else "missing"
            yield Check(id=name, status="warn", found=f"{path}: {state}", fix=fix)
    trino = trino_engine(patient.config)
    if trino is None or not trino[1].managed:
        return
    server = server_dir(patient.machine)
    if server.is_dir():
        yield Check(id="trino-server", status="ok", found=str(server))
    else:
        size = f"{TRINO_SERVER.size_bytes / 1e6:.0f} MB"
        found = f"{server}: not unpacked (the archive has {size})"
        yield Check(id="trino-server", status="warn", found=found, fix=fix)


def check_extensions(_: Patient) -> Iterator[Check]:
    """DuckDB and its extensions, loaded for real."""
    # All at once is quick; one by one only to find the culprit.
    all_load = _extension_fault(EXTENSIONS) is None
    for name in EXTENSIONS:
        fault = None if all_load else _extension_fault((name,))
        if fault is None:
            found = f"loads into DuckDB {duckdb.__version__}"
            yield Check(id=f"duckdb-{name}", status="ok", found=found)
        else:
            fix = "Install the requirements again: make setup"
            yield Check(id=f"duckdb-{name}", status="fail", found=fault, fix=fix)


def _extension_fault(names: tuple[str, ...]) -> str | None:
    try:
        duck.connect(extensions=names).close()
    except (LakehouseError, duckdb.Error) as error:
        return str(error)
    return None


def check_ports(patient: Patient) -> Iterator[Check]:
    """Each port is free, or held by a process of our own run."""
    ours = {p.pid for p in processes_of(patient.run.run_id)} if patient.run else set()
    try:
        uses = port_uses(patient.config)
    except ConfigError as error:
        fix = "Correct the file; `lakehelm route rules` checks it"
        yield Check(id="routing", status="fail", found=str(error), fix=fix)
        return
    for use in uses:
        name = f"port-{use.key}" if use.offset == 0 else f"port-{use.key}+{use.offset}"
        if is_free(use.host, use.port):
            yield Check(id=name, status="ok", found=f"{use.port} is free")
            continue
        holder = holder_of(use.port)
        if holder is not None and holder.pid in ours:
            yield Check(id=name, status="ok", found=f"{use.port} is ours: {holder}")
        else:
            what, _, fix = describe_taken(use).partition(". ")
            yield Check(id=name, status="fail", found=what, fix=fix)


def check_disk(patient: Patient) -> Iterator[Check]:
    """Room for the data and for what is still to be downloaded."""
    trino = trino_engine(patient.config)
    with_trino = trino is not None and trino[1].managed
    places = (
        ("disk-home", patient.config.home, HOME_MIN_BYTES, "LAKEHELM_HOME"),
        (
            "disk-cache",
            patient.machine.cache,
            needed_bytes(patient.machine, with_trino=with_trino),
            "LAKEHELM_CACHE",
        ),
    )
    for name, folder, least, variable in places:
        free = free_bytes(folder)
        status: Status = "fail" if free < least else "ok"
        if status == "ok" and free < COMFORTABLE_BYTES:
            status = "warn"
        fix = None if status == "ok" else f"Make room, or set {variable} to another disk"
        found = f"{free / 2**30:.1f} GiB free for {folder}; {least / 2**30:.1f} GiB are needed"
        yield Check(id=name, status=status, found=found, fix=fix)


def check_catalog(patient: Patient) -> Iterator[Check]:
    """Every catalog can be read."""
    for name, catalog in patient.config.catalogs.items():
        match catalog:
            case SqliteCatalog():
                yield _sqlite_catalog(name, catalog)
            case RestCatalog():
                yield _rest_catalog(name, catalog)


def _sqlite_catalog(name: str, catalog: SqliteCatalog) -> Check:
    path = catalog.path
    if not path.exists():
        found = f"{path} is not there yet"
        fix = f"`{START}` builds the demo lake"
        return Check(id=f"catalog-{name}", status="warn", found=found, fix=fix)
    try:
        with contextlib.closing(open_catalog(name, catalog)) as lake:
            tables = len(lake.tables())
    except CatalogError as error:
        fix = "Restore it from a backup, or move it away to have the demo lake built anew"
        return Check(id=f"catalog-{name}", status="fail", found=str(error), fix=fix)
    return Check(id=f"catalog-{name}", status="ok", found=f"{tables} tables in {path}")


def _rest_catalog(name: str, catalog: RestCatalog) -> Check:
    """It answers and lets us in; counting its tables would be a question each."""
    try:
        with contextlib.closing(open_catalog(name, catalog)) as lake:
            count = len(lake.namespaces())
    except CatalogRefusedError as error:
        fix = f"Set catalogs.{name}.token or catalogs.{name}.credential to somebody who may read"
        return Check(id=f"catalog-{name}", status="fail", found=str(error), fix=fix)
    except CatalogError as error:
        fix = f"Check catalogs.{name}.uri and catalogs.{name}.warehouse, and that it runs"
        return Check(id=f"catalog-{name}", status="fail", found=str(error), fix=fix)
    found = f"{catalog.uri} answers; {count} namespaces"
    return Check(id=f"catalog-{name}", status="ok", found=found)


def check_engines(patient: Patient) -> Iterator[Check]:
    """Every enabled engine answers; an engine that nobody started is no fault."""
    for name, engine in patient.config.engines.items():
        if not engine.enabled:
            continue
        lacking = _lacking_secret(engine)
        if lacking is not None:
            fix = f"Set it, or disable engines.{name}; until then its history is not read"
            yield Check(id=f"engine-{name}", status="fail", found=lacking, fix=fix)
            continue
        missing: str | None
        match engine:
            case DuckDBEngine():
                yield Check(id=f"engine-{name}", status="ok", found="embedded")
                continue
            case HistoryOnlyEngine():
                found = "history only: its history is read, nothing is sent to it"
                yield Check(id=f"engine-{name}", status="ok", found=found)
                continue
            case SparkEngine():
                missing = port_answer(engine.host, engine.port)
            case TrinoEngine():
                missing = http_answer(engine.host, engine.port, "/v1/info", trino_started)
        if missing is None:
            found = f"answers on {engine.host}:{engine.port}"
            yield Check(id=f"engine-{name}", status="ok", found=found)
        elif not engine.managed:
            fix = f"Check engines.{name}.host and engines.{name}.port, and that it runs"
            yield Check(id=f"engine-{name}", status="fail", found=missing, fix=fix)
        else:
            yield _not_there(patient, f"engine-{name}", missing, name)


def _lacking_secret(engine: EngineConfig) -> str | None:
    """What is wrong with the first of an engine's secrets that leads nowhere."""
    for _, value in leaves(engine):
        if isinstance(value, SecretStr):
            try:
                resolve_secret(value)
            except ConfigError as error:
                return str(error)
    return None


def check_store(patient: Patient) -> Iterator[Check]:
    """The store's owner answers, with the token we have."""
    try:
        with patient.open_store(patient.config) as store:
            milliseconds = store.ping()
            damages = recoveries(store, clock=utc_now)
    except ConfigError as error:
        status: Status = "fail" if patient.run else "warn"
        yield Check(id="store", status=status, found=str(error), fix=f"Start it: {START}")
    except LakehouseError as error:
        yield _not_there(patient, "store", str(error), "agents")
    else:
        yield Check(id="store", status="ok", found=f"answers in {milliseconds:.0f} ms")
        for damage in damages[:1]:
            fix = (
                "Look at the disk. What was put aside can be deleted once it is needed no more; "
                "docs/operations.md says how to save rows from it"
            )
            status = "warn" if damage.restored_from else "fail"
            yield Check(id="store-recovery", status=status, found=damage.sentence(), fix=fix)


def check_backup(patient: Patient) -> Iterator[Check]:
    """A store that exists has a backup that is not too old."""
    if not patient.config.store.path.exists():
        return
    newest = newest_backup(patient.config, utc_now)
    if not newest.is_late:
        yield Check(id="backup", status="ok", found=newest.sentence())
        return
    fix = "lakehelm store backup; while Lakehelm runs, the agent `backup` makes one a day"
    yield Check(id="backup", status="warn", found=newest.sentence(), fix=fix)


def check_run(patient: Patient) -> Iterator[Check]:
    """What the supervisor says about its processes."""
    if patient.run is None:
        return
    for process in patient.run.processes:
        if process.state == "skipped" or (process.state == "ready" and process.detail is None):
            continue
        found = f"{process.state}: {process.detail or 'no reason known'}"
        fix = f"Read {process.log}"
        yield Check(id=f"process-{process.name}", status="fail", found=found, fix=fix)


def _not_there(patient: Patient, name: str, found: str, process: str) -> Check:
    """Something that does not answer: expected when nothing was started, a fault otherwise."""
    if patient.run is None:
        return Check(id=name, status="warn", found=found, fix=f"Not running; start it: {START}")
    skipped = [p for p in patient.run.processes if p.name == process and p.state == "skipped"]
    if skipped:
        return Check(id=name, status="warn", found=f"left out: {skipped[0].detail}", fix=None)
    log = patient.config.home / "logs" / f"{process}.log"
    return Check(id=name, status="fail", found=found, fix=f"Read {log}")


LOOKS: tuple[Callable[[Patient], Iterator[Check]], ...] = (
    check_java,
    check_artifacts,
    check_extensions,
    check_ports,
    check_disk,
    check_catalog,
    check_engines,
    check_store,
    check_backup,
    check_run,
)
