"""Events of Trino's HTTP event listener → rows, many at a time.

Columns are filled from parsed events and turned into Arrow once per batch; each distinct text is
understood once. A value that Arrow refuses is found by halving the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from collectors.base import BadRowError
from collectors.letters import dead_letter
from collectors.torn import decoded, mended
from collectors.trino.excerpt import excerpt
from collectors.trino.mapping import ROWLESS_TYPES, snapshot_of, status_of
from collectors.trino.payload import Event, Operator, Statistics
from collectors.trino.units import parse_size
from collectors.understanding import Observed, Understanding
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus
from lakehouse_core.gateway.intake import Delivery, Mapped, Verdict
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakehouse_core.domain.agent import DeadLetter

_TABLE = "query_event"
_NEVER = "1970-01-01T00:00:00Z"  # what Trino says when there was no end
_TIMES = {"submitted_at": "createTime", "started_at": "executionStartTime", "ended_at": "endTime"}
_SECONDS = ("queued_ms", "planning_ms", "cpu_ms")
_COLUMNS = (
    "query_id", "status", "revision", *_TIMES, "user_name", "source", "tags", "gateway_id",
    "engine_url", *_SECONDS, "bytes_scanned", "rows_scanned", "rows_returned", "rows_written",
    "bytes_written", "peak_memory_bytes", "spilled_bytes", "error_class", "error_code",
    "snapshot_ids",
)  # fmt: skip

_EVENT = msgspec.json.Decoder(Event)
_EVENTS = msgspec.json.Decoder(list[msgspec.Raw])
_OPERATOR = msgspec.json.Decoder(Operator)


_NOTHING = Statistics()
_ONE = Verdict(accepted=1)  # what nearly every delivery is


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSettings:
    """Whose events these are."""

    engine_id: EngineId
    url: str


@dataclass(slots=True)
class _Haul:
    """What several deliveries gave."""

    verdicts: list[Verdict]
    events: dict[str, list[_Read]]
    letters: list[DeadLetter]

    def spoil(self, read: _Read, letter: DeadLetter) -> None:
        """An event that was taken for good turned out to be none."""
        told = self.verdicts[read.delivery]
        self.verdicts[read.delivery] = Verdict(told.accepted - 1, told.dead_letters + 1)
        self.letters.append(letter)


class _Read(msgspec.Struct, gc=False):  # one per event: the collector need not walk them
    """An event that was read, the bytes it came from, and what only its bulk could tell."""

    delivery: int
    event: Event
    raw: bytes
    written_bytes: int | None


class TrinoIntake:
    """Understands the events of the configured Trino engines.

    A body is one event, as Trino sends it, or a list of events. The path may name the engine
    (`engine`); it must when there are several.
    """

    def __init__(
        self,
        engines: Sequence[ListenerSettings],
        understanding: Understanding,
        clock: Clock = utc_now,
    ) -> None:
        self._engines = {str(engine.engine_id): engine for engine in engines}
        self._understanding = understanding
        self._clock = clock

    def map(self, deliveries: Sequence[Delivery]) -> Mapped:
        """See `Intake.map`."""
        haul = _Haul([], {}, [])
        for number, delivery in enumerate(deliveries):
            try:
                self._read(number, delivery, haul)
            except BadRowError as error:
                haul.verdicts.append(Verdict(refusal=str(error)))
        tables = [
            table
            for name, events in haul.events.items()
            for table in self._tables(self._engines[name], events, haul)
        ]
        rows = _joined(tables)
        if haul.letters:
            rows["dead_letter"] = to_arrow("dead_letter", haul.letters)
        return Mapped(tuple(haul.verdicts), rows)

    def _read(self, number: int, delivery: Delivery, haul: _Haul) -> None:
        engine = self._engine(delivery.path.get("engine"))
        letters: list[DeadLetter] = []
        found: list[_Read] = []
        for raw in _parts(delivery.body):
            body, written = excerpt(raw)
            try:
                event = decoded(_EVENT, body)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                letters.append(self._letter(engine, body, _fault(raw, error)))
            else:
                found.append(_Read(number, event, body, written))
        is_one = len(found) == 1 and not letters
        haul.verdicts.append(_ONE if is_one else Verdict(len(found), len(letters)))
        haul.letters += letters
        haul.events.setdefault(engine, []).extend(found)

    def _engine(self, name: str | None) -> str:
        if name is None and len(self._engines) == 1:
            return next(iter(self._engines))
        if name in self._engines:
            return str(name)
        known = ", ".join(self._engines) or "none"
        told = f"there is no Trino engine {name!r}" if name else "the path must name the engine"
        raise BadRowError(f"{told}: /v1/ingest/trino/<engine>, known: {known}")

    def _tables(
        self, engine: ListenerSettings, events: Sequence[_Read], haul: _Haul
    ) -> Iterator[dict[str, pa.Table]]:
        if not events:
            return
        try:
            yield self._rows(engine, events)
        except BadRowError as error:
            if len(events) == 1:
                haul.spoil(events[0], self._letter(engine.engine_id, events[0].raw, str(error)))
                return
            half = len(events) // 2
            yield from self._tables(engine, events[:half], haul)
            yield from self._tables(engine, events[half:], haul)

    def _rows(self, engine: ListenerSettings, events: Sequence[_Read]) -> dict[str, pa.Table]:
        now = self._clock()
        columns = list(zip(*(_values(engine, read) for read in events), strict=True))
        texts: dict[tuple[str | None, ...], int] = {}
        which = [texts.setdefault(_text_key(read.event), len(texts)) for read in events]
        newest = [""] * len(texts)
        for number, read in zip(which, events, strict=True):
            newest[number] = max(newest[number], read.event.createTime)
        tables = self._understanding.rows(
            [
                _representative(engine, key, _moment(submitted), now)
                for key, submitted in zip(texts, newest, strict=True)
            ]
        )
        known = tables[_TABLE].take(pa.array(which))
        named = dict(zip(_COLUMNS, columns, strict=True))
        return {**tables, _TABLE: _query_events(named, known)}

    def _letter(self, engine: str, raw: bytes, reason: str) -> DeadLetter:
        text = raw.decode("utf-8", "replace")
        return dead_letter(engine, text, f"event of the listener: {reason}", self._clock())


def _parts(body: bytes) -> Sequence[bytes]:
    """The events of a body, unread.

    Raises:
        BadRowError: it is neither a JSON object nor a list; says where it breaks.
    """
    try:
        if body.startswith(b"{"):
            return (body,)
        if body.lstrip()[:1] == b"[":
            return [bytes(raw) for raw in decoded(_EVENTS, body)]
        if body.lstrip()[:1] != b"{":
            found = type(msgspec.json.decode(body)).__name__
            raise BadRowError(f"the body is a JSON {found}, not an event or a list of events")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRowError(f"the body is not JSON: {error}") from error
    return [body]


def _fault(raw: bytes, error: Exception) -> str:
    """Why an event cannot be read.

    Raises:
        BadRowError: because it is not JSON at all.
    """
    try:
        msgspec.json.decode(mended(raw) or raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as broken:
        raise BadRowError(f"the body is not JSON: {broken}") from error
    return str(error)


def _text_key(event: Event) -> tuple[str | None, ...]:
    context, failure = event.context, event.failureInfo
    message = failure.failureMessage if failure else None
    return (event.metadata.query, context.catalog, context.schema, message)


def _representative(
    engine: ListenerSettings, key: tuple[str | None, ...], submitted_at: datetime, now: datetime
) -> Observed:
    """An event that stands for all with its text: what does not depend on the text is replaced.

    It was submitted when the newest of them was: literals are dated by it.
    """
    sql, catalog, schema, message = key
    event = QueryEvent(
        engine_id=engine.engine_id,
        query_id="",
        status=QueryStatus.FINISHED,
        submitted_at=submitted_at,
        collected_at=now,
        dialect="trino",
        sql_text=sql,
        error_message=message,
        reporter="listener",
    )
    return Observed(event, catalog, (schema,) if schema else ())


def _moment(text: str) -> datetime:
    """Trino's way to write a time, UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadRowError(f"createTime: {error}") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _values(engine: ListenerSettings, read: _Read) -> tuple[Any, ...]:
    """The values of `_COLUMNS`."""
    event = read.event
    metadata, context, took = event.metadata, event.context, event.statistics or _NOTHING
    code = event.failureInfo.errorCode if event.failureInfo else None
    status, revision = _outcome(metadata.queryState, code.name if code else None)
    is_over = event.statistics is not None
    has_rows = context.queryType not in ROWLESS_TYPES
    return (
        metadata.queryId or None,
        status,
        revision,
        event.createTime,
        # A query refused before it started has no execution time, and its start is made up.
        event.executionStartTime if took.executionTime is not None else None,
        event.endTime if is_over and event.endTime != _NEVER else None,
        context.user,
        context.source,
        context.clientTags,
        context.traceToken,
        f"{engine.url}/ui/query.html?{metadata.queryId}",
        took.queuedTime,
        took.planningTime,
        took.cpuTime,
        took.physicalInputBytes,
        took.physicalInputRows,
        took.outputRows if has_rows else None,
        took.writtenRows,
        _written(read) if is_over else None,
        took.peakUserMemoryBytes,
        took.spilledBytes,
        code.type.lower() if code else None,
        code.name if code else None,
        _snapshots(event) if event.ioMetadata else (),
    )


