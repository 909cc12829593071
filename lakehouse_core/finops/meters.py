"""What was used of an engine in an hour, as quantities that a price can be put on. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.attribution import HOUR_US
from lakehouse_core.domain.cost import TB, Method

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ENGINE_FREE_SHARE = Decimal("0.10")  # of a day's compute credits: so much cloud services are free
MINUTE_US = 60_000_000
NOT_TOLD = "not metered by the engine yet: time of execution at the credits of its size"
NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A quantity that was metered in an hour, exactly, before it has a price."""

    meter: str
    resource: str
    quantity: Decimal
    method: Method
    source: str
    attributed: Decimal | None = None
    capacity: int | None = None
    reason: str | None = None


@dataclass(slots=True)
class Facts:
    """What is known of one engine in one hour.

    Attributes:
        runs: resource → pieces of queries.
        cpu_us: resource → processor time of its queries.
        scanned: resource → bytes, as they are billed.
        up_us: how long it was up.
        metered: what the engine itself metered.
        sized: resource → how long it executed, and the credits of an hour at its size.
        credited: resources of which the engine says what each query used.
        slots: Flink job → microseconds of all its slots.
        billed: meters and resources that an imported bill is about; '' for all resources.
        covered: resources whose queries a bill's charges are split over; '' for all.
    """

    runs: dict[str, int] = field(default_factory=dict)
    cpu_us: dict[str, int] = field(default_factory=dict)
    scanned: dict[str, int] = field(default_factory=dict)
    up_us: int = 0
    metered: list[dict[str, Any]] = field(default_factory=list)
    sized: dict[str, tuple[int, int]] = field(default_factory=dict)
    credited: set[str] = field(default_factory=set)
    slots: dict[str, int] = field(default_factory=dict)
    billed: set[tuple[str, str]] = field(default_factory=set)
    covered: set[str] = field(default_factory=set)

    def is_billed(self, meter: str, resource: str) -> bool:
        """Whether a bill says what this cost."""
        return not self.billed.isdisjoint(((meter, ""), (meter, resource)))


def _uptime(fact: Facts) -> list[Line]:
    if not fact.up_us:
        return []
    return [
        Line(
            meter="compute",
            resource="",
            quantity=_hours(fact.up_us),
            method="seconds",
            source="measured",
            capacity=fact.up_us,
        )
    ]


def _cores(fact: Facts) -> list[Line]:
    if not fact.runs:
        return []
    return [
        Line(
            meter="compute",
            resource=resource,
            quantity=_hours(used),
            method="cpu",
            source="measured",
        )
        for resource, used in _by_bill(fact, "compute", fact.cpu_us).items()
    ]


def _scanned(fact: Facts) -> list[Line]:
    if not fact.runs:
        return []
    return [
        Line(
            meter="scan",
            resource=resource,
            quantity=Decimal(used) / TB,
            method="bytes",
            source="engine",
        )
        for resource, used in _by_bill(fact, "scan", fact.scanned).items()
    ]


def _by_bill(fact: Facts, meter: str, used: Mapping[str, int]) -> dict[str, int]:
    """What the engine's queries used: one sum, unless a bill is about some of its resources."""
    if any(name == meter and resource for name, resource in fact.billed):
        return dict(sorted(used.items()))
    return {"": sum(used.values())}


def _credits(fact: Facts) -> list[Line]:
    """What the engine metered; where it has not yet, the time of execution at the size's credits.

    A warehouse is charged for a minute at least; how long it stayed up after its queries is not
    known before the engine tells.
    """
    told = [row for row in fact.metered if row["unit"] == "credit"]
    metered = {row["resource"] for row in told if row["meter"] == "compute"}
    estimated = [
        Line(
            meter="compute",
            resource=resource,
            quantity=_hours(max(busy_us, MINUTE_US)) * credits_per_hour,
            method="seconds",
            source="measured",
            reason=NOT_TOLD,
        )
        for resource, (busy_us, credits_per_hour) in sorted(fact.sized.items())
        if resource not in metered
    ]
    return [_credit_line(row) for row in told] + estimated


def _credit_line(row: Mapping[str, Any]) -> Line:
    quantity, reason = row["quantity"], None
    if row["meter"] == "cloud_services" and row["day_services"]:
        free = ENGINE_FREE_SHARE * (row["day_compute"] or 0)
        billed = max(NOTHING, row["day_services"] - free)
        quantity = quantity * billed / row["day_services"]
        reason = "what exceeds a tenth of the day's compute credits, by its share of the day"
    return Line(
        meter=row["meter"],
        resource=row["resource"],
        quantity=quantity,
        attributed=row["attributed"] if row["meter"] == "compute" else None,
        method="seconds",
        source="engine",
        reason=reason,
    )


def _slots(fact: Facts) -> list[Line]:
    return [
        Line(
            meter="compute",
            resource=job_id,
            quantity=_hours(slot_us),
            method="query",
            source="measured",
        )
        for job_id, slot_us in sorted(fact.slots.items())
    ]


# Unit of a price → what is metered for it.
LINES: Mapping[str, Callable[[Facts], list[Line]]] = {
    "cluster_hour": _uptime,
    "node_hour": _uptime,
    "core_hour": _cores,
    "tb_scanned": _scanned,
    "credit": _credits,
    "slot_hour": _slots,
}


def _hours(microseconds: int) -> Decimal:
    return Decimal(microseconds) / HOUR_US
