"""The one place where adapters meet services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
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
