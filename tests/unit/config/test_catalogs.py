"""REST catalogs in the configuration: what may be said, what is refused, what is never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config.catalogs import RestCatalog
from lakehouse_core.config.problems import InvalidConfigError
from lakehouse_core.config.show import settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.config.conftest import Load

REST = """\
version: 1
profile: prod
catalogs:
  lake:
    type: rest
    uri: https://catalog.example.org/api/
{more}
engines:
  trino: {{type: trino, catalog: lake}}
"""


def rest(*lines: str) -> str:
    return REST.format(more="\n".join(f"    {line}" for line in lines))


def test_a_rest_catalog_with_everything(load: Load, tmp_path: Path) -> None:
    loaded = load(
        rest(
            "warehouse: analytics",
            "warehouse_folder: /mnt/lake",
            "credential: file:secrets/catalog",
            "oauth2_server_uri: https://id.example.org/token",
            "scope: PRINCIPAL_ROLE:ALL",
            "properties: {s3.endpoint: 'http://minio:9000', s3.path-style-access: true}",
            "secret_properties: {s3.secret-access-key: env:S3_KEY}",
        )
    )
    catalog = loaded.config.catalogs["lake"]
    assert isinstance(catalog, RestCatalog)
    assert catalog.uri == "https://catalog.example.org/api"
    assert catalog.properties == {
        "s3.endpoint": "http://minio:9000",
        "s3.path-style-access": "true",
    }
    assert catalog.credential is not None
    home = loaded.config.home
    assert catalog.credential.get_secret_value() == f"file:{home}/secrets/catalog"
    shown = {one.key: one.value for one in settings(loaded)}
    (secret,) = [key for key in shown if "secret-access-key" in key]
    assert shown[secret] == "env:S3_KEY"
    assert shown["catalogs.lake.timeout"] == "20s"


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        (["token: abc"], ["catalogs.lake.token", "never as a value"]),
        (["token: env:A", "credential: env:B"], ["catalogs.lake", "either token or credential"]),
        (["oauth2_server_uri: https://x"], ["oauth2_server_uri needs credential"]),
        (["properties: {s3.secret-access-key: hush}"], ["secret_properties"]),
        (["properties: {header.Authorization: hush}"], ["secret_properties"]),
        (["properties: {token: hush}"], ["token is set by token"]),
        (["properties: {prefix: x}"], ["the server tells its prefix"]),
        (["properties: {rest.sigv4-enabled: true}"], ["not supported"]),
        (["secret_properties: {s3.secret-access-key: hush}"], ["never as a value"]),
        (["concurrency: 0"], ["catalogs.lake.concurrency"]),
        (["path: x.db"], ["catalogs.lake.path", "unknown key"]),
    ],
)
def test_what_is_refused_is_told_without_secrets(
    load: Load, lines: list[str], parts: list[str]
) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        load(rest(*lines))
    message = str(caught.value)
    assert all(part in message for part in parts), message
    assert "hush" not in message


@pytest.mark.parametrize(
    "uri", ["catalog:8181", "ftp://x", "http://me:hush@catalog", "http://x?token=hush"]
)
def test_an_address_is_plain(load: Load, uri: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"http://… or https://…"):
        load(rest().replace("https://catalog.example.org/api/", uri))


def test_an_unknown_kind_of_catalog_names_the_known_ones(load: Load) -> None:
    with pytest.raises(InvalidConfigError, match=r"catalogs\.lake\.type.*allowed: sqlite, rest"):
        load(rest().replace("type: rest", "type: glue"))


def test_duckdb_needs_the_files_on_this_machine(load: Load) -> None:
    text = rest() + "  local: {type: duckdb, catalog: lake}\n"
    with pytest.raises(InvalidConfigError, match=r"engines\.local\.catalog.*warehouse_folder"):
        load(text)
    load(text.replace("    type: rest", "    type: rest\n    warehouse_folder: /mnt/lake"))
    load(text.replace("{type: duckdb,", "{type: duckdb, enabled: false,"))


def test_the_demo_lake_needs_a_catalog_of_its_own(load: Load) -> None:
    text = rest() + "  spark: {type: spark, catalog: lake}\n"
    load(text)
    with pytest.raises(InvalidConfigError, match=r"catalogs\.lake\.type.*demo lake.*sqlite"):
        load(text.replace("profile: prod", "profile: demo"))
