"""The price book: what engines, storage and requests cost, since when, and who says so.

    prices:
      currency: USD
      editions: {snowflake: enterprise}
      book:
        trino-nodes: {engine: trino, unit: node_hour, nodes: 4, list_price: "0.192",
                      spot_share: 0.5, spot_price: "0.07"}
        athena: {engine: athena, unit: tb_scanned, list_price: "5.00", contracted: "4.25",
                 valid_from: 2026-07-01, source: "order form 17"}

What the book does not price has the public list price of its kind
(`lakehouse_core.domain.list_prices`), unless `list_prices: false`. What a price was before it
changed stays in the store: yesterday is not priced anew because today is dearer.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from lakehouse_core.config.section import Section
from lakehouse_core.config.types import Count, Float, Name, Price, Text
from lakehouse_core.config.units import ByteSize
from lakehouse_core.domain.cost import Price as BookPrice
from lakehouse_core.domain.list_prices import PUBLIC
from lakehouse_core.domain.pricebook import ALWAYS, EngineRates, PriceBook, price_id

Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
_RATE_PLACES = Decimal("0.000000000001")


def _moment(value: object) -> object:
    """A day is its first moment in UTC; a time has a zone."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value) if len(value) > 10 else date.fromisoformat(value)
        except ValueError as error:
            raise ValueError("expected a day or a time, e.g. 2026-07-01T00:00:00Z") from error
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("expected a time with its zone, e.g. 2026-07-01T00:00:00Z")
        return value.astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value


Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema({"type": "string", "examples": ["2026-07-01", "2026-07-01T12:00:00Z"]}),
]
PricedBy = Literal[
    "cluster_hour",
    "node_hour",
    "core_hour",
    "core_second",
    "tb_scanned",
    "credit",
    "slot_hour",
    "gb_month",
    "thousand_requests",
]
# An engine, or the storage of a catalog.
Billed = Annotated[str, StringConstraints(pattern=r"^(storage:)?[a-z][a-z0-9]*([_-][a-z0-9]+)*$")]
EngineType = Literal["duckdb", "spark", "trino", "athena", "snowflake", "flink"]


def _kept(rate: Decimal) -> Decimal:
    """A rate with as many decimals as the store keeps."""
    return rate.quantize(_RATE_PLACES)


class PriceEntry(Section):
    """One price.

    Attributes:
        engine: the engine it is for; without it those of `engine_type`, without both all.
        unit: what the price is per.
        sku: edition of a credit, class of storage or of requests.
        list_price: what the provider publishes.
        contracted: what was agreed; without it the list price.
        effective: what is paid in the end; without it the contracted one.
        nodes: of a node_hour: how many nodes run.
        spot_share: of a node_hour: the share of the nodes that is spot.
        spot_price: of a node_hour: what a spot node costs.
        minimum_bytes: of tb_scanned: what a query that reads anything is charged for at least.
        failed_is_free: a failed query costs nothing.
        valid_from: without it, since always; a price that is changed here counts from then on.
        valid_to: the first moment it does not count any more.
        source: who says so.
        source_on: when it was read there.
    """

    engine: Name | None = None
    engine_type: EngineType | None = None
    unit: PricedBy
    sku: Text | None = None
    list_price: Price
    contracted: Price | None = None
    effective: Price | None = None
    nodes: Count = 1
    spot_share: Annotated[Float, Field(ge=0, le=1)] = 0.0
    spot_price: Price | None = None
    minimum_bytes: ByteSize | None = None
    failed_is_free: bool = False
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    source: Text | None = None
    source_on: date | None = None

    @model_validator(mode="after")
    def _fits_its_unit(self) -> Self:
        if self.engine is not None and self.engine_type is not None:
            raise ValueError("give either engine or engine_type, not both")
        own = {"nodes", "spot_share", "spot_price"} & self.model_fields_set
        if own and self.unit != "node_hour":
            raise ValueError(f"{', '.join(sorted(own))}: only a node_hour has nodes")
        if self.spot_share and self.spot_price is None:
            raise ValueError("spot_share needs spot_price")
        if self.minimum_bytes is not None and self.unit != "tb_scanned":
            raise ValueError("minimum_bytes: only tb_scanned has a minimum")
        if self.valid_from and self.valid_to and self.valid_from >= self.valid_to:
            raise ValueError("valid_to must be later than valid_from")
        return self

    def as_price(self, name: str, currency: str, known_at: datetime) -> BookPrice:
        """The price as the book has it: nodes put together, seconds made hours."""
        contracted = self.contracted if self.contracted is not None else self.list_price
        effective = self.effective if self.effective is not None else contracted
        start = self.valid_from or ALWAYS
        return BookPrice(
            price_id=price_id(name, start),
            name=name,
            engine=self.engine,
            engine_type=self.engine_type,
            unit="core_hour" if self.unit == "core_second" else self.unit,
            sku=self.sku,
            list_rate=self._rate(self.list_price),
            contracted_rate=self._rate(contracted),
            effective_rate=self._rate(effective),
            currency=currency,
            minimum_bytes=self.minimum_bytes,
            failed_is_free=self.failed_is_free,
            valid_from=start,
            valid_to=self.valid_to,
            source=self.source or "configuration",
            source_on=self.source_on,
            detail=self._detail(),
            known_at=known_at,
        )

    def _rate(self, price: Decimal) -> Decimal:
        if self.unit == "core_second":
            return _kept(price * 3600)
        if self.unit != "node_hour":
            return _kept(price)
        spot = Decimal(str(self.spot_share))
        return _kept(self.nodes * ((1 - spot) * price + spot * (self.spot_price or Decimal(0))))

    def _detail(self) -> str | None:
        if self.unit != "node_hour":
            return None
        text = f"{self.nodes} nodes at {self.list_price}"
        if self.spot_share:
            text += f", {self.spot_share:.0%} of them spot at {self.spot_price}"
        return text


