"""What the Trino source needs to know, from the engine's and the collector's sections."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.domain.query import EngineId

if TYPE_CHECKING:
    from lakehouse_core.config.models import CollectConfig, TrinoEngine


CALL_TIMEOUT = timedelta(seconds=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrinoSettings:
    """Where the coordinator is, as whom we ask, how patient we are.

    Attributes:
        call_timeout: how long one request may take in all.
        batch_queries: how many queries go into one batch.
    """

    engine_id: EngineId
    url: str
    user: str
    password: str | None = None
    overlap: timedelta = timedelta(minutes=5)
    call_timeout: timedelta = CALL_TIMEOUT
    batch_queries: int = 200


def trino_settings(
    engine_id: str, engine: TrinoEngine, collect: CollectConfig, password: str | None
) -> TrinoSettings:
    """The settings of a configured engine; the caller resolves the password's reference."""
    return TrinoSettings(
        engine_id=EngineId(engine_id),
        url=engine.url,
        user=engine.user,
        password=password,
        overlap=collect.overlap,
        call_timeout=min(collect.timeout, CALL_TIMEOUT),
    )
