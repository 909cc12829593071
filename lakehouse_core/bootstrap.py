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

    Raises:
        StoreUnavailableError: nothing was ever started here; says what to start.
        ConfigError: the token cannot be read.
    """
    from lakehouse_core.config.secrets import resolve_secret  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.domain.errors import (  # noqa: PLC0415 as above
        ConfigError,
        StoreUnavailableError,
    )
    from lakehouse_core.store.client import StoreClient  # noqa: PLC0415 as above

    reference = config.store.writer_token if role == "writer" else config.store.reader_token
    try:
        token = resolve_secret(reference)
    except ConfigError as error:
        # The first start makes the store and its token files; before it, neither is there.
        is_file = reference.get_secret_value().startswith("file:")
        if is_file and not config.store.path.exists():
            raise StoreUnavailableError(
                f"Lakehelm does not run, and never did in {config.home}: start it with "
                "`lakehelm up` (it makes the store and its token)"
            ) from error
        raise
    return StoreClient(config.store, token=token, role=role)


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
