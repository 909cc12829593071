"""The catalogs a lake may have: an SQLite file of its own, or an Iceberg REST service."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path  # noqa: TC003 pydantic reads annotations
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from lakehouse_core.config.problems import looks_secret
from lakehouse_core.config.section import Section
from lakehouse_core.config.types import Count, FilePath, SecretRef, SettingText, Text
from lakehouse_core.config.units import Interval

# Properties of Iceberg's REST catalog that have a key of their own here.
_OWN_KEYS = {
    "uri": "uri",
    "warehouse": "warehouse",
    "token": "token",
    "credential": "credential",
    "oauth2-server-uri": "oauth2_server_uri",
    "scope": "scope",
    "prefix": "nothing: the server tells its prefix",
    "type": "type",
}
_SIGNING = "rest.sigv4-enabled"


class SqliteCatalog(Section):
    """The Iceberg JDBC catalog on an SQLite file, warehouse on local files."""

    type: Literal["sqlite"]
    path: FilePath
    warehouse: FilePath

    @property
    def folder(self) -> Path:
        """The folder on this machine that holds the tables."""
        return self.warehouse

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return str(self.path)


class RestCatalog(Section):
    """An Iceberg REST catalog; engines and pyiceberg get the same properties.

    Attributes:
        warehouse: what the server calls it; sent with the question for its configuration.
        warehouse_folder: the folder on this machine below which the tables' files are, if they are:
            DuckDB reads nothing outside of it.
        token: a bearer token that somebody else renews.
        credential: `client_id:client_secret`; tokens are fetched with it from `oauth2_server_uri`,
            or from the catalog itself.
        properties: passed on to pyiceberg and to the engines (`s3.endpoint`, `header.X-…`).
        secret_properties: the same, by reference.
        timeout: how long one answer may take.
        concurrency: questions at a time when all tables are looked at.
    """

    type: Literal["rest"]
    uri: Text
    warehouse: Text | None = None
    warehouse_folder: FilePath | None = None
    token: SecretRef | None = None
    credential: SecretRef | None = None
    oauth2_server_uri: Text | None = None
    scope: Text = "catalog"
    properties: dict[str, SettingText] = {}
    secret_properties: dict[str, SecretRef] = {}
    timeout: Interval = timedelta(seconds=20)
    concurrency: Annotated[Count, Field(le=64)] = 8

    @property
    def folder(self) -> Path | None:
        """The folder on this machine that holds the tables; None when there is none."""
        return self.warehouse_folder

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return self.uri

    @field_validator("uri", "oauth2_server_uri")
    @classmethod
    def _plain_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not value.startswith(("http://", "https://")) or any(sign in value for sign in "@?#"):
            raise ValueError("expected http://… or https://…, without a password or parameters")
        return value.rstrip("/")

    @field_validator("properties")
    @classmethod
    def _nothing_of_ours_and_no_secrets(cls, value: dict[str, str]) -> dict[str, str]:
        for key in value:
            _refuse_own(key)
            if looks_secret(key) or key.lower().endswith("authorization"):
                raise ValueError(f"{key} looks like a secret: give it under secret_properties")
        return value

    @field_validator("secret_properties")
    @classmethod
    def _nothing_of_ours(cls, value: dict[str, SecretRef]) -> dict[str, SecretRef]:
        for key in value:
            _refuse_own(key)
        return value

    @model_validator(mode="after")
    def _one_way_in(self) -> RestCatalog:
        if self.token is not None and self.credential is not None:
            raise ValueError("give either token or credential, not both")
        if self.oauth2_server_uri is not None and self.credential is None:
            raise ValueError("oauth2_server_uri needs credential")
        return self


def _refuse_own(key: str) -> None:
    if key in _OWN_KEYS:
        raise ValueError(f"{key} is set by {_OWN_KEYS[key]}")
    if key == _SIGNING:
        raise ValueError("signed requests (SigV4) are not supported: use a token or a credential")


CatalogConfig = Annotated[SqliteCatalog | RestCatalog, Field(discriminator="type")]
