"""The one place where adapters meet services."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.engines.base import Engine
    from lakehouse_core.gateway.intake import Intake
    from lakehouse_core.store.client import StoreClient

Role = Literal["writer", "reader"]


def open_store(config: Config, role: Role = "reader") -> StoreClient:
    """A connection to the telemetry store for any process but its owner.

    Opening does not need the owner to be there: reads say so when it is not, writes are spooled.
    """
    from lakehouse_core.config.secrets import resolve_secret  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.store.client import StoreClient  # noqa: PLC0415 as above

    token = config.store.writer_token if role == "writer" else config.store.reader_token
    return StoreClient(config.store, token=resolve_secret(token), role=role)


def open_engine(config: Config, name: str) -> Engine:
    """The executing adapter of a configured engine.

    Raises:
        ConfigError: no engine has this name.
    """
    from lakehouse_core.domain.query import EngineId  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.engines import registry  # noqa: PLC0415 as above

    return registry.open_engine(EngineId(name), config)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intakes:
    """What understands the payloads that engines push to the gateway."""

    trino: Intake
    reports: Intake


def open_intakes(config: Config) -> Intakes:
    """The collectors' mappings for the gateway's ingest, which does not know collectors."""
    from collectors.reports.intake import ReportIntake  # noqa: PLC0415 keeps --help fast
    from collectors.trino.listener import ListenerSettings, TrinoIntake  # noqa: PLC0415 as above
    from collectors.understanding import Understanding  # noqa: PLC0415 as above
    from lakehouse_core.config.models import TrinoEngine  # noqa: PLC0415 as above
    from lakehouse_core.domain.query import EngineId  # noqa: PLC0415 as above

    engines = [
        ListenerSettings(engine_id=EngineId(name), url=engine.url)
        for name, engine in config.engines.items()
        if isinstance(engine, TrinoEngine) and engine.enabled
    ]
    return Intakes(
        trino=TrinoIntake(engines, Understanding()), reports=ReportIntake(tuple(config.catalogs))
    )
