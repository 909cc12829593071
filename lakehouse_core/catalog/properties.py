"""Properties of a REST catalog under Iceberg's names, for pyiceberg and for engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.config.secrets import resolve_secret

if TYPE_CHECKING:
    from lakehouse_core.config.catalogs import RestCatalog


def open_properties(config: RestCatalog) -> dict[str, str]:
    """Those that anybody may see."""
    properties = {**config.properties, "uri": config.uri}
    if config.warehouse is not None:
        properties["warehouse"] = config.warehouse
    if config.credential is not None:
        # The catalog's own endpoint, which clients still assume but warn about when it is not said.
        own = f"{config.uri}/v1/oauth/tokens"
        properties["oauth2-server-uri"] = config.oauth2_server_uri or own
        properties["scope"] = config.scope
    return properties


def secret_properties(config: RestCatalog) -> dict[str, str]:
    """Those that must reach no log, command line or file that others can read.

    Raises:
        ConfigError: a reference leads nowhere.
    """
    refs = dict(config.secret_properties)
    if config.token is not None:
        refs["token"] = config.token
    if config.credential is not None:
        refs["credential"] = config.credential
    return {key: resolve_secret(ref) for key, ref in refs.items()}


def rest_properties(config: RestCatalog) -> dict[str, str]:
    """All of them.

    Raises:
        ConfigError: a reference leads nowhere.
    """
    return open_properties(config) | secret_properties(config)
