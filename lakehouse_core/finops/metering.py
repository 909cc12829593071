"""Charges of an hour: what was metered, at the prices that counted then.

What an engine is metered by follows from the unit of its price: a cluster by the time it was up, a
core by processor time, scanned data by bytes, a warehouse by the credits the engine tells, Flink by
slots. A bill that was imported for an engine's meter takes the place of what we would meter there:
for the resource it names, else for all of them. So does a bill in another currency, and a line that
overlaps another one: the use is billed, and would be charged twice. A credit, a refund or a tax is
nobody's use and takes no place. Where a price changes within an hour the quantity is divided by
time. Queries of an engine that is not priced, or not metered yet, have a charge of 0 that says so:
none is lost.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.attribution import HOUR_US
from lakehouse_core.domain.cost import (
    CREDITS_PER_HOUR,
    GB,
    HOURS_PER_MONTH,
    SPLIT_METHODS,
    STORAGE,
    Basis,
    Charge,
    Price,
)
from lakehouse_core.domain.money import rounded
from lakehouse_core.finops import metering_sql as sql
from lakehouse_core.finops.meters import LINES, NOTHING, Facts, Line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakehouse_core.domain.pricebook import PriceBook, Stretch
    from lakehouse_core.store.port import TelemetryStore

HOUR, MICROSECOND = timedelta(hours=1), timedelta(microseconds=1)
BILL = "bill:"  # how the price of a charge begins that comes from a bill
NO_LONGER = "no longer metered like this"
BILLED = "a bill takes its place"
# How long what an hour is charged may still change, by unit.
SETTLES = {"credit": timedelta(days=1)}
SETTLES_ELSE = timedelta(minutes=15)


def meter_hours(
    store: TelemetryStore, book: PriceBook, hours: Sequence[int], now: datetime, gap: timedelta
) -> list[Charge]:
    """Compute the charges of some hours anew: those that are, and those that are no longer.

    Args:
        store: where quantities are read from.
        book: the prices.
        hours: numbers of hours since 1970.
        now: hours that may still change are told apart by it.
        gap: a probe speaks for at most so long.
    """
    stored = [Charge(**row) for row in store.read(sql.CHARGES_SQL, hours=list(hours)).to_pylist()]
    bills = [one for one in stored if one.price_id.startswith(BILL)]
    facts = _read_facts(store, book, hours, gap)
    for one in bills:
        fact = facts[one.engine_id, _number(one.hour_at)]
        if _is_use(one):
            fact.billed.add((one.meter, one.resource))
        if one.method in SPLIT_METHODS:
            fact.covered.add(one.resource)
    fresh = [
        charge
        for (engine_id, hour), fact in sorted(facts.items())
        for charge in engine_charges(book, engine_id, hour, fact, now)
    ]
    fresh += _storage(store, book, hours, facts, now)
    for one in bills:
        named = _divided(one, facts[one.engine_id, _number(one.hour_at)])
        if named.method != one.method:
            fresh.append(replace(named, computed_at=now))
    kept = {_key(one) for one in fresh}
    gone = [
        _gone(one, now)
        for one in stored
        if _key(one) not in kept and not one.price_id.startswith(BILL) and one.reason != NO_LONGER
    ]
    return fresh + gone


def close_hours(store: TelemetryStore, hours: Sequence[int], now: datetime) -> list[Charge]:
    """Let bills take the place of charges in hours whose queries are not in the store any more.

    Nothing is metered anew: what was charged stays, unless a bill is for it.
    """
    stored = [Charge(**row) for row in store.read(sql.CHARGES_SQL, hours=list(hours)).to_pylist()]
    facts: dict[tuple[str, int], Facts] = defaultdict(Facts)
    for one in stored:
        if one.price_id.startswith(BILL) and _is_use(one):
            facts[one.engine_id, _number(one.hour_at)].billed.add((one.meter, one.resource))
    return [
        replace(_replaced(one), computed_at=now)
        for one in stored
        if not one.price_id.startswith(BILL)
        and facts[one.engine_id, _number(one.hour_at)].is_billed(one.meter, one.resource)
    ]


def engine_charges(
    book: PriceBook, engine_id: str, hour: int, fact: Facts, now: datetime
) -> list[Charge]:
    """The charges of one engine in one hour, from what is known of it. Pure."""
    start = hour_at(hour)
    stretches = list(book.stretches(engine_id, start, start + HOUR))
    priced: dict[str, Price] = {p.unit: p for one in stretches for p in one.prices}
    charges: list[Charge] = []
    for unit in priced:
        for line in LINES[unit](fact):
            charges += _priced(engine_id, start, line, unit, stretches, now)
    charges = [_divided(one, fact) for one in charges]
    mine = [one for one in charges if not fact.is_billed(one.meter, one.resource)]
    told = [_replaced(one) for one in charges if fact.is_billed(one.meter, one.resource)]
    return mine + told + _unpriced(book, engine_id, start, fact, mine, now)


def hour_at(number: int) -> datetime:
    """When an hour begins."""
    return datetime.fromtimestamp(number * 3600, UTC)


def _priced(
    engine_id: str,
    start: datetime,
    line: Line,
    unit: str,
    stretches: Sequence[Stretch],
    now: datetime,
) -> Iterable[Charge]:
    """A line at its prices: one charge, or one per stretch when the price changes in the hour."""
    for stretch in stretches:
        price = next((p for p in stretch.prices if p.unit == unit), None)
        if price is None:
            continue
        share = Decimal((stretch.end - stretch.start) // MICROSECOND) / HOUR_US
        quantity = line.quantity * share
        used = line.attributed * share if line.attributed is not None else None
        yield Charge(
            hour_at=start,
            engine_id=engine_id,
            resource=line.resource,
            meter=line.meter,
            price_id=price.price_id,
            unit=unit,
            quantity=rounded(quantity),
            attributed=None if used is None else rounded(used),
            capacity=line.capacity,
            method=line.method,
            list_cost=rounded(quantity * price.list_rate),
            contracted_cost=rounded(quantity * price.contracted_rate),
            cost=rounded(quantity * price.effective_rate),
            currency=price.currency,
            basis="list" if line.source == "engine" else "modelled",
            source=line.source,  # type: ignore[arg-type]  # the builders below know the words
            minimum_bytes=price.minimum_bytes or 0,
            failed_is_free=price.failed_is_free,
            is_provisional=start + HOUR + SETTLES.get(unit, SETTLES_ELSE) > now,
            reason=line.reason,
            computed_at=now,
        )


def _unpriced(
    book: PriceBook,
    engine_id: str,
    start: datetime,
    fact: Facts,
    charges: Sequence[Charge],
    now: datetime,
) -> list[Charge]:
    """Charges of 0 for queries that no other charge is split over."""
    covered = fact.covered | {
        one.resource for one in charges if one.method in SPLIT_METHODS and one.method != "query"
    }
    missing = [] if "" in covered else [name for name in fact.runs if name not in covered]
    has_price = bool(book.compute(engine_id, start))
    by_query = any(one.method == "query" for one in charges)
    basis: Basis = "modelled" if by_query else "pending" if has_price else "unpriced"
    reasons = {
        "modelled": "its jobs are charged one by one",
        "pending": "its engine has not metered this hour for it",
        "unpriced": f"engine {engine_id} has no price: add one under prices.book",
    }
    return [
        Charge(
            hour_at=start,
            engine_id=engine_id,
            resource=name,
            meter="compute",
            price_id="",
            unit="none",
            quantity=NOTHING,
            method="seconds",
            list_cost=NOTHING,
            contracted_cost=NOTHING,
            cost=NOTHING,
            currency=book.currency,
            basis=basis,
            source="none",
            is_provisional=basis == "pending" or start + HOUR > now,
            reason=reasons[basis],
            computed_at=now,
        )
        for name in sorted(missing)
    ]


def _read_facts(
    store: TelemetryStore, book: PriceBook, hours: Sequence[int], gap: timedelta
) -> dict[tuple[str, int], Facts]:
    facts: dict[tuple[str, int], Facts] = defaultdict(Facts)
    wanted = list(hours)
    for row in store.read(sql.USE_SQL, hours=wanted, **_byte_rules(book, hours)).to_pylist():
        fact = facts[row["engine_id"], row["hour_no"]]
        fact.runs[row["resource"]] = row["runs"]
        fact.cpu_us[row["resource"]] = row["cpu_us"]
        fact.scanned[row["resource"]] = row["bytes"]
    gap_us = int(gap / timedelta(microseconds=1))
    for row in store.read(sql.UPTIME_SQL, hours=wanted, gap_us=gap_us).to_pylist():
        facts[row["engine_id"], row["hour_no"]].up_us = row["up_us"]
    for row in store.read(sql.METERED_SQL, hours=wanted).to_pylist():
        facts[row["engine_id"], row["hour_no"]].metered.append(row)
    for row in store.read(sql.CREDITED_SQL, hours=wanted).to_pylist():
        facts[row["engine_id"], row["hour_no"]].credited.add(row["resource"])
    for row in _sized(store, book, wanted):
        known = [CREDITS_PER_HOUR[size] for size in row["sizes"] if size in CREDITS_PER_HOUR]
        if known:
            fact = facts[row["engine_id"], row["hour_no"]]
            fact.sized[row["resource"]] = row["busy_us"], max(known)
    for row in store.read(sql.SLOTS_SQL, hours=wanted).to_pylist():
        facts[row["engine_id"], row["hour_no"]].slots[row["job_id"]] = row["slot_us"]
    return facts


def _sized(store: TelemetryStore, book: PriceBook, hours: list[int]) -> list[dict[str, Any]]:
    """What queries say of sizes, where any engine is priced by credits."""
    if not any(
        _of_unit(book, name, hour, "credit") for name in book.engine_types for hour in hours
    ):
        return []
    rows: list[dict[str, Any]] = store.read(sql.SIZED_SQL, hours=hours).to_pylist()
    return rows


def _byte_rules(book: PriceBook, hours: Sequence[int]) -> dict[str, list[Any]]:
    """What a query is charged for at least, and whether a failed one is free, per engine, hour."""
    rules = [
        (name, hour, price.minimum_bytes or 0, price.failed_is_free)
        for name in book.engine_types
        for hour in hours
        if (price := _of_unit(book, name, hour, "tb_scanned")) is not None
    ]
    names = ("priced", "priced_in", "minimums", "free")
    return {name: [rule[place] for rule in rules] for place, name in enumerate(names)}


def _of_unit(book: PriceBook, engine_id: str, hour: int, unit: str) -> Price | None:
    """The first price of a unit that counts for an engine in an hour."""
    start = hour_at(hour)
    stretches = book.stretches(engine_id, start, start + HOUR)
    return next((p for one in stretches for p in one.prices if p.unit == unit), None)


def _storage(
    store: TelemetryStore,
    book: PriceBook,
    hours: Sequence[int],
    facts: Mapping[tuple[str, int], Facts],
    now: datetime,
) -> list[Charge]:
    charges = []
    for row in store.read(sql.STORAGE_SQL, hours=list(hours)).to_pylist():
        for charge in _stored(book, row, now):
            fact = facts.get((charge.engine_id, row["hour_no"]), Facts())
            is_billed = fact.is_billed(charge.meter, charge.resource)
            charges.append(_replaced(charge) if is_billed else charge)
    return charges


def _stored(book: PriceBook, row: Mapping[str, Any], now: datetime) -> Iterable[Charge]:
    """What keeping a catalog's files cost in an hour, as far as it has passed."""
    start = hour_at(row["hour_no"])
    for stretch in book.storage_stretches(row["catalog"], start, start + HOUR):
        passed = Decimal((min(stretch.end, now) - stretch.start) // MICROSECOND) / HOUR_US
        if not stretch.prices or passed <= 0:
            continue
        (price,) = stretch.prices
        quantity = rounded(Decimal(int(row["bytes"])) / GB * (passed / HOURS_PER_MONTH))
        yield Charge(
            hour_at=start,
            engine_id=f"{STORAGE}{row['catalog']}",
            resource=price.sku or "",
            meter="storage",
            price_id=price.price_id,
            unit="gb_month",
            quantity=quantity,
            method="resource",
            list_cost=rounded(quantity * price.list_rate),
            contracted_cost=rounded(quantity * price.contracted_rate),
            cost=rounded(quantity * price.effective_rate),
            currency=price.currency,
            basis="modelled",
            source="measured",
            is_provisional=start + HOUR > now,
            computed_at=now,
        )


def _divided(charge: Charge, fact: Facts) -> Charge:
    """A charge, called by what divides it: time, or the credits its engine tells of queries."""
    if charge.meter != "compute" or charge.method not in ("seconds", "credits"):
        return charge
    return replace(charge, method="credits" if charge.resource in fact.credited else "seconds")


def _is_use(charge: Charge) -> bool:
    """Whether a charge of a bill is for use: then nothing else is charged for it."""
    is_use = charge.charge_category in (None, "Usage")
    return charge.method != "none" or (charge.cost > 0 and is_use)


def _replaced(charge: Charge) -> Charge:
    """A charge that a bill takes the place of: what was used is kept, it costs nothing.

    The next bill of the same time is spread over the hours by it, too.
    """
    return replace(
        charge,
        attributed=None,
        method="none",
        list_cost=NOTHING,
        contracted_cost=NOTHING,
        cost=NOTHING,
        is_provisional=False,
        reason=BILLED,
    )


def _gone(charge: Charge, now: datetime) -> Charge:
    return replace(
        charge,
        quantity=NOTHING,
        attributed=None,
        capacity=None,
        method="none",
        list_cost=NOTHING,
        contracted_cost=NOTHING,
        cost=NOTHING,
        is_provisional=False,
        reason=NO_LONGER,
        computed_at=now,
    )


def _number(moment: datetime) -> int:
    return int(moment.timestamp()) // 3600


def _key(charge: Charge) -> tuple[datetime, str, str, str, str]:
    return charge.hour_at, charge.engine_id, charge.resource, charge.meter, charge.price_id
