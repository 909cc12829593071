"""Exporting what is new or different in the store, set by set, never row by row.

`collected_at` moves when a row changes, but not in the order in which rows are written: a batch may
wait in a spool. So each export looks back over an overlap and leaves out what it has seen, told by
the hash of the whole row. Whether there is anything to do is one aggregate over the overlap, whose
answer was kept from last time.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse_core.pipeline.landing import Export, Part
from lakehouse_core.store.literals import identifier
from lakehouse_core.store.schema import schema_of

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.pipeline.landing import Landing
    from lakehouse_core.store.port import TelemetryStore

CHUNK_ROWS = 200_000
ASKED_BY_HASH = 5_000
_HASH = "row_hash"

_SINCE = Template("""FROM $table
WHERE $only AND ($$since::TIMESTAMPTZ IS NULL OR $changed >= $$since::TIMESTAMPTZ)""")
_DIGEST = Template("SELECT count(*) AS rows, bit_xor($hash) AS digest $source")
_HASHES = Template("SELECT $hash AS row_hash, $changed AS changed_at $source")
_BY_HASH = Template(
    "SELECT $columns$added, $hash AS row_hash $source "
    "AND $hash IN (SELECT unnest($$hashes::UBIGINT[]))"
)
_BY_CHUNK = Template("""SELECT $columns$added, $hash AS row_hash $source
AND hash($key) % $$chunks::UBIGINT = $$chunk::UBIGINT""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A store table that is exported.

    Attributes:
        name: the table.
        key: columns whose hash spreads the rows over chunks.
        day: the time whose day the rows are partitioned by.
        changed: the time that moves when a row changes; None: all rows are looked at.
        added: SQL of columns that are exported beside the table's own.
        only: SQL of which rows are exported.
    """

    name: str
    key: tuple[str, ...]
    day: str
    changed: str | None = None
    added: str = ""
    only: str = "true"


# As `spark_jobs.pipeline.texts.text_id` has it: hashing texts here costs a fraction of what it
# costs there.
_TEXT_ID = """,
CASE WHEN sql_text <> '' AND dialect IS NOT NULL THEN left(sha256(concat_ws(chr(31),
  sql_text, dialect, coalesce(default_catalog, ''), coalesce(default_namespace, ''))), 32)
