"""Catalogs of the lake as Trino's Iceberg connector wants them; secrets come by environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.catalog.properties import open_properties, secret_properties
from lakehouse_core.config.catalogs import RestCatalog, SqliteCatalog

if TYPE_CHECKING:
    from lakehouse_core.config.catalogs import CatalogConfig

_REST = "iceberg.rest-catalog"
# Iceberg's name of a property and Trino's; others have no equal and are left out.
_OPEN = {
    "uri": f"{_REST}.uri",
    "warehouse": f"{_REST}.warehouse",
    "oauth2-server-uri": f"{_REST}.oauth2.server-uri",
    "scope": f"{_REST}.oauth2.scope",
    "s3.endpoint": "s3.endpoint",
    "s3.region": "s3.region",
    "client.region": "s3.region",
    "s3.path-style-access": "s3.path-style-access",
}
_SECRET = {
    "token": f"{_REST}.oauth2.token",
    "credential": f"{_REST}.oauth2.credential",
    "s3.access-key-id": "s3.aws-access-key",
    "s3.secret-access-key": "s3.aws-secret-key",
}
_DELEGATION = "header.X-Iceberg-Access-Delegation"


def catalog_properties(name: str, catalog: CatalogConfig) -> dict[str, str]:
    """The properties file of one catalog; a secret stands there as the name of a variable."""
    match catalog:
        case SqliteCatalog():
            return {
                "connector.name": "iceberg",
                "iceberg.catalog.type": "jdbc",
                "iceberg.jdbc-catalog.driver-class": "org.sqlite.JDBC",
                "iceberg.jdbc-catalog.connection-url": f"jdbc:sqlite:{catalog.path}",
                "iceberg.jdbc-catalog.catalog-name": name,
                "iceberg.jdbc-catalog.default-warehouse-dir": f"file:{catalog.warehouse}",
                "iceberg.jdbc-catalog.schema-version": "V1",
                "fs.hadoop.enabled": "true",
            }
        case RestCatalog():
            return _rest(name, catalog)


def catalog_environment(name: str, catalog: CatalogConfig) -> dict[str, str]:
    """The variables that the properties file of one catalog names.

    Raises:
        ConfigError: a reference leads nowhere.
    """
    if not isinstance(catalog, RestCatalog):
        return {}
    found = secret_properties(catalog)
    return {_variable(name, key): value for key, value in found.items() if key in _SECRET}


def _rest(name: str, catalog: RestCatalog) -> dict[str, str]:
    has_identity = catalog.token is not None or catalog.credential is not None
    given = open_properties(catalog)
    secret = [*catalog.secret_properties]
    secret += [key for key in ("token", "credential") if getattr(catalog, key) is not None]
    on_s3 = any(key.startswith("s3.") for key in (*given, *secret))
    properties = {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        f"{_REST}.security": "OAUTH2" if has_identity else "NONE",
        f"{_REST}.nested-namespace-enabled": "true",
        # Names are as the catalog writes them for everybody else.
        f"{_REST}.case-insensitive-name-matching": "true",
        ("fs.native-s3.enabled" if on_s3 else "fs.hadoop.enabled"): "true",
    }
    if given.get(_DELEGATION) == "vended-credentials":
        properties[f"{_REST}.vended-credentials-enabled"] = "true"
    properties |= {_OPEN[key]: value for key, value in given.items() if key in _OPEN}
    properties |= {
        _SECRET[key]: f"${{ENV:{_variable(name, key)}}}" for key in secret if key in _SECRET
    }
    return properties


def _variable(name: str, key: str) -> str:
    words = f"LAKEHELM_CATALOG_{name}_{key}".upper()
    return "".join(sign if sign.isalnum() else "_" for sign in words)
