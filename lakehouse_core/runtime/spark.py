"""Spark: the settings every Spark process of ours shares, and how the Connect server is started.

`spark_conf` is what makes a Spark process see the lake; the Connect server, the demo lake's builder
and every other job use it, with jars from the cache, so that nothing is downloaded at start.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse_core.config.models import SparkEngine
from lakehouse_core.domain.errors import ConfigError, NotInstalledError
from lakehouse_core.runtime.artifacts import SPARK_JARS, cached_path
from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.secrets import write_private
from lakehouse_core.runtime.spark_catalogs import catalog_conf, secret_conf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config
    from lakehouse_core.runtime.java import Java

CONNECT_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
LOOPBACK = "127.0.0.1"


def spark_engine(config: Config) -> tuple[str, SparkEngine] | None:
    """The Spark that `lakehelm up` starts and its id, else the first that is enabled, or None."""
    enabled = [
        (engine_id, engine)
        for engine_id, engine in config.engines.items()
        if isinstance(engine, SparkEngine) and engine.enabled
    ]
    return next((found for found in enabled if found[1].managed), next(iter(enabled), None))


def required_engine(config: Config) -> SparkEngine:
    """The Spark engine that `spark_engine` finds.

    Raises:
        ConfigError: there is none.
    """
    found = spark_engine(config)
    if found is None:
        raise ConfigError(
            "No enabled engine of type spark is configured; add one under `engines` "
            "(config/lakehelm.yaml shows how)"
        )
    return found[1]


def spark_conf(config: Config, machine: Machine) -> dict[str, str]:
    """Settings of the Spark engine's processes; the engine's own `conf` has the last word.

    Raises:
        ConfigError: the configuration has no Spark engine.
    """
    engine = required_engine(config)
    own = {
        "spark.driver.memory": f"{engine.driver_memory // 2**20}m",
        "spark.sql.defaultCatalog": engine.catalog,
    }
    return lake_conf(config, machine) | own | engine.conf


def lake_conf(config: Config, machine: Machine) -> dict[str, str]:
    """Settings of any Spark process on this lake, secrets of its catalogs among them.

    Raises:
        ConfigError: a reference to a secret leads nowhere.
    """
    jars = ":".join(str(cached_path(machine, jar)) for jar in SPARK_JARS)
    conf = {
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.local.dir": str(config.home / "run" / "spark-tmp"),
        "spark.log.level": "WARN",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # The default of 200 suits a cluster; on one machine every small query would pay for it.
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.warehouse.dir": (config.home / "run" / "spark-warehouse").as_uri(),
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
    }
    return conf | catalog_conf(config) | secret_conf(config)


def connect_conf(config: Config, machine: Machine) -> dict[str, str]:
    """Settings of the Connect server: the shared ones, its ports, its UI and its event log."""
    engine = required_engine(config)
    own = {
        "spark.app.name": "lakehelm",
        "spark.connect.grpc.binding.address": engine.host,
        "spark.connect.grpc.binding.port": str(engine.port),
        "spark.ui.enabled": "true",
        "spark.ui.port": str(engine.ui_port),
        # A taken port is said, not evaded: clients and pages know the configured one.
        "spark.port.maxRetries": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": engine.event_log.as_uri(),
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "16m",
        "spark.eventLog.compress": "true",
        "spark.eventLog.compression.codec": "zstd",
    }
    return spark_conf(config, machine) | own | engine.conf


def connect_server_command(config: Config, machine: Machine, java: Java) -> Command:
    """The Connect server in the foreground; scripts on the way `exec`, so the pid stays."""
    engine = required_engine(config)
    for folder in (engine.event_log, config.home / "run" / "spark-tmp"):
        folder.mkdir(parents=True, exist_ok=True)
    argv = (
        str(spark_home() / "bin" / "spark-submit"),
        *_conf_arguments(config, connect_conf(config, machine)),
        "--master",
        engine.master,
        "--class",
        CONNECT_CLASS,
        "spark-internal",
    )
    return Command(argv=argv, env=spark_environment(java))


def spark_submit_command(
    config: Config, machine: Machine, java: Java, job: Path, args: Sequence[str] = ()
) -> Command:
    """A PySpark job on the lake, submitted in client mode."""
    engine = required_engine(config)
    (config.home / "run" / "spark-tmp").mkdir(parents=True, exist_ok=True)
    argv = (
        str(spark_home() / "bin" / "spark-submit"),
        *_conf_arguments(config, spark_conf(config, machine)),
        "--master",
        engine.master,
        str(job),
        *args,
    )
    return Command(argv=argv, env=spark_environment(java))


def spark_environment(java: Java) -> dict[str, str]:
    """Variables of every Spark process: which Java, which Spark, which Python, loopback only."""
    return {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": LOOPBACK,  # also what the UI binds to
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def spark_home() -> Path:
    """The Spark distribution inside the PySpark package.

    Raises:
        NotInstalledError: PySpark is not installed.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise NotInstalledError("PySpark is not installed; install the requirements: make setup")
    return Path(spec.origin).parent


def _conf_arguments(config: Config, conf: Mapping[str, str]) -> list[str]:
    """Settings as arguments; secrets by a file, for anybody here can read our arguments."""
    secret = secret_conf(config)
    open_part = {key: value for key, value in conf.items() if key not in secret}
    arguments = [part for key, value in open_part.items() for part in ("--conf", f"{key}={value}")]
    if not secret:
        return arguments
    path = config.home / "run" / "spark-secrets.conf"
    lines = [f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in secret.items()]
    write_private(path, "".join(lines))
    return [*arguments, "--properties-file", str(path)]
