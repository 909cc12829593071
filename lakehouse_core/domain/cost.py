"""Costs: prices, what an hour was charged, and how the charge was split.

The records are rows of the store (`price`, `bill_line`, `charge`, `cost_hour`); the words are the
same on every surface.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

# What a price is per.
Unit = Literal[
    "cluster_hour",
    "node_hour",
    "core_hour",
    "tb_scanned",
    "credit",
    "slot_hour",
    "gb_month",
    "thousand_requests",
]
# How a charge is split over the queries of its hour; `credits` is `seconds` where the engine itself
# says what its queries used.
Method = Literal["seconds", "credits", "cpu", "bytes", "query", "resource", "none"]
SPLIT_METHODS = ("seconds", "credits", "cpu", "bytes", "query")
# What a figure rests on: an invoice, the engine's own meter, or what we measured.
Basis = Literal["billed", "list", "modelled", "unpriced", "pending"]
Kind = Literal["query", "resource", "idle", "unallocated"]

UNKNOWN_ENGINE = "(unknown)"  # of a bill; no engine can be called so
STORAGE = "storage:"  # how the storage of a catalog is called where engines are
UNALLOCATED = "unallocated"  # the workload of what no rule wants
HOURS_PER_MONTH = 730  # how clouds turn a month into hours
GB = 10**9
TB = 10**12
# A query runs on the resource that one of these tags names; it is metered there.
RESOURCE_TAGS = ("warehouse", "workgroup")
SIZE_TAG = "warehouse_size"
# Credits per hour of a Snowflake warehouse (first generation, one cluster).
CREDITS_PER_HOUR = {
    "X-Small": 1,
    "Small": 2,
    "Medium": 4,
    "Large": 8,
    "X-Large": 16,
    "2X-Large": 32,
    "3X-Large": 64,
    "4X-Large": 128,
    "5X-Large": 256,
    "6X-Large": 512,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A price while it is valid; a row of `price`.

    Attributes:
        name: what the configuration, or the list of defaults, calls it.
        engine: the engine it is for; None: those of `engine_type`, or all.
        sku: storage class, request class or edition it is for.
        list_rate: what the provider publishes, per unit.
        contracted_rate: what was agreed.
        effective_rate: what is paid in the end, with commitments spread: costs are of this one.
        minimum_bytes: what a query is charged for at least, when it reads anything.
        failed_is_free: a failed query is not charged.
        valid_to: the first moment it is not valid any more; None: open.
        origin: `default` (a documented list price) or `config`.
        source: who published it.
        source_on: when it was read there.
        detail: how the rate was put together, e.g. nodes and their spot share.
    """

    price_id: str
    name: str
    engine: str | None
    engine_type: str | None
    unit: Unit
    sku: str | None
    list_rate: Decimal
    contracted_rate: Decimal
    effective_rate: Decimal
    currency: str
    minimum_bytes: int | None = None
    failed_is_free: bool = False
    valid_from: datetime
    valid_to: datetime | None = None
    origin: Literal["default", "config"] = "config"
    source: str | None = None
    source_on: date | None = None
    detail: str | None = None
    known_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BillImport:
    """A bill that was imported; a row of `bill_import`.

    Attributes:
        new_lines: lines that did not count before.
        superseded: lines of earlier imports that it took out.
        refused: lines that were not taken, with the reason; the first of them.
    """

    import_id: str
    file_name: str
    imported_at: datetime
    lines: int
    new_lines: int
    superseded: int
    refused_lines: int
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What an hour of an engine cost before it is split; a row of `charge`.

    Attributes:
        resource: the warehouse, workgroup, job or storage class it is for; '' for the engine.
        meter: compute, scan, cloud_services, storage, …
        price_id: the price, or the line of a bill, that it was made with; '' for none.
        attributed: the part of the quantity that the engine says its queries used.
        capacity: what there was to use, in the weights of the method; None: what was used.
        cost: at the effective rate.
        billed_cost: what an invoice asks for, where that is told beside the cost.
        charge_category: Usage, Purchase, Tax, Credit or Adjustment, where a bill says so.
        reason: why it is not split, or not priced.
    """

    hour_at: datetime
    engine_id: str
    resource: str
    meter: str
    price_id: str
    unit: str
    quantity: Decimal
    attributed: Decimal | None = None
    capacity: int | None = None
    method: Method
    list_cost: Decimal
    contracted_cost: Decimal
    cost: Decimal
    currency: str
    basis: Basis
    source: Literal["engine", "measured", "imported", "none"]
    minimum_bytes: int = 0
    failed_is_free: bool = False
    is_provisional: bool = False
    reason: str | None = None
    computed_at: datetime
    billed_cost: Decimal | None = None
    charge_category: str | None = None
