"""The one place where adapters meet services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.engines.base import Engine
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