@lru_cache(maxsize=1_000)
def _outcome(state: str, error_name: str | None) -> tuple[str, int]:
    status = status_of(state, error_name)
    return status.value, status.revision


def _written(read: _Read) -> int | None:
    """Bytes in the files written: `writtenBytes` of the event are those before compression."""
    if read.event.metadata.updateType is None:
        return 0
    summaries = read.event.statistics.operatorSummaries if read.event.statistics else []
    if read.written_bytes is not None or not summaries:
        return read.written_bytes
    try:
        sizes = [_OPERATOR.decode(text).physicalWrittenDataSize for text in summaries]
        return sum(parse_size(size) for size in sizes)
    except (msgspec.DecodeError, ValueError):
        return None  # Trino promises nothing about the form of its summaries


def _snapshots(event: Event) -> list[int]:
    found: dict[int, None] = {}
    for table in event.ioMetadata.inputs if event.ioMetadata else ():
        snapshot = snapshot_of(table.connectorInfo)
        if snapshot is not None:
            found[snapshot] = None
    return list(found)


def _query_events(columns: Mapping[str, Sequence[Any]], known: pa.Table) -> pa.Table:
    """The events' own values in place of those of the event that stood for its text."""
    schema = schema_of(_TABLE)
    arrays: dict[str, Any] = {name: known.column(name) for name in known.column_names}
    for name, values in columns.items():
        arrays[name] = _array(name, values, schema.field(name))
    arrays["elapsed_ms"] = _milliseconds(arrays["submitted_at"], arrays["ended_at"])
    arrays["execution_ms"] = _milliseconds(arrays["started_at"], arrays["ended_at"])
    return pa.table(arrays).select(schema.names).cast(schema)


def _array(name: str, values: Sequence[Any], field: pa.Field) -> pa.Array:
    try:
        if name in _TIMES:
            made = pa.array(values, pa.string()).cast(pa.timestamp("us", "UTC")).cast(field.type)
        elif name in _SECONDS:
            made = pc.round(pc.multiply(pa.array(values, pa.float64()), 1_000.0))
        else:
            made = pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise BadRowError(f"{_TIMES.get(name, name)}: {error}") from error
    if made.null_count and not field.nullable:
        raise BadRowError(f"{_TIMES.get(name, name)} is empty")
    return made


def _milliseconds(start: pa.Array, end: pa.Array) -> pa.Array:
    micros = pc.subtract(end.cast(pa.int64()), start.cast(pa.int64()))
    return pc.divide(micros.cast(pa.float64()), 1_000.0)


def _joined(tables: Sequence[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    names = dict.fromkeys(name for table in tables for name in table)
    return {
        name: pa.concat_tables([table[name] for table in tables if name in table]) for name in names
    }
