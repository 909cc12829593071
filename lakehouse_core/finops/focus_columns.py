"""FOCUS as data: the columns of Cost and Usage that we write or check, for 1.4 and 1.2.

Facts of the specification (focus.finops.org; FOCUS_Spec at v1.2, the 1.4 data model): which columns
are mandatory, which may be null, what their values look like. Columns that are neither here nor
begin with `x_` are not part of FOCUS as we know it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Version = Literal["1.4", "1.2"]
Kind = Literal["text", "decimal", "price", "time", "currency", "json", "unit"]
VERSIONS: tuple[Version, ...] = ("1.4", "1.2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column.

    Attributes:
        kind: what a value is; `price` is a decimal that is not negative.
        is_mandatory: the column must be there.
        nullable: a value may be missing.
        priced: must have a value in rows of usage that are no correction, when the column is there.
        allowed: the only values there are.
    """

    name: str
    kind: Kind = "text"
    is_mandatory: bool = False
    nullable: bool = True
    priced: bool = False
    allowed: tuple[str, ...] = ()


def _must(name: str, kind: Kind = "text", allowed: tuple[str, ...] = ()) -> Column:
    return Column(name=name, kind=kind, is_mandatory=True, nullable=False, allowed=allowed)


def _blank(name: str, kind: Kind = "text", *, priced: bool = False) -> Column:
    return Column(name=name, kind=kind, is_mandatory=True, priced=priced)


def _more(name: str, kind: Kind = "text", allowed: tuple[str, ...] = ()) -> Column:
    return Column(name=name, kind=kind, allowed=allowed)


def _priced(name: str, kind: Kind = "text", allowed: tuple[str, ...] = ()) -> Column:
    return Column(name=name, kind=kind, priced=True, allowed=allowed)


_FREQUENCIES = ("One-Time", "Recurring", "Usage-Based")
_CHARGE = ("Usage", "Purchase", "Tax", "Credit", "Adjustment")
_SERVICES = (
    "AI and Machine Learning", "Analytics", "Business Applications", "Compute", "Databases",
    "Developer Tools", "Multicloud", "Identity", "Integration", "Internet of Things",
    "Management and Governance", "Media", "Migration", "Mobile", "Networking", "Security",
    "Storage", "Web", "Other",
)  # fmt: skip
# Of the subcategories only those that we use; others are taken as they are.
SUBCATEGORIES = {
    "Data Processing": "Analytics",
    "Analytics Platforms": "Analytics",
    "Streaming Analytics": "Analytics",
    "Data Warehouses": "Databases",
    "Object Storage": "Storage",
}

_COMMON: tuple[Column, ...] = (
    _must("BilledCost", "decimal"),
    _must("BillingAccountId"),
    _blank("BillingAccountName"),
    _must("BillingCurrency", "currency"),
    _must("BillingPeriodStart", "time"),
    _must("BillingPeriodEnd", "time"),
    _must("ChargeCategory", allowed=_CHARGE),
    Column(name="ChargeClass", is_mandatory=True, allowed=("Correction",)),
    _blank("ChargeDescription"),
    _must("ChargePeriodStart", "time"),
    _must("ChargePeriodEnd", "time"),
    _must("ContractedCost", "decimal"),
    _must("EffectiveCost", "decimal"),
    _must("InvoiceIssuerName"),
    _must("ListCost", "decimal"),
    _blank("PricingQuantity", "decimal", priced=True),
    _blank("PricingUnit", "unit", priced=True),
    _must("ServiceCategory", allowed=_SERVICES),
    _must("ServiceName"),
    _more("AvailabilityZone"),
    _more("BillingAccountType"),
    _more("CapacityReservationId"),
    _more("CapacityReservationStatus", allowed=("Used", "Unused")),
    Column(
        name="ChargeFrequency", nullable=False, allowed=("One-Time", "Recurring", "Usage-Based")
    ),
    _more("CommitmentDiscountCategory", allowed=("Spend", "Usage")),
    _more("CommitmentDiscountId"),
    _more("CommitmentDiscountName"),
    _more("CommitmentDiscountQuantity", "decimal"),
    _more("CommitmentDiscountStatus", allowed=("Used", "Unused")),
    _more("CommitmentDiscountType"),
    _more("CommitmentDiscountUnit", "unit"),
    _priced("ConsumedQuantity", "decimal"),
    _priced("ConsumedUnit", "unit"),
    _priced("ContractedUnitPrice", "price"),
    _more("InvoiceId"),
    _priced("ListUnitPrice", "price"),
    _priced("PricingCategory", allowed=("Standard", "Dynamic", "Committed", "Other")),
    _more("PricingCurrency", "currency"),
    _more("PricingCurrencyContractedUnitPrice", "price"),
    _more("PricingCurrencyEffectiveCost", "decimal"),
    _more("PricingCurrencyListUnitPrice", "price"),
    _more("RegionId"),
    _more("RegionName"),
    _more("ResourceId"),
    _more("ResourceName"),
    _more("ResourceType"),
    _more("ServiceSubcategory"),
    _priced("SkuId"),
    _more("SkuMeter"),
    _more("SkuPriceDetails", "json"),
    _priced("SkuPriceId"),
    _more("SubAccountId"),
    _more("SubAccountName"),
    _more("SubAccountType"),
    _more("Tags", "json"),
)
_SINCE_1_3: tuple[Column, ...] = (
    _must("ServiceProviderName"),
    _blank("HostProviderName"),
    _more("AllocatedMethodId"),
    _more("AllocatedMethodDetails", "json"),
    _more("AllocatedResourceId"),
    _more("AllocatedResourceName"),
    _more("AllocatedTags", "json"),
    _more("CommitmentProgramEligibilityDetails", "json"),
    _more("ContractApplied", "json"),
    _more("InvoiceDetailId"),
)
_UNTIL_1_3: tuple[Column, ...] = (_must("ProviderName"), _must("PublisherName"))


def columns(version: Version) -> dict[str, Column]:
    """The columns of a version, by name."""
    own = _SINCE_1_3 if version == "1.4" else _UNTIL_1_3
    return {column.name: column for column in (*_COMMON, *own)}


def guess_version(names: set[str]) -> Version:
    """Which version a file with these columns means to be."""
    return "1.2" if "ProviderName" in names and "ServiceProviderName" not in names else "1.4"
