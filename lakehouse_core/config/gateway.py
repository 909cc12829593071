"""The gateway's section: the admin HTTP, the ingest, and the SQL port with who may use it."""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, SecretStr, model_validator

from lakehouse_core.config.section import Section
from lakehouse_core.config.types import FilePath, Port, SecretRef, Text
from lakehouse_core.config.units import ByteSize, Interval


def is_loopback(host: str) -> bool:
    """Whether a listener on this host can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class JwtConfig(Section):
    """Bearer tokens: how they are checked, and what in them says who it is.

    Attributes:
        key: the shared secret (HS…) or the public key in PEM (RS…, ES…).
        user_claim: the claim that holds the user's name.
        groups_claim: the claim that holds a list of groups.
        role_claim: the claim that holds the role.
    """

    key: SecretRef
    algorithm: Literal["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "ES256", "ES384"] = (
        "RS256"
    )
    issuer: Text | None = None
    audience: Text | None = None
    user_claim: Text = "sub"
    groups_claim: Text = "groups"
    role_claim: Text = "role"


class SqlConfig(Section):
    """The port that SQL clients connect to, in Trino's protocol.

    Attributes:
        postgres_port: where PostgreSQL's clients connect; null: nowhere. Users, tokens and TLS are
            those of the other port.
        postgres_connections: how many of them at once; more are told that there is no room.
        public_url: what clients call it, when a proxy stands in front.
        users: file of users and password hashes, one per line (see docs/gateway.md).
        jwt: bearer tokens.
        tls_certificate: PEM file; with it the port speaks HTTPS.
        behind_tls_proxy: a proxy in front speaks TLS, so that passwords may come over plain HTTP.
        max_statement: longer statements are refused.
        page_bytes: about how much of a result one answer carries.
        buffer_bytes: how much of one result is held for a client that reads slowly.
        abandon_after: a query nobody asks for is stopped after this time.
        gone_after: a query whose client hung up is stopped after this time.
    """

    enabled: bool = True
    host: Text = "127.0.0.1"
    port: Port = 8095
    postgres_port: Port | None = 8096
    postgres_connections: Annotated[int, Field(ge=1)] = 4_000
    public_url: Text | None = None
    users: FilePath | None = None
    jwt: JwtConfig | None = None
    tls_certificate: FilePath | None = None
    tls_key: FilePath | None = None
    behind_tls_proxy: bool = False
    max_statement: ByteSize = 2**20
    page_bytes: Annotated[ByteSize, Field(ge=2**10)] = 2 * 2**20
    buffer_bytes: Annotated[ByteSize, Field(ge=2**16)] = 16 * 2**20
    abandon_after: Interval = timedelta(minutes=5)
    gone_after: Interval = timedelta(seconds=10)

    @property
    def asks_who(self) -> bool:
        """Whether clients must prove who they are."""
        return self.users is not None or self.jwt is not None

    @property
    def url(self) -> str:
        """Where clients reach it."""
        scheme = "https" if self.tls_certificate else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url or f"{scheme}://{host}:{self.port}"

    @model_validator(mode="after")
    def _safe(self) -> SqlConfig:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together: give both or none")
        if is_loopback(self.host):
            return self
        if not self.asks_who:
            raise ValueError(
                f"host {self.host} can be reached from other machines, and nobody is asked who he "
                "is: set users or jwt, or listen on 127.0.0.1"
            )
        if self.tls_certificate is None and not self.behind_tls_proxy:
            raise ValueError(
                f"host {self.host} can be reached from other machines, and passwords would travel "
                "in the clear: set tls_certificate and tls_key, or behind_tls_proxy: true when a "
                "proxy in front speaks TLS"
            )
        return self


class GatewayConfig(Section):
    """Where the gateway listens, and what it takes from engines that push their events.

    Attributes:
        host: of the admin port. Other machines may ask it about the router only with a password or
            token of the SQL port, so that it is on loopback where there are none.
    """

    host: Text = "127.0.0.1"
    admin_port: Port = 8090
    ingest_token: SecretRef = SecretStr("file:secrets/ingest")
    ingest_max_body: ByteSize = 32 * 2**20
    ingest_memory: ByteSize = 256 * 2**20
    sql: SqlConfig = SqlConfig()

    @model_validator(mode="after")
    def _safe(self) -> GatewayConfig:
        if self.sql.enabled and not self.sql.asks_who and not is_loopback(self.host):
            raise ValueError(
                f"host {self.host} can be reached from other machines, and nobody is asked who he "
                "is before he sees and reloads the router's rules: set sql.users or sql.jwt, or "
                "listen on 127.0.0.1"
            )
        return self
