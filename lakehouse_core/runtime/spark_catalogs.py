"""Catalogs of the lake as Spark wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.catalog.properties import open_properties, secret_properties
from lakehouse_core.config.catalogs import RestCatalog, SqliteCatalog

if TYPE_CHECKING:
    from lakehouse_core.config.catalogs import CatalogConfig
    from lakehouse_core.config.models import Config

# Spark's own pattern does not know Iceberg's names; what matches is in no event log and no page.
_REDACTED = "(?i)secret|password|token|credential|access[.-]?key|authorization"


def catalog_conf(config: Config) -> dict[str, str]:
    """Settings of all catalogs, without secrets."""
    conf: dict[str, str] = {}
    for name, catalog in config.catalogs.items():
        prefix = _prefix(name)
        conf |= {
            prefix: "org.apache.iceberg.spark.SparkCatalog",
            # Iceberg's cache would hide other engines' commits from a session that stays busy.
            f"{prefix}.cache-enabled": "false",
        }
        conf |= {f"{prefix}.{key}": value for key, value in _properties(catalog).items()}
    if any(isinstance(one, RestCatalog) for one in config.catalogs.values()):
        conf["spark.redaction.regex"] = _REDACTED
    return conf


def secret_conf(config: Config) -> dict[str, str]:
    """The secret settings of all catalogs: for files of our own (mode 0600), not for arguments.

    Raises:
        ConfigError: a reference leads nowhere.
    """
    return {
        f"{_prefix(name)}.{key}": value
        for name, catalog in config.catalogs.items()
        if isinstance(catalog, RestCatalog)
        for key, value in secret_properties(catalog).items()
    }


def _prefix(name: str) -> str:
    return f"spark.sql.catalog.{name}"


def _properties(catalog: CatalogConfig) -> dict[str, str]:
    match catalog:
        case SqliteCatalog():
            return {
                "type": "jdbc",
                "uri": f"jdbc:sqlite:{catalog.path}",
                "jdbc.schema-version": "V1",
                "warehouse": f"file:{catalog.warehouse}",
            }
        case RestCatalog():
            return {"type": "rest", **open_properties(catalog)}
