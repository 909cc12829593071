"""What the Snowflake source needs to know, from the engine's and the collector's sections."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.domain.query import EngineId

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import SecretStr

    from lakehouse_core.config.models import CollectConfig, SnowflakeEngine

RETENTION = timedelta(days=365)  # of the ACCOUNT_USAGE views
# The views are late by up to 45 minutes (queries), 3 hours (metering, access) and 8 hours
# (attribution); three days leave room for a bad day at Snowflake.
OVERLAP = timedelta(days=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """One of the three ways in; `repr` does not show them."""

    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    passphrase: str | None = field(default=None, repr=False)
    oauth_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnowflakeSettings:
    """Which account, as whom we ask, how far back, how patient we are.

    Attributes:
        url: where the account answers.
        catalog: what Lakehelm calls the catalog that is `lake_database` in Snowflake.
        backfill: how far back the first pull reads.
        login_timeout: how long signing in and one request may take.
        statement_timeout: how long one of our statements may run.
        batch_rows: how many rows go into one batch.
        span_hours: how many hours one statement reads at most.
    """

    engine_id: EngineId
    account: str
    user: str
    url: str
    host: str | None
    port: int
    scheme: str
    credentials: Credentials
    catalog: str
    lake_database: str | None = None
    role: str | None = None
    warehouse: str | None = None
    database: str = "SNOWFLAKE"
    schema: str = "ACCOUNT_USAGE"
    overlap: timedelta = OVERLAP
    backfill: timedelta = timedelta(days=30)
    login_timeout: timedelta = timedelta(seconds=20)
    statement_timeout: timedelta = timedelta(minutes=2)
    batch_rows: int = 10_000
    span_hours: int = 24

    @property
    def who(self) -> str:
        """As whom we ask."""
        return f"user {self.user}" + (f" with role {self.role}" if self.role else "")


def snowflake_settings(
    engine_id: str,
    engine: SnowflakeEngine,
    collect: CollectConfig,
    resolve: Callable[[SecretStr], str],
) -> SnowflakeSettings:
    """The settings of a configured engine; `resolve` turns the reference of a secret into it."""

    def secret(reference: SecretStr | None) -> str | None:
        return None if reference is None else resolve(reference)

    return SnowflakeSettings(
        engine_id=EngineId(engine_id),
        account=engine.account,
        user=engine.user,
        url=engine.url,
        host=engine.host,
        port=engine.port,
        scheme=engine.scheme,
        credentials=Credentials(
            password=secret(engine.password),
            private_key=secret(engine.private_key),
            passphrase=secret(engine.private_key_passphrase),
            oauth_token=secret(engine.oauth_token),
        ),
        catalog=engine.catalog,
        lake_database=engine.lake_database,
        role=engine.role,
        warehouse=engine.warehouse,
        database=engine.database,
        schema=engine.usage_schema,
        # The default of all sources is minutes: too short for views that are late by hours.
        overlap=max(collect.overlap, OVERLAP),
        backfill=engine.backfill,
        login_timeout=min(collect.timeout, timedelta(seconds=20)),
        statement_timeout=collect.timeout,
    )
