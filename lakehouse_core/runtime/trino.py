"""Trino: what is kept of its archive, the configuration written for it, how it is started.

Java is started directly with the arguments that Trino's own launcher would use: the launcher adds
a process in between and nothing we need.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse_core.config.models import TrinoEngine
from lakehouse_core.config.secrets import resolve_secret
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.runtime.artifacts import (
    SQLITE_JDBC,
    TRINO_SERVER,
    cache_lock,
    ensure,
)
from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.trino_catalogs import catalog_environment, catalog_properties
from lakehouse_core.runtime.unpack import unpack_part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config
    from lakehouse_core.runtime.java import Java
    from lakehouse_core.runtime.report import Reporter

PARTS = ("bin", "lib", "secrets-plugin", "plugin/iceberg", "plugin/http-event-listener")
MAIN_CLASS = "io.trino.server.TrinoServer"
LISTENER_FILE = "event-listener.properties"
TOKEN_VARIABLE = "LAKEHELM_INGEST_TOKEN"  # noqa: S105 the variable's name, not the token
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 not bound to, but replaced
JVM_FLAGS: tuple[str, ...] = (
    "-XX:+UseG1GC",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-OmitStackTraceInFastThrow",
    "-XX:ReservedCodeCacheSize=256M",
    "-XX:PerMethodRecompilationCutoff=10000",
    "-XX:PerBytecodeRecompilationCutoff=10000",
    "-XX:+EnableDynamicAgentLoading",
    "-Djdk.attach.allowAttachSelf=true",
    "-Djdk.nio.maxCachedBufferSize=2000000",
    "-Dfile.encoding=UTF-8",
    "-Duser.timezone=UTC",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "--add-modules=jdk.incubator.vector",
)


def trino_engine(config: Config) -> tuple[str, TrinoEngine] | None:
    """The Trino that `lakehelm up` starts and its id, else the first that is enabled, or None."""
    enabled = [
        (engine_id, engine)
        for engine_id, engine in config.engines.items()
        if isinstance(engine, TrinoEngine) and engine.enabled
    ]
    return next((found for found in enabled if found[1].managed), next(iter(enabled), None))


def server_dir(machine: Machine) -> Path:
    """Where the unpacked server is; the name tells what went into it."""
    sqlite = SQLITE_JDBC.coordinates
    return (
        machine.cache
        / f"trino-server-{TRINO_SERVER.coordinates.version}+{sqlite.name}-{sqlite.version}"
    )


def ensure_server(machine: Machine, reporter: Reporter) -> Path:
    """Have the server unpacked in the cache, with the SQLite driver beside the Iceberg plugin.

    Raises:
        DownloadError, ChecksumError, NotInstalledError: as `artifacts.ensure`.
    """
    target = server_dir(machine)
    if target.is_dir():
        return target
    archive, sqlite = ensure(machine, (TRINO_SERVER, SQLITE_JDBC), reporter)
    with cache_lock(machine.cache, reporter):
        if target.is_dir():
            return target
        for leftover in machine.cache.glob(".unpack-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        reporter.say(f"Unpacking {archive.name}")
        work = Path(tempfile.mkdtemp(prefix=".unpack-", dir=machine.cache))
        try:
            unpack_part(archive, PARTS, work)
            shutil.copyfile(sqlite, work / "plugin" / "iceberg" / sqlite.name)
            work.chmod(0o755)
            work.replace(target)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    return target


def write_etc(
    config: Config, engine: TrinoEngine, server: Path, *, has_listener: bool = False
) -> Path:
    """Write Trino's configuration below the home folder and return its `etc`.

    It is generated: changes made there by hand are overwritten at the next start.

    Args:
        config: the lakehouse.
        engine: this Trino.
        server: the unpacked server.
        has_listener: whether Trino pushes its query events to our gateway.
    """
    base = config.home / "trino"
    etc = base / "etc"
    (etc / "catalog").mkdir(parents=True, exist_ok=True)
    (base / "data").mkdir(parents=True, exist_ok=True)
    for stale in (etc / "catalog").glob("*.properties"):
        stale.unlink()
    address = "127.0.0.1" if engine.host == "localhost" else engine.host
    _write_properties(
        etc / "node.properties",
        {
            "node.environment": "lakehelm",
            "node.id": str(uuid.uuid5(uuid.NAMESPACE_URL, base.as_uri())),
            "node.data-dir": str(base / "data"),
            "node.bind-ip": address,
            "node.internal-address": address,
        },
    )
    _write_properties(
        etc / "config.properties",
        {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": str(engine.port),
            "http-server.log.enabled": "false",
            "discovery.uri": f"http://{address}:{engine.port}",
            "plugin.dir": str(server / "plugin"),
            # Static catalogs are announced to the nodes: for up to ten seconds after a start that
            # calls itself complete no node is known to have them, and whatever reads them fails.
            "catalog.management": "dynamic",
            "catalog.store": "file",
            # Enough that a collector which was away for half an hour misses nothing.
            "query.max-history": "1000",
            "query.min-expire-age": "30m",
            "web-ui.enabled": "true",
            "web-ui.authentication.type": "fixed",
            "web-ui.user": engine.user,
            # Of a query's stages no row of ours needs anything, and they are most of an event.
            "event.max-output-stage-size": "1kB",
            **({"event-listener.config-files": str(etc / LISTENER_FILE)} if has_listener else {}),
        },
    )
    # Trino looks for this one below the folder it runs in, which is `base`.
    store = {"catalog.config-dir": str(etc / "catalog"), "catalog.read-only": "true"}
    _write_properties(etc / "catalog-store.properties", store)
    if has_listener:
        _write_properties(etc / LISTENER_FILE, _listener(config, engine))
    quiet = dict.fromkeys(("io.trino", "io.airlift", "Bootstrap", "org.hibernate"), "WARN")
    _write_properties(etc / "log.properties", quiet)
    for name, catalog in config.catalogs.items():
        path = etc / "catalog" / f"{name}.properties"
        _write_properties(path, catalog_properties(name, catalog))
    jvm = (f"-Xmx{engine.heap // 2**20}m", *JVM_FLAGS)
    (etc / "jvm.config").write_text("\n".join(jvm) + "\n", encoding="utf-8")
    return etc


def _listener(config: Config, engine: TrinoEngine) -> dict[str, str]:
    """Trino's HTTP event listener; its token comes from the environment, not from a file."""
    engine_id = next(name for name, other in config.engines.items() if other is engine)
    host = _EVERYWHERE.get(config.gateway.host, config.gateway.host)
    place = f"[{host}]" if ":" in host else host
    base = f"http://{place}:{config.gateway.admin_port}"
    prefix = "http-event-listener"
    return {
        "event-listener.name": "http",
        f"{prefix}.connect-ingest-uri": f"{base}/v1/ingest/trino/{engine_id}",
        f"{prefix}.connect-http-headers": f"Authorization: Bearer ${{ENV:{TOKEN_VARIABLE}}}",
        f"{prefix}.log-created": "true",
        f"{prefix}.log-completed": "true",
        # Held for a quarter of an hour while our gateway is away; else Trino gives up at once.
        f"{prefix}.connect-retry-count": "20",
        f"{prefix}.connect-retry-delay": "1s",
        f"{prefix}.connect-backoff-base": "2",
        f"{prefix}.connect-max-delay": "1m",
    }