END AS text_id"""

EXPORTED = (
    Exported(
        name="query_event",
        key=("engine_id", "query_id"),
        day="submitted_at",
        changed="collected_at",
        added=_TEXT_ID,
    ),
    Exported(name="snapshot_commit", key=("table_id", "snapshot_id"), day="committed_at"),
    # Of an hour that goes on the charges change by the minute: that is no reason to start Spark.
    Exported(
        name="charge",
        key=("hour_at", "engine_id", "meter"),
        day="hour_at",
        changed="computed_at",
        only="epoch_us(hour_at) // 3600000000 < epoch_us(now()) // 3600000000",
    ),
    Exported(
        name="query_attribution",
        key=("engine_id", "query_id"),
        day="started_at",
        changed="collected_at",
    ),
)


def is_same(store: TelemetryStore, cursor: dict[str, Any]) -> bool:
    """Whether the store holds what it held when the cursor was made, as far as exports look."""
    return all(_digest(store, table, cursor.get(table.name)) for table in EXPORTED)


def export(
    store: TelemetryStore,
    landing: Landing,
    after: Export | None,
    overlap: timedelta,
    clock: Clock,
) -> Export | None:
    """Write what is new since the last export into the landing folder; None when nothing is.

    Args:
        store: where the rows are.
        landing: where they go.
        after: the export to go on from; None exports everything there is.
        overlap: how far to look back for rows that were written late.
        clock: the time.
    """
    moment = clock()
    export_id = f"{moment:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"
    folder = landing.begin(export_id)
    parts: dict[str, Part] = {}
    cursor: dict[str, Any] = {}
    for table in EXPORTED:
        before = after.cursor.get(table.name) if after is not None else None
        known = _known(landing.known(after.id, table.name)) if after is not None else None
        part, cursor[table.name] = _export_table(store, table, folder, before, known, overlap)
        if part.rows:
            parts[table.name] = part
    if not parts:
        landing.discard(folder)
        return None
    return landing.publish(
        folder,
        Export(
            id=export_id,
            exported_at=moment.isoformat(),
            follows=after.id if after is not None else None,
            tables=parts,
            cursor=cursor,
        ),
    )


def _digest(store: TelemetryStore, table: Exported, cursor: dict[str, Any] | None) -> bool:
    if cursor is None:
        return False
    found = store.read(_sql(_DIGEST, table), since=_moment(cursor["since"])).to_pylist()[0]
    return (found["rows"], str(found["digest"] or 0)) == (cursor["rows"], cursor["digest"])


def _export_table(
    store: TelemetryStore,
    table: Exported,
    folder: Path,
    cursor: dict[str, Any] | None,
    known: pa.Array | None,
    overlap: timedelta,
) -> tuple[Part, dict[str, Any]]:
    since = _moment(cursor["since"]) if cursor is not None else None
    seen = store.read(_sql(_HASHES, table), since=since)
    hashes = seen.column(_HASH).combine_chunks()
    fresh = hashes if known is None else hashes.filter(pc.invert(pc.is_in(hashes, known)))
    part = _write(store, table, folder, since, fresh)
    near, next_since = _near_end(table, seen, overlap)
    pq.write_table(pa.table({_HASH: near}), folder / f"known-{table.name}.parquet")
    digest = int(np.bitwise_xor.reduce(near.to_numpy(zero_copy_only=False))) if len(near) else 0
    return part, {
        "since": next_since.isoformat() if next_since is not None else None,
        "rows": len(near),
        "digest": str(digest),
    }


def _near_end(
    table: Exported, seen: pa.Table, overlap: timedelta
) -> tuple[pa.Array, datetime | None]:
    """The hashes that the next export will look at again, and from when on it looks."""
    newest = pc.max(seen.column("changed_at")).as_py() if table.changed else None
    if newest is None:
        return seen.column(_HASH).combine_chunks(), None
    since = newest - overlap
    is_near = pc.greater_equal(
        seen.column("changed_at"), pa.scalar(since, pa.timestamp("us", "UTC"))
    )
    return seen.filter(is_near).column(_HASH).combine_chunks(), since


def _write(
    store: TelemetryStore,
    table: Exported,
    folder: Path,
    since: datetime | None,
    fresh: pa.Array,
) -> Part:
    files: list[str] = []
    rows = 0
    days: set[str] = set()
    for chunk in _chunks(store, table, since, fresh):
        wanted = chunk.filter(pc.is_in(chunk.column(_HASH), fresh)).drop_columns([_HASH])
        if wanted.num_rows:
            files.append(f"{table.name}-{len(files):05}.parquet")
            pq.write_table(wanted, folder / files[-1], compression="zstd")
            rows += wanted.num_rows
            unique = pc.unique(wanted.column(table.day).cast(pa.date32()))
            days |= {day.isoformat() for day in unique.to_pylist()}
    return Part(files=tuple(files), rows=rows, days=tuple(sorted(days)))


def _chunks(store: TelemetryStore, table: Exported, since: datetime | None, fresh: pa.Array) -> Any:
    if not len(fresh):
        return
    if len(fresh) <= ASKED_BY_HASH:
        yield store.read(_sql(_BY_HASH, table), since=since, hashes=fresh.to_pylist())
        return
    chunks = -(-len(fresh) // CHUNK_ROWS)
    for chunk in range(chunks):
        yield store.read(_sql(_BY_CHUNK, table), since=since, chunks=chunks, chunk=chunk)


def _sql(template: Template, table: Exported) -> str:
    columns = [identifier(name) for name in schema_of(table.name).names]
    changed = identifier(table.changed) if table.changed else "NULL::TIMESTAMPTZ"
    source = _SINCE.substitute(table=identifier(table.name), changed=changed, only=table.only)
    return template.substitute(
        columns=", ".join(columns),
        added=table.added,
        hash=f"hash({', '.join(columns)})",
        key=", ".join(identifier(name) for name in table.key),
        changed=changed,
        source=source,
    )


def _known(path: Path) -> pa.Array | None:
    """What the last export had seen; None when nobody knows any more, so that rows come twice."""
    try:
        return pq.read_table(path).column(_HASH).combine_chunks()
    except FileNotFoundError:
        return None


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text is not None else None
