"""What the Spark source needs to know, from the engine's and the collector's sections."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from collectors.rest import CALL_TIMEOUT, Server
from lakehouse_core.domain.query import EngineId

if TYPE_CHECKING:
    from lakehouse_core.config.models import CollectConfig, SparkEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLogSettings:
    """Where the event logs are, and how they are read.

    Attributes:
        catalog: catalog of unqualified tables until the log says otherwise.
        ui_url: of the server that writes them, when it is one that we manage.
        one_at_a_time: only one application writes into the folder at a time (a server that we
            manage), so a newer one means that the older one is over, even if it was killed.
        batch_bytes: how much decompressed log goes into one batch.
        remembered_apps: how many finished applications the position names.
        open_queries: how many unfinished queries the position may hold.
    """

    engine_id: EngineId
    folder: Path
    catalog: str | None = None
    ui_url: str | None = None
    one_at_a_time: bool = False
    batch_bytes: int = 4 * 2**20
    remembered_apps: int = 500
    open_queries: int = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryServerSettings:
    """Where the history server is.

    Attributes:
        catalog: catalog of unqualified tables.
        page_executions: how many executions one request lists.
        batch_queries: how many queries go into one batch.
    """

    engine_id: EngineId
    server: Server
    catalog: str | None = None
    page_executions: int = 200
    batch_queries: int = 200


def history_server_settings(
    engine_id: str, engine: SparkEngine, url: str, collect: CollectConfig
) -> HistoryServerSettings:
    """The settings of a configured engine whose history is read from a server."""
    server = Server(
        name="Spark's history server",
        url=url.rstrip("/"),
        call_timeout=min(collect.timeout, CALL_TIMEOUT),
    )
    return HistoryServerSettings(
        engine_id=EngineId(engine_id), server=server, catalog=engine.catalog
    )


def event_log_settings(engine_id: str, engine: SparkEngine) -> EventLogSettings:
    """The settings of a configured engine; a log needs no overlap."""
    return EventLogSettings(
        engine_id=EngineId(engine_id),
        folder=Path(engine.event_log),
        catalog=engine.catalog,
        ui_url=engine.ui_url if engine.managed else None,
        one_at_a_time=engine.managed,
    )
