"""Public list prices: what counts where the price book says nothing.

They are of one region (AWS us-east-1, Linux, on demand) and of the day they were read. They give
the right order of magnitude, not an invoice: figures made with them say `list` or `modelled`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from lakehouse_core.domain.cost import Price, Unit
from lakehouse_core.domain.pricebook import ALWAYS, price_id


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicPrice:
    """A published price, with who published it and when it was read."""

    name: str
    engine_type: str | None
    unit: Unit
    sku: str | None = None
    rate: Decimal
    minimum_bytes: int | None = None
    failed_is_free: bool = False
    source: str
    source_on: date

    def as_price(self, known_at: datetime) -> Price:
        """The price as the book has it, valid since always."""
        return Price(
            price_id=price_id(self.name, ALWAYS),
            name=self.name,
            engine=None,
            engine_type=self.engine_type,
            unit=self.unit,
            sku=self.sku,
            list_rate=self.rate,
            contracted_rate=self.rate,
            effective_rate=self.rate,
            currency="USD",
            minimum_bytes=self.minimum_bytes,
            failed_is_free=self.failed_is_free,
            valid_from=ALWAYS,
            origin="default",
            source=self.source,
            source_on=self.source_on,
            known_at=known_at,
        )


_EC2 = "Amazon EC2 on demand, us-east-1: m7g.large, 0.0816 USD/h for 2 vCPU"
_SNOWFLAKE = "Snowflake on demand, AWS US East, credit of edition"
_S3 = "Amazon S3, us-east-1, first 50 TB"
_READ_EC2, _READ_SNOWFLAKE = date(2026, 6, 17), date(2026, 3, 31)
_READ_ATHENA, _READ_S3, _READ_FLINK = date(2026, 6, 17), date(2026, 6, 17), date(2026, 3, 31)


def _credit(edition: str, rate: str) -> PublicPrice:
    return PublicPrice(
        name=f"public-snowflake-{edition.replace('_', '-')}",
        engine_type="snowflake",
        unit="credit",
        sku=edition,
        rate=Decimal(rate),
        source=f"{_SNOWFLAKE} {edition}",
        source_on=_READ_SNOWFLAKE,
    )


def _stored(storage_class: str, rate: str) -> PublicPrice:
    return PublicPrice(
        name=f"public-s3-{storage_class.replace('_', '-')}",
        engine_type=None,
        unit="gb_month",
        sku=storage_class,
        rate=Decimal(rate),
        source=f"{_S3}, {storage_class}",
        source_on=_READ_S3,
    )


def _requests(kind: str, rate: str) -> PublicPrice:
    return PublicPrice(
        name=f"public-s3-{kind}",
        engine_type=None,
        unit="thousand_requests",
        sku=kind,
        rate=Decimal(rate),
        source=f"Amazon S3, us-east-1, standard, {kind} requests",
        source_on=_READ_S3,
    )


PUBLIC: tuple[PublicPrice, ...] = (
    PublicPrice(
        name="public-core",
        engine_type=None,
        unit="core_hour",
        rate=Decimal("0.0408"),
        source=_EC2,
        source_on=_READ_EC2,
    ),
    PublicPrice(
        name="public-athena",
        engine_type="athena",
        unit="tb_scanned",
        rate=Decimal("5.00"),
        minimum_bytes=10_000_000,
        failed_is_free=True,
        source="Amazon Athena SQL queries, us-east-1: per TB scanned, at least 10 MB",
        source_on=_READ_ATHENA,
    ),
    _credit("standard", "2.00"),
    _credit("enterprise", "3.00"),
    _credit("business_critical", "4.00"),
    PublicPrice(
        name="public-flink",
        engine_type="flink",
        unit="slot_hour",
        rate=Decimal("0.11"),
        source="Amazon Managed Service for Apache Flink, us-east-1: a KPU of 1 vCPU and 4 GB",
        source_on=_READ_FLINK,
    ),
    _stored("standard", "0.023"),
    _stored("standard_ia", "0.0125"),
    _stored("glacier_instant", "0.004"),
    _requests("put", "0.005"),
    _requests("get", "0.0004"),
)
