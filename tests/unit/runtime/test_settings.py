"""What Spark and Trino are told: the same lake, loopback, nothing downloaded at start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config.models import TrinoEngine
from lakehouse_core.config.secrets import resolve_secret
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.runtime.java import Java
from lakehouse_core.runtime.secrets import ensure_tokens
from lakehouse_core.runtime.spark import (
    connect_server_command,
    spark_conf,
    spark_home,
    spark_submit_command,
)
from lakehouse_core.runtime.trino import LISTENER_FILE, TOKEN_VARIABLE, trino_command
from tests.unit.runtime.machines import machine

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config
    from tests.conftest import DemoConfig


def java(tmp_path: Path) -> Java:
    return Java(home=tmp_path / "jdk", version="25", major=25, origin="test")


def conf_of(argv: tuple[str, ...]) -> dict[str, str]:
    pairs = [argv[i + 1] for i, argument in enumerate(argv) if argument == "--conf"]
    return dict(pair.split("=", 1) for pair in pairs)


def properties(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_spark_sees_the_lake_with_jars_from_the_cache(demo_config: Config, tmp_path: Path) -> None:
    here = machine(tmp_path)
    conf = spark_conf(demo_config, here)
    lake = demo_config.catalogs["lake"]
    assert conf["spark.sql.catalog.lake.uri"] == f"jdbc:sqlite:{lake.path}"
    assert conf["spark.sql.catalog.lake.jdbc.schema-version"] == "V1"
    assert conf["spark.sql.catalog.lake.warehouse"] == f"file:{lake.warehouse}"
    jars = conf["spark.driver.extraClassPath"].split(":")
    assert all(jar.startswith(str(here.cache)) for jar in jars)
    assert "spark.jars.packages" not in conf


def test_the_connect_server_runs_in_the_foreground_on_loopback(
    demo_config: Config, tmp_path: Path
) -> None:
    command = connect_server_command(demo_config, machine(tmp_path), java(tmp_path))
    conf = conf_of(command.argv)
    engine = demo_config.engines["spark"]
    assert command.argv[0] == str(spark_home() / "bin" / "spark-submit")
    assert conf["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert conf["spark.connect.grpc.binding.port"] == str(engine.port)  # type: ignore[union-attr]
    assert conf["spark.ui.port"] == str(engine.ui_port)  # type: ignore[union-attr]
    assert conf["spark.eventLog.compression.codec"] == "zstd"
    assert command.env["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert command.env["JAVA_HOME"] == str(tmp_path / "jdk")


def test_settings_of_the_configuration_have_the_last_word(
    load_demo_config: DemoConfig, tmp_path: Path
) -> None:
    config = load_demo_config(
        tmp_path, LAKEHELM__ENGINES__SPARK__CONF='{"spark.sql.shuffle.partitions": "3"}'
    )
    job = spark_submit_command(
        config, machine(tmp_path), java(tmp_path), tmp_path / "job.py", ("--x", "1")
    )
    assert conf_of(job.argv)["spark.sql.shuffle.partitions"] == "3"
    assert job.argv[-3:] == (str(tmp_path / "job.py"), "--x", "1")


def test_a_lakehouse_without_spark_is_told_so(load_demo_config: DemoConfig, tmp_path: Path) -> None:
    config = load_demo_config(tmp_path, LAKEHELM__ENGINES__SPARK__ENABLED="false")
    with pytest.raises(ConfigError, match="No enabled engine of type spark"):
        spark_conf(config, machine(tmp_path))


def test_trino_sees_the_same_lake_on_loopback(demo_config: Config, tmp_path: Path) -> None:
    engine = demo_config.engines["trino"]
    assert isinstance(engine, TrinoEngine)
    server = tmp_path / "server"
    command = trino_command(demo_config, engine, server, java(tmp_path))
    etc = demo_config.home / "trino" / "etc"
    lake = demo_config.catalogs["lake"]
    catalog = properties(etc / "catalog" / "lake.properties")
    assert catalog["iceberg.jdbc-catalog.connection-url"] == f"jdbc:sqlite:{lake.path}"
    assert catalog["iceberg.jdbc-catalog.catalog-name"] == "lake"
    assert catalog["fs.hadoop.enabled"] == "true"
    assert properties(etc / "node.properties")["node.bind-ip"] == "127.0.0.1"
    config = properties(etc / "config.properties")
    assert config["http-server.http.port"] == str(engine.port)
    assert config["plugin.dir"] == str(server / "plugin")
    assert f"-Xmx{engine.heap // 2**20}m" in command.argv
    assert command.argv[-1] == "io.trino.server.TrinoServer"
    assert command.cwd == demo_config.home / "trino"


def test_trinos_node_keeps_its_id_and_forgets_catalogs_that_are_gone(
    demo_config: Config, tmp_path: Path
) -> None:
    engine = demo_config.engines["trino"]
    assert isinstance(engine, TrinoEngine)
    etc = demo_config.home / "trino" / "etc"
    trino_command(demo_config, engine, tmp_path, java(tmp_path))
    first = properties(etc / "node.properties")["node.id"]
    (etc / "catalog" / "old.properties").write_text("connector.name=memory\n", encoding="utf-8")
    trino_command(demo_config, engine, tmp_path, java(tmp_path))
    assert properties(etc / "node.properties")["node.id"] == first
    assert [path.name for path in (etc / "catalog").iterdir()] == ["lake.properties"]


def test_trino_pushes_its_events_once_the_ingest_has_a_token(
    demo_config: Config, tmp_path: Path
) -> None:
    engine = demo_config.engines["trino"]
    assert isinstance(engine, TrinoEngine)
    etc = demo_config.home / "trino" / "etc"
    without = trino_command(demo_config, engine, tmp_path, java(tmp_path))
    assert "event-listener.config-files" not in properties(etc / "config.properties")
    assert TOKEN_VARIABLE not in without.env
    ensure_tokens(demo_config)
    token = resolve_secret(demo_config.gateway.ingest_token)
    command = trino_command(demo_config, engine, tmp_path, java(tmp_path))
    files = properties(etc / "config.properties")["event-listener.config-files"]
    assert files == str(etc / LISTENER_FILE)
    listener = properties(etc / LISTENER_FILE)
    port = demo_config.gateway.admin_port
    expected = f"http://127.0.0.1:{port}/v1/ingest/trino/trino"
    assert listener["http-event-listener.connect-ingest-uri"] == expected
    assert int(listener["http-event-listener.connect-retry-count"]) > 0
    assert command.env[TOKEN_VARIABLE] == token
    written = [path.read_text() for path in etc.rglob("*") if path.is_file()]
    assert not any(token in text for text in (*written, *command.argv))
