"""The store as everybody sees it: the owner in its own process, everyone else through Quack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


class TelemetryStore(Protocol):
    """Reads and idempotent writes; both sides of the wire implement it."""

    def read(self, sql: str, **params: Any) -> pa.Table:
        """Run one SELECT with named parameters (`$name`) and return all of it.

        Raises:
            StoreUnavailableError: the owner cannot be reached.
            StoreError: the statement is wrong; names it.
        """
        ...

    def upsert(self, table: str, rows: pa.Table) -> int:
        """Insert or replace rows by the table's key (`TABLES`); durable when it returns.

        Returns:
            How many rows were new or different; 0 when the batch had been seen before.
        """
        ...

    def close(self) -> None:
        """Release connections; what was acknowledged stays."""
        ...


class TogetherStore(TelemetryStore, Protocol):
    """A store that also writes several tables as one."""

    def upsert_together(self, batches_of: Mapping[str, pa.Table]) -> int:
        """Upsert into several tables, in their order; returns how many rows were new or different.

        The owner does it in one transaction. A client has none of its own: it upserts into one
        table after the other.
        """
        ...
