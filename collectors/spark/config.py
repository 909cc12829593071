"""What the Spark source needs to know, from the engine's and the collector's sections."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse_core.domain.query import EngineId

if TYPE_CHECKING:
    from lakehouse_core.config.models import SparkEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLogSettings:
    """Where the event logs are, and how they are read.

    Attributes:
        catalog: catalog of unqualified tables until the log says otherwise.
        one_at_a_time: only one application writes into the folder at a time (a server that we
            manage), so a newer one means that the older one is over, even if it was killed.
        batch_bytes: how much decompressed log goes into one batch.
        remembered_apps: how many finished applications the position names.
        open_queries: how many unfinished queries the position may hold.
    """

    engine_id: EngineId
    folder: Path
    catalog: str | None = None
    one_at_a_time: bool = False
    batch_bytes: int = 4 * 2**20
    remembered_apps: int = 500
    open_queries: int = 2_000


def event_log_settings(engine_id: str, engine: SparkEngine) -> EventLogSettings:
    """The settings of a configured engine; a log needs no overlap."""
    return EventLogSettings(
        engine_id=EngineId(engine_id),
        folder=Path(engine.event_log),
        catalog=engine.catalog,
        one_at_a_time=engine.managed,
    )
