"""Invented histories: queries and charges as Arrow, their split by the statement and by hand."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse_core import duck
from lakehouse_core.domain.attribution import DUCKDB, HOUR_US, allocation_sql
from lakehouse_core.domain.cost import Charge
from lakehouse_core.domain.money import divide
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus
from lakehouse_core.store.rows import to_arrow
from tests.factories import unique

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

START = datetime(2026, 3, 28, 20, 0, tzinfo=UTC)  # clocks in Europe change within the next hours
FIRST = int(START.timestamp()) // 3600
STATUSES = tuple(QueryStatus)
NANO = Decimal("0.000000001")


def at(hours: float) -> datetime:
    """A moment so many hours after the start."""
    return START + timedelta(microseconds=round(hours * HOUR_US))


def query(begin: float, seconds: float | None, **given: Any) -> QueryEvent:
    """A query that began to execute so many hours after the start; None: it has no end."""
    started = at(begin)
    ended = None if seconds is None else started + timedelta(seconds=seconds)
    values: dict[str, Any] = {
        "engine_id": EngineId("trino"),
        "query_id": unique("q"),
        "status": QueryStatus.RUNNING if ended is None else QueryStatus.FINISHED,
        "submitted_at": started - timedelta(seconds=3),
        "started_at": started,
        "ended_at": ended,
        "execution_ms": None if seconds is None else seconds * 1000,
        "queued_ms": 2_000.0,
        "planning_ms": 1_000.0,
        "collected_at": ended or at(100),
        "user_name": "ana",
    }
    return QueryEvent(**values | given)


def charge(hour: int, cost: str, **given: Any) -> Charge:
    """A charge of an hour after the start; by default of a cluster that was up all the time."""
    values: dict[str, Any] = {
        "hour_at": at(hour),
        "engine_id": "trino",
        "resource": "",
        "meter": "compute",
        "price_id": "p",
        "unit": "cluster_hour",
        "quantity": Decimal(1),
        "capacity": HOUR_US,
        "method": "seconds",
        "cost": Decimal(cost),
        "list_cost": Decimal(cost),
        "contracted_cost": Decimal(cost),
        "currency": "USD",
        "basis": "modelled",
        "source": "measured",
        "computed_at": START,
    }
    return Charge(**values | given)


def split(
    queries: Sequence[QueryEvent],
    charges: Sequence[Charge],
    credits: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """What the statement makes of them, in DuckDB; `credits`: what Snowflake charges queries."""
    hours = sorted({int(one.hour_at.timestamp()) // 3600 for one in charges})
    with duck.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("events", to_arrow("query_event", queries))
        connection.register("charges", to_arrow("charge", charges))
        connection.register("attributions", _attributions(credits or {}))
        connection.register("hours", pa.table({"hour_no": pa.array(hours, pa.int64())}))
        rows = connection.execute(allocation_sql(DUCKDB)).to_arrow_table().to_pylist()
    return sorted(rows, key=lambda row: (*line_of(row), row["query_id"] is None, row["query_id"]))


def _attributions(credits: Mapping[str, str]) -> pa.Table:
    amounts = [Decimal(amount) for amount in credits.values()]
    return pa.table(
        {
            "engine_id": pa.array(["snowflake"] * len(credits), pa.string()),
            "query_id": pa.array(list(credits), pa.string()),
            "credits": pa.array(amounts, pa.decimal128(38, 9)),
        }
    )


def line_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """The charge a row is of."""
    return tuple(row[name] for name in ("hour_at", "engine_id", "resource", "meter", "price_id"))


def check_conservation(charges: Sequence[Charge], rows: Sequence[dict[str, Any]]) -> None:
    """Every charge is the sum of its rows, in each of its three amounts; nothing is negative."""
    names = ("cost", "list_cost", "contracted_cost")
    sums: dict[tuple[Any, ...], dict[str, Decimal]] = defaultdict(
        lambda: dict.fromkeys(names, Decimal(0))
    )
    for row in rows:
        for name in names:
            sums[line_of(row)][name] += row[name]
            assert row[name] >= 0 or row["kind"] == "unallocated"
    for one in charges:
        key = (one.hour_at, one.engine_id, one.resource, one.meter, one.price_id)
        assert sums[key] == {name: getattr(one, name) for name in names}


@dataclass(frozen=True)
class Piece:
    """A query in an hour, by hand."""

    query_id: str
    begin: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.begin


def pieces_of(queries: Sequence[QueryEvent], hour: int) -> list[Piece]:
    """The pieces of queries in an hour, in the order they began; plain arithmetic."""
    floor, ceiling = (FIRST + hour) * HOUR_US, (FIRST + hour + 1) * HOUR_US
    found = []
    for one in queries:
        submitted, begin, end = _span(one)
        del submitted
        first = begin // HOUR_US
        last = max(first, (end - 1) // HOUR_US)
        if first <= FIRST + hour <= last:
            found.append(Piece(one.query_id, max(begin, floor), min(end, ceiling)))
    return sorted(found, key=lambda piece: (piece.begin, piece.query_id))


def shares_by_hand(one: Charge, queries: Sequence[QueryEvent], hour: int) -> dict[str, Decimal]:
    """What each query is given of a charge that is split by seconds; '' is what is left."""
    pieces = pieces_of(queries, hour)
    busy, reached = 0, 0
    for piece in pieces:
        busy += max(0, piece.end - max(piece.begin, reached))
        reached = max(reached, piece.end)
    total = sum(piece.length for piece in pieces)
    parts = max(one.capacity or busy, busy, 1)
    given = Decimal(int(one.cost.scaleb(9)) * (busy if total else 0) // parts).scaleb(-9)
    shares = divide(given, [piece.length for piece in pieces])
    named = {piece.query_id: share for piece, share in zip(pieces, shares, strict=True)}
    return named | {"": one.cost - sum(shares)}


def trace(seed: int, hours: int, queries: int) -> tuple[list[QueryEvent], list[Charge]]:
    """A history with everything in it: crossed hours, no length, no end, retries, all methods."""
    luck = random.Random(seed)  # noqa: S311 a test
    events = [_any_query(luck, hours) for _ in range(queries)]
    events += [  # retries: the same statement again, an id of its own
        _like(one, query_id=unique("retry")) for one in luck.sample(events, queries // 20)
    ]
    charges = [one for hour in range(hours) for one in _any_charges(luck, hour)]
    return events, charges


def _any_query(luck: random.Random, hours: int) -> QueryEvent:
    seconds = luck.choice([0.0, 0.000001, luck.expovariate(0.05), luck.expovariate(1 / 5000)])
    status = luck.choice(STATUSES)
    open_end = status in (QueryStatus.RUNNING, QueryStatus.QUEUED)
    begin = luck.uniform(-3, hours)
    given: dict[str, Any] = {
        "engine_id": EngineId(luck.choice(["trino", "athena", "snowflake"])),
        "status": status,
        "cpu_ms": luck.choice([None, 0.0, seconds * 1500]),
        "bytes_scanned": luck.choice([None, 0, luck.randrange(10**13)]),
        "tags": (f"warehouse={luck.choice('AB')}",) if luck.random() < 0.5 else (),
    }
    if open_end:
        given["collected_at"] = at(begin) + timedelta(seconds=seconds)
    if luck.random() < 0.1:
        given["execution_ms"] = None
    if luck.random() < 0.05:
        given["started_at"] = None
    return query(begin, None if open_end else seconds, **given)


def _like(one: QueryEvent, **given: Any) -> QueryEvent:
    return QueryEvent(**{item.name: getattr(one, item.name) for item in fields(QueryEvent)} | given)


def _any_charges(luck: random.Random, hour: int) -> list[Charge]:
    def amount() -> str:
        return str(Decimal(luck.randrange(10 ** luck.randrange(1, 14))) * NANO)

    def three() -> dict[str, Decimal]:
        if luck.random() < 0.5:
            return {}
        return {"list_cost": Decimal(amount()), "contracted_cost": Decimal(amount())}

    whole = {"capacity": luck.choice([HOUR_US, luck.randrange(1, HOUR_US), None])}
    halves = [  # the price changed within the hour
        charge(hour, amount(), price_id=name, quantity=Decimal("0.5"), **whole) for name in "ab"
    ]
    used = Decimal(luck.randrange(0, 12)) / 10
    credits = [
        charge(
            hour,
            amount(),
            engine_id="snowflake",
            resource=name,
            capacity=None,
            attributed=luck.choice([None, used]),
            **three(),
        )
        for name in "AB"
    ]
    refund = charge(
        hour, "-" + amount(), engine_id="athena", meter="credit", method="none", reason="negative"
    )
    return [
        *halves,
        *credits,
        charge(hour, amount(), engine_id="snowflake", meter="cloud_services", capacity=None),
        charge(
            hour,
            amount(),
            engine_id="athena",
            meter="scan",
            method="bytes",
            minimum_bytes=10_000_000,
            failed_is_free=luck.random() < 0.5,
            capacity=luck.choice([None, luck.randrange(10**15)]),
            **three(),
        ),
        charge(hour, amount(), engine_id="athena", price_id="cpu", method="cpu", capacity=None),
        charge(hour, amount(), engine_id="storage:lake", meter="storage", method="resource"),
        refund,
    ]


def _span(one: QueryEvent) -> tuple[int, int, int]:
    def us(moment: datetime | None) -> int | None:
        return None if moment is None else round(moment.timestamp() * 1_000_000)

    submitted = us(one.submitted_at) or 0
    execution = None if one.execution_ms is None else round(one.execution_ms * 1000)
    waited = round(((one.queued_ms or 0) + (one.planning_ms or 0)) * 1000)
    started = us(one.started_at)
    told = started if started is not None else submitted + waited
    end = us(one.ended_at)
    if end is None and one.status is QueryStatus.RUNNING:
        end = us(one.collected_at)
    if end is None:
        end = told + (0 if one.status is QueryStatus.QUEUED else execution or 0)
    end = max(submitted, end)
    if one.status is QueryStatus.QUEUED:
        begin = end
    elif one.status is QueryStatus.RUNNING or execution is None:
        begin = told
    else:
        begin = end - max(execution, 0)
    return submitted, min(end, max(submitted, begin)), end
