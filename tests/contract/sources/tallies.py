"""What a store holds, in the few figures that show a loss or a double."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.store.tables import TABLES
from tests.contract.sources.worlds import BYTES

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore
    from tests.contract.sources.worlds import World

TOTALS = """
SELECT count(*) AS queries, count(DISTINCT (engine_id, query_id)) AS keys,
  sum(bytes_scanned)::BIGINT AS bytes, count(*) FILTER (status = 'finished') AS finished
FROM query_event
"""

HASH = "SELECT count(*) AS rows, coalesce(bit_xor(hash(one)), 0) AS hash FROM {0} AS one"


def totals(store: OwnerStore) -> tuple[int, int, int, int]:
    """Rows, keys, bytes scanned, and how many queries have ended."""
    row = store.read(TOTALS).to_pylist()[0]
    return (row["queries"], row["keys"], row["bytes"] or 0, row["finished"])


def complete(world: World, count: int) -> tuple[int, int, int, int]:
    """The totals when so many queries were taken, each once and to its end."""
    return (count, count, count * getattr(world, "bytes_per_query", BYTES), count)


def content(store: OwnerStore) -> dict[str, tuple[int, int]]:
    """Rows and a hash of every table, but for how far the source was read."""
    return {
        name: tuple(store.read(HASH.format(name)).to_pylist()[0].values())
        for name in TABLES
        if name != "watermark"
    }


def letters(store: OwnerStore) -> list[str]:
    """The reasons of all dead letters."""
    found = store.read("SELECT reason FROM dead_letter ORDER BY reason").column("reason")
    return [str(reason) for reason in found.to_pylist()]
