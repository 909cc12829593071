"""The history of prices: what the configuration says, and what it said before."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.cost import Price
from lakehouse_core.domain.pricebook import PriceBook, is_valid, price_id
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from lakehouse_core.config.models import Config
    from lakehouse_core.store.port import TelemetryStore

PRICES_SQL = "SELECT * FROM price ORDER BY name, valid_from"
# What may differ between two rows of the same price.
_WHEN = frozenset({"price_id", "valid_from", "valid_to", "known_at"})


# Units that nothing is charged by, and why: a price alone would make up a quantity.
NOT_MEASURED = {
    "thousand_requests": "not measured: no source tells requests; they cost what a bill says"
}


def keep_prices(store: TelemetryStore, config: Config, now: datetime) -> PriceBook:
    """Bring the store's price book in step with the configuration; returns all of it.

    A price that changed ends now and goes on with its new rate; one that is gone ends now. What has
    a start of its own in the configuration keeps it.
    """
    stored = [_row(row) for row in store.read(PRICES_SQL).to_pylist()]
    rows = {price.price_id: price for price in stored}
    wanted = config.prices.all_prices(now)
    dated = {name for name, one in config.prices.book.items() if one.valid_from is not None}
    for price in wanted:
        same_name = [p for p in stored if p.name == price.name]
        is_open = [p for p in same_name if p.valid_to is None]
        if price.name in dated or not same_name:
            # A name that is new prices all history: nobody said it was otherwise.
            start = price.valid_from
        elif is_open and _says_the_same(is_open[-1], price):
            continue
        else:
            start = now
        fresh = replace(price, valid_from=start, price_id=price_id(price.name, start))
        for old in is_open:
            if old.price_id != fresh.price_id:
                rows[old.price_id] = replace(old, valid_to=max(start, old.valid_from), known_at=now)
        rows[fresh.price_id] = fresh
    names = {price.name for price in wanted}
    for old in stored:
        if old.name not in names and old.valid_to is None:
            rows[old.price_id] = replace(old, valid_to=max(now, old.valid_from), known_at=now)
    before = {price.price_id: price for price in stored}
    changed = [p for p in rows.values() if not _is_same_row(before.get(p.price_id), p)]
    if changed:
        store.upsert("price", to_arrow("price", changed))
    return config.prices.book_of(tuple(rows.values()))


def known_prices(
    store: TelemetryStore, config: Config, now: datetime, *, history: bool
) -> list[tuple[Price, tuple[str, ...]]]:
    """Prices and the engines each counts for now, as the store has them.

    Before the agents have run for the first time: as the configuration has them.
    """
    stored = tuple(_row(row) for row in store.read(PRICES_SQL).to_pylist())
    book = config.prices.book_of(stored or config.prices.all_prices(now))
    counting = {name: {p.price_id for p in book.compute(name, now)} for name in config.engines}
    return [
        (price, tuple(name for name, ids in counting.items() if price.price_id in ids))
        for price in book.prices
        if history or is_valid(price, now)
    ]


def _says_the_same(one: Price, other: Price) -> bool:
    return all(
        getattr(one, item.name) == getattr(other, item.name)
        for item in fields(Price)
        if item.name not in _WHEN
    )


def _is_same_row(stored: Price | None, fresh: Price) -> bool:
    return stored is not None and replace(fresh, known_at=stored.known_at) == stored


def _row(row: Mapping[str, Any]) -> Price:
    return Price(**row)