class PricesConfig(Section):
    """The price book.

    Attributes:
        currency: of every price here. Bills in another one are kept apart: no rate is assumed.
        list_prices: whether public list prices fill what the book leaves open.
        editions: Snowflake engine → its edition: standard, enterprise, business_critical.
        storage_classes: catalog → the class its files are in.
        bill_names: what bills call our engines, as globs → engine, or storage:CATALOG.
        book: the prices, by name.
    """

    currency: Currency = "USD"
    list_prices: bool = True
    editions: dict[Name, Text] = Field(default_factory=dict)
    storage_classes: dict[Name, Text] = Field(default_factory=dict)
    bill_names: dict[Text, Billed] = Field(default_factory=dict)
    book: dict[Name, PriceEntry] = Field(default_factory=dict)
    _engine_types: dict[str, str] = PrivateAttr(default_factory=dict)
    # The book of the newest prices, and the values it was made from.
    _made: tuple[list[object], PriceBook, datetime] | None = PrivateAttr(default=None)

    def know(self, engine_types: dict[str, str]) -> None:
        """Hear which engines there are: some prices are for all of a type."""
        self._engine_types.update(engine_types)
        self._made = None

    def all_prices(self, at: datetime) -> tuple[BookPrice, ...]:
        """The prices of the configuration, and the public ones it lets in; known since then."""
        own = [one.as_price(name, self.currency, at) for name, one in self.book.items()]
        return (*own, *(one.as_price(at) for one in PUBLIC if self.list_prices))

    def book_of(self, prices: tuple[BookPrice, ...]) -> PriceBook:
        """A book of some prices, for the engines there are."""
        return PriceBook(
            prices=prices,
            engine_types=self._engine_types,
            editions=self.editions,
            storage_classes=self.storage_classes,
            currency=self.currency,
        )

    # Estimates want one rate each: that of the newest price.

    @property
    def core_hour(self) -> Decimal | None:
        """Of a core where an engine has no price of its own; None: not priced."""
        book, at = self._newest()
        rates = [one.effective_rate for one in book.compute("", at) if one.unit == "core_hour"]
        return rates[0] if rates else None

    def rates(self, engine_id: str) -> EngineRates:
        """What the work of an engine costs, by its own prices."""
        book, at = self._newest()
        return EngineRates.of(book.compute(engine_id, at))

    @property
    def gb_month(self) -> Decimal | None:
        """Of a GB of stored data; None: not priced."""
        book, at = self._newest()
        price = book.storage("", at)
        return price.effective_rate if price else None

    @property
    def tb_scanned(self) -> dict[str, Decimal]:
        """Of a TB read, per engine that bills by bytes."""
        book, at = self._newest()
        return {
            engine: one.effective_rate
            for engine in self._engine_types
            for one in book.compute(engine, at)
            if one.unit == "tb_scanned"
        }

    def _newest(self) -> tuple[PriceBook, datetime]:
        values = list(self.__dict__.values())  # a copy of this may have others
        made = self._made
        if made is None or any(one is not kept for one, kept in zip(values, made[0], strict=True)):
            prices = self.all_prices(ALWAYS)
            newest = max((one.valid_from for one in prices), default=ALWAYS)
            made = self._made = values, self.book_of(prices), newest
        return made[1], made[2]
