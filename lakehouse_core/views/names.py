"""From what a person typed to the id of a table."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import NotFoundError

if TYPE_CHECKING:
    from lakehouse_core.store.port import TelemetryStore

TABLE_IDS_SQL = "SELECT table_id FROM lake_table WHERE dropped_at IS NULL ORDER BY table_id"

MOST_USED_SQL = """
SELECT table_id FROM lake_table JOIN (
  SELECT template_id, table_name AS table_id FROM template_table
  UNION ALL SELECT template_id, table_name FROM column_usage) USING (table_id)
WHERE dropped_at IS NULL
GROUP BY table_id ORDER BY count(DISTINCT template_id) DESC, table_id LIMIT 1
"""


def table_ids(store: TelemetryStore) -> tuple[str, ...]:
    """All tables of the lake that still exist."""
    return tuple(store.read(TABLE_IDS_SQL).column("table_id").to_pylist())


def most_used_table(store: TelemetryStore) -> str | None:
    """The table that most templates use: what a page about use opens with; None without any."""
    found = store.read(MOST_USED_SQL).to_pylist()
    return str(found[0]["table_id"]) if found else None


def resolve_table(store: TelemetryStore, name: str) -> str:
    """The table's id: `lake.demo.events`, or its end (`demo.events`) when that is unambiguous.

    Raises:
        NotFoundError: no such table; names the nearest.
    """
    known = table_ids(store)
    if name in known:
        return name
    ending = [table_id for table_id in known if table_id.endswith(f".{name}")]
    if len(ending) == 1:
        return ending[0]
    if not known:
        hint = "No table was collected yet: run `lakehelm collect --once iceberg`."
    else:
        last = name.rpartition(".")[2]
        namesakes = [table_id for table_id in known if table_id.endswith(f".{last}")]
        near = ending or namesakes[:3] or get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else "See `lakehelm tables`."
    raise NotFoundError(f"Table {name!r} is not known. {hint}")
