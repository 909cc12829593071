"""Which columns the lake's tables have, as far as they were collected."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakehouse_core.store.port import TelemetryStore

COLUMNS_SQL = """
SELECT table_id, columns FROM lake_table
WHERE dropped_at IS NULL AND len(columns) > 0 ORDER BY table_id
"""


def known_columns(store: TelemetryStore) -> dict[str, list[str]]:
    """Table → its columns, in the order of its schema.

    Raises:
        StoreUnavailableError: the owner of the store cannot be reached.
    """
    return {row["table_id"]: row["columns"] for row in store.read(COLUMNS_SQL).to_pylist()}
