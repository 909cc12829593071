"""Charges and their split as attribution leaves them, put into a real store by a few words."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import md5
from typing import TYPE_CHECKING, Any

from tests.ui.scenario import rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.store.port import TelemetryStore

HOUR = timedelta(hours=1)
_COSTS = ("list_cost", "contracted_cost", "cost")


@dataclass(frozen=True, kw_only=True)
class Part:
    """A piece of a charge: a query's when it has a user, else idle, unallocated or a resource."""

    cost: str
    kind: str = "query"
    user: str = ""
    template: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()
    statement: str = "select"
    queries: int = 1
    failed_cost: str = "0"


@dataclass
class Ledger:
    """Collects rows; `write` puts them into the store."""

    charges: list[dict[str, Any]] = field(default_factory=list)
    hours: list[dict[str, Any]] = field(default_factory=list)
    labels: dict[str, dict[str, Any]] = field(default_factory=dict)
    queries: list[dict[str, Any]] = field(default_factory=list)

    def charge(
        self,
        hour_at: datetime,
        engine: str,
        *parts: Part,
        currency: str = "USD",
        basis: str = "modelled",
        meter: str = "uptime",
        resource: str = "",
        method: str = "seconds",
        is_provisional: bool = False,
    ) -> None:
        """A charge that is the sum of its parts."""
        total = sum((Decimal(part.cost) for part in parts), Decimal(0))
        key = {
            "hour_at": hour_at,
            "engine_id": engine,
            "resource": resource,
            "meter": meter,
            "price_id": f"{engine}@2026-01-01",
        }
        shared = {"currency": currency, "basis": basis, "is_provisional": is_provisional}
        costs = dict.fromkeys(_COSTS, total)
        self.charges.append(
            key
            | shared
            | costs
            | {
                "unit": "hour",
                "quantity": Decimal(1),
                "method": method,
                "source": "measured",
                "minimum_bytes": 0,
                "failed_is_free": False,
                "computed_at": hour_at + HOUR,
            }
        )
        self.hours += self._split(key | shared, parts)
        for part in parts:
            if part.kind == "query":
                self._query(key | shared, part)

    def _split(self, charge: dict[str, Any], parts: Sequence[Part]) -> list[dict[str, Any]]:
        """The rows of a charge, one per label and kind."""
        merged: dict[tuple[str, str], dict[str, Any]] = {}
        for part in parts:
            label = self._label(charge["engine_id"], part) if part.kind == "query" else ""
            row = merged.setdefault(
                (part.kind, label),
                charge
                | {"kind": part.kind, "label_id": label, "reason": ""}
                | {"runs": 0, "queries": 0, "failed": 0, "execution_us": 0}
                | dict.fromkeys((*_COSTS, "failed_cost"), Decimal(0)),
            )
            row["runs"] += 1
            row["queries"] += part.queries if part.kind == "query" else 0
            row["execution_us"] += 1_000_000 * part.queries
            for name in _COSTS:
                row[name] += Decimal(part.cost)
            row["failed_cost"] += Decimal(part.failed_cost)
        return list(merged.values())

    def _query(self, charge: dict[str, Any], part: Part) -> None:
        self.queries.append(
            {name: charge[name] for name in ("hour_at", "engine_id", "currency", "basis")}
            | {"query_id": f"q{len(self.queries)}", "status": "finished"}
            | {"label_id": self._label(charge["engine_id"], part)}
            | {"runs": 1, "execution_us": 1_000_000, "cost": Decimal(part.cost)}
        )

    def write(self, store: TelemetryStore) -> None:
        """Everything so far."""
        for table, rows in (
            ("charge", self.charges),
            ("cost_hour", self.hours),
            ("cost_label", list(self.labels.values())),
            ("cost_query", self.queries),
        ):
            store.upsert(table, rows_of(table, rows))

    def _label(self, engine: str, part: Part) -> str:
        values = {
            "engine_id": engine,
            "template_id": part.template,
            "user_name": part.user,
            "source": part.source,
            "workload_group": "",
            "statement_kind": part.statement,
            "tags": list(part.tags),
        }
        label = md5(repr(values).encode(), usedforsecurity=False).hexdigest()
        self.labels[label] = {"label_id": label, **values}
        return label
