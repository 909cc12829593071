"""What the Athena source needs to know, from the engine's and the collector's sections."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.domain.query import EngineId

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import SecretStr

    from lakehouse_core.config.models import AthenaEngine, CollectConfig

CALL_TIMEOUT = timedelta(seconds=20)
RETENTION = timedelta(days=45)  # how long Athena keeps the history of a query
MOST_IDS = 50  # of one ListQueryExecutions page and of one BatchGetQueryExecution


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsKeys:
    """Keys given in the configuration by reference; `repr` does not show them."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AthenaSettings:
    """Which workgroups, as whom we ask, how patient we are.

    Attributes:
        keys: None: what the AWS tools would take (profile, environment, instance role).
        catalog: what Lakehelm calls the catalog that Athena calls `data_catalog`.
        attempts: how often one call is tried when Athena is busy, with waits that grow.
        page: how many ids one listing asks for.
        batch_queries: how many queries go into one batch.
    """

    engine_id: EngineId
    region: str
    workgroups: tuple[str, ...]
    catalog: str
    data_catalog: str = "AwsDataCatalog"
    profile: str | None = None
    keys: AwsKeys | None = None
    endpoint: str | None = None
    overlap: timedelta = timedelta(minutes=5)
    call_timeout: timedelta = CALL_TIMEOUT
    attempts: int = 5
    page: int = MOST_IDS
    batch_queries: int = 500

    @property
    def place(self) -> str:
        """Where Athena is asked."""
        return self.endpoint or f"https://athena.{self.region}.amazonaws.com"


def athena_settings(
    engine_id: str,
    engine: AthenaEngine,
    collect: CollectConfig,
    resolve: Callable[[SecretStr], str],
) -> AthenaSettings:
    """The settings of a configured engine; `resolve` turns the reference of a secret into it."""
    return AthenaSettings(
        engine_id=EngineId(engine_id),
        region=engine.region,
        workgroups=engine.workgroups,
        catalog=engine.catalog,
        data_catalog=engine.data_catalog,
        profile=engine.profile,
        keys=_keys(engine, resolve),
        endpoint=engine.endpoint,
        overlap=collect.overlap,
        call_timeout=min(collect.timeout, CALL_TIMEOUT),
    )


def _keys(engine: AthenaEngine, resolve: Callable[[SecretStr], str]) -> AwsKeys | None:
    if engine.access_key_id is None or engine.secret_access_key is None:
        return None
    return AwsKeys(
        access_key_id=resolve(engine.access_key_id),
        secret_access_key=resolve(engine.secret_access_key),
        session_token=resolve(engine.session_token) if engine.session_token else None,
    )
