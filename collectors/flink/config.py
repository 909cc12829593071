"""What the Flink source needs to know, from the engine's and the collector's sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collectors.rest import CALL_TIMEOUT, Server
from lakehouse_core.domain.query import EngineId

if TYPE_CHECKING:
    from lakehouse_core.config.models import CollectConfig, FlinkEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkSettings:
    """Where the JobManager is, and how many jobs go into one batch."""

    engine_id: EngineId
    server: Server
    batch_jobs: int = 50


def flink_settings(
    engine_id: str, engine: FlinkEngine, collect: CollectConfig, password: str | None
) -> FlinkSettings:
    """The settings of a configured engine; the caller resolves the password's reference."""
    server = Server(
        name="Flink's JobManager",
        url=engine.url,
        user=engine.user,
        password=password,
        call_timeout=min(collect.timeout, CALL_TIMEOUT),
    )
    return FlinkSettings(engine_id=EngineId(engine_id), server=server)
