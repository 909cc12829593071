"""Do prices and the names on bills mean engines and catalogs that there are?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.config.problems import Finding, nearest
from lakehouse_core.domain.cost import STORAGE
from lakehouse_core.domain.list_prices import PUBLIC

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from lakehouse_core.config.models import Config
    from lakehouse_core.config.problems import KeyPath


def check_prices(config: Config) -> Iterator[Finding]:
    """A price for an engine that is not there counts for nobody, and nobody is told."""
    prices = config.prices
    for name, entry in prices.book.items():
        if entry.engine is not None:
            of_price = ("prices", "book", name, "engine")
            yield from _known(of_price, entry.engine, config.engines, "no such engine")
    billed = (*config.engines, *(f"{STORAGE}{name}" for name in config.catalogs))
    for glob, engine in prices.bill_names.items():
        path = ("prices", "bill_names", glob)
        yield from _known(path, engine, billed, "no such engine, nor the storage of a catalog")
    editions = {one.sku for one in PUBLIC if one.unit == "credit" and one.sku}
    editions |= {one.sku for one in prices.book.values() if one.unit == "credit" and one.sku}
    for name, edition in prices.editions.items():
        path = ("prices", "editions", name)
        yield from _known(path, name, config.engines, "no such engine")
        yield from _known(path, edition, sorted(editions), "no price is of this edition")
    for name in prices.storage_classes:
        path = ("prices", "storage_classes", name)
        yield from _known(path, name, config.catalogs, "no such catalog")


def _known(path: KeyPath, name: str, known: Collection[str], message: str) -> Iterator[Finding]:
    if name not in known:
        yield Finding(
            path=path,
            message=message,
            allowed=", ".join(known) or "none",
            nearest=nearest(name, known),
        )
