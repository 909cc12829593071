"""A REST catalog as Spark, Trino, doctor and the settings page are told of it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config import load_config
from lakehouse_core.config.models import TrinoEngine
from lakehouse_core.domain.errors import ConfigError, StoreUnavailableError
from lakehouse_core.runtime.doctor import Check, examine
from lakehouse_core.runtime.spark import connect_server_command, lake_conf
from lakehouse_core.runtime.trino import trino_command
from lakehouse_core.views.settings import connections
from tests.unit.catalog.rest_stand_in import RestStandIn, problem
from tests.unit.runtime.machines import machine
from tests.unit.runtime.test_settings import conf_of, java, properties

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.store.client import StoreClient

pytestmark = pytest.mark.slow

CONFIG = """\
version: 1
profile: prod
home: {home}
catalogs:
  lake:
    type: rest
    uri: {uri}
    warehouse: analytics
    credential: file:{home}/credential
    scope: lake
    properties: {{s3.endpoint: "http://minio:9000", s3.region: eu-central-1}}
    secret_properties: {{s3.secret-access-key: "file:{home}/s3"}}
engines:
  spark: {{type: spark, catalog: lake}}
  trino: {{type: trino, catalog: lake}}
"""
SECRETS = ("me:s3cr3t", "h\\u5h")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "credential").write_text(SECRETS[0])
    (tmp_path / "s3").write_text(SECRETS[1])
    path = tmp_path / "lakehelm.yaml"
    path.write_text(CONFIG.format(home=tmp_path, uri="http://catalog:8181"))
    return path


@pytest.fixture
def config(file: Path) -> Config:
    return load_config(file, {}).config


def test_sparks_settings_are_icebergs(config: Config, tmp_path: Path) -> None:
    conf = lake_conf(config, machine(tmp_path))
    prefix = "spark.sql.catalog.lake"
    assert conf[prefix] == "org.apache.iceberg.spark.SparkCatalog"
    found = {key.removeprefix(f"{prefix}."): conf[key] for key in conf if f"{prefix}." in key}
    assert found == {
        "type": "rest",
        "uri": "http://catalog:8181",
        "warehouse": "analytics",
        "credential": "me:s3cr3t",
        "oauth2-server-uri": "http://catalog:8181/v1/oauth/tokens",
        "scope": "lake",
        "s3.endpoint": "http://minio:9000",
        "s3.region": "eu-central-1",
        "s3.secret-access-key": "h\\u5h",
        "cache-enabled": "false",
    }


def test_no_secret_is_an_argument_of_spark(config: Config, tmp_path: Path) -> None:
    command = connect_server_command(config, machine(tmp_path), java(tmp_path))
    text = " ".join(command.argv)
    assert not any(secret in text for secret in SECRETS)
    assert conf_of(command.argv)["spark.sql.catalog.lake.uri"] == "http://catalog:8181"
    path = tmp_path / "run" / "spark-secrets.conf"
    assert command.argv[command.argv.index("--properties-file") + 1] == str(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert properties(path) == {
        "spark.sql.catalog.lake.credential": "me:s3cr3t",
        "spark.sql.catalog.lake.s3.secret-access-key": "h\\\\u5h",
    }


def test_spark_writes_no_secret_into_its_event_log(config: Config, tmp_path: Path) -> None:
    import re  # noqa: PLC0415 only here

    conf = lake_conf(config, machine(tmp_path))
    hidden = re.compile(conf["spark.redaction.regex"])
    kept = [value for key, value in conf.items() if not hidden.search(key)]
    assert not any(secret in kept for secret in SECRETS)


def test_trino_gets_secrets_by_its_environment(config: Config, tmp_path: Path) -> None:
    engine = config.engines["trino"]
    assert isinstance(engine, TrinoEngine)
    command = trino_command(config, engine, tmp_path / "server", java(tmp_path))
    written = properties(config.home / "trino" / "etc" / "catalog" / "lake.properties")
    assert written == {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": "http://catalog:8181",
        "iceberg.rest-catalog.warehouse": "analytics",
        "iceberg.rest-catalog.security": "OAUTH2",
        "iceberg.rest-catalog.nested-namespace-enabled": "true",
        "iceberg.rest-catalog.case-insensitive-name-matching": "true",
        "iceberg.rest-catalog.oauth2.credential": "${ENV:LAKEHELM_CATALOG_LAKE_CREDENTIAL}",
        "iceberg.rest-catalog.oauth2.server-uri": "http://catalog:8181/v1/oauth/tokens",
        "iceberg.rest-catalog.oauth2.scope": "lake",
        "fs.native-s3.enabled": "true",
        "s3.endpoint": "http://minio:9000",
        "s3.region": "eu-central-1",
        "s3.aws-secret-key": "${ENV:LAKEHELM_CATALOG_LAKE_S3_SECRET_ACCESS_KEY}",
    }
    assert command.env["LAKEHELM_CATALOG_LAKE_CREDENTIAL"] == "me:s3cr3t"
    assert command.env["LAKEHELM_CATALOG_LAKE_S3_SECRET_ACCESS_KEY"] == "h\\u5h"
    assert not any(secret in " ".join(command.argv) for secret in SECRETS)


def test_a_missing_secret_is_named(config: Config, tmp_path: Path) -> None:
    (tmp_path / "credential").unlink()
    with pytest.raises(ConfigError, match=r"file:.*credential: no such file"):
        lake_conf(config, machine(tmp_path))


def test_the_settings_page_shows_where_it_is(config: Config) -> None:
    (shown,) = [one for one in connections(config) if one.name == "lake"]
    assert (shown.kind, shown.address) == ("rest catalog", "http://catalog:8181")


@pytest.fixture
def server() -> Iterator[RestStandIn]:
    server = RestStandIn()
    yield server
    server.close()


def no_store(config: Config) -> StoreClient:
    raise StoreUnavailableError(f"nobody at {config.store.port}")


def checked(file: Path, uri: str) -> Check:
    text = file.read_text().replace("http://catalog:8181", uri)
    file.write_text(text)
    checks = examine(file, machine(file.parent), no_store)
    (found,) = [one for one in checks if one.id == "catalog-lake"]
    return found


def test_doctor_asks_the_catalog(file: Path, server: RestStandIn) -> None:
    server.add(("demo",), "t")
    found = checked(file, server.uri)
    assert (found.status, found.found) == ("ok", f"{server.uri} answers; 1 namespaces")


def test_doctor_tells_a_refusal(file: Path, server: RestStandIn) -> None:
    server.fault = lambda _path, _headers: problem(401, "NotAuthorizedException", "who are you?")
    found = checked(file, server.uri)
    assert found.status == "fail"
    assert "who are you?" in found.found
    assert "catalogs.lake.credential" in (found.fix or "")
    assert "s3cr3t" not in found.found


def test_doctor_tells_a_missing_secret(file: Path, server: RestStandIn) -> None:
    (file.parent / "credential").unlink()
    found = checked(file, server.uri)
    assert found.status == "fail"
    assert "no such file" in found.found


def test_doctor_tells_silence(file: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = checked(file, f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert found.status == "fail"
    assert "does not answer" in found.found
    assert "catalogs.lake.uri" in (found.fix or "")