def _ingest_token(config: Config) -> str | None:
    """What the gateway wants to see; None when there is no such secret (yet)."""
    try:
        return resolve_secret(config.gateway.ingest_token)
    except ConfigError:
        return None


def trino_command(config: Config, engine: TrinoEngine, server: Path, java: Java) -> Command:
    """Trino in the foreground, configured for this lake."""
    token = _ingest_token(config)
    etc = write_etc(config, engine, server, has_listener=token is not None)
    argv = (
        str(java.executable),
        "-cp",
        f"{server / 'lib'}/*",
        *(etc / "jvm.config").read_text(encoding="utf-8").split("\n")[:-1],
        *(f"-D{key}={value}" for key, value in _read_properties(etc / "node.properties").items()),
        f"-Dconfig={etc / 'config.properties'}",
        f"-Dlog.levels-file={etc / 'log.properties'}",
        MAIN_CLASS,
    )
    # Trino writes to relative folders; the cache is shared and stays as it was unpacked.
    env = {"JAVA_HOME": str(java.home), **({TOKEN_VARIABLE: token} if token else {})}
    for name, catalog in config.catalogs.items():
        env |= catalog_environment(name, catalog)
    return Command(argv=argv, env=env, cwd=config.home / "trino")


def _write_properties(path: Path, values: Mapping[str, str]) -> None:
    """A Java properties file; backslashes are the only thing to escape in our values."""
    lines = [f"{key}={value.replace(chr(92), chr(92) * 2)}" for key, value in values.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _read_properties(path: Path) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in path.read_text(encoding="utf-8").splitlines())
    return {key: value.replace(chr(92) * 2, chr(92)) for key, value in pairs}
