"""Rows of `action`, `decision_request`, `audit` and `table_lease` as records."""

from __future__ import annotations

import json
from dataclasses import fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.maintenance import (
    Action,
    AuditEntry,
    Change,
    DecisionRequest,
    Evidence,
    Kind,
    State,
    TableLease,
    plan_from_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

_CHANGE = tuple(field.name for field in fields(Change))


def actions_of(rows: pa.Table) -> tuple[Action, ...]:
    """One action per row of `action`; the JSON columns become records."""
    return tuple(_action(row) for row in rows.to_pylist())


def requests_of(rows: pa.Table) -> tuple[DecisionRequest, ...]:
    """One wish per row of `decision_request`."""
    return tuple(DecisionRequest(**row) for row in rows.to_pylist())


def audit_of(rows: pa.Table) -> tuple[AuditEntry, ...]:
    """One entry per row of `audit`."""
    return tuple(AuditEntry(**row) for row in rows.to_pylist())


def leases_of(rows: pa.Table) -> tuple[TableLease, ...]:
    """One lease per row of `table_lease`."""
    return tuple(TableLease(**row) for row in rows.to_pylist())


def _action(row: dict[str, Any]) -> Action:
    return Action(
        **row
        | {
            "kind": Kind(row["kind"]),
            "state": State(row["state"]),
            "evidence": tuple(_evidence(one) for one in json.loads(row["evidence"])),
            "predicted": _changes(json.loads(row["predicted"])),
            "plan": plan_from_json(json.loads(row["plan"])),
            "realised": _changes(json.loads(row["realised"])),
            "verification": tuple(json.loads(row["verification"])),
        }
    )


def _changes(documents: Iterable[dict[str, Any]]) -> tuple[Change, ...]:
    return tuple(Change(**_known(one)) for one in documents)


def _known(document: dict[str, Any]) -> dict[str, Any]:
    return {name: document.get(name) for name in _CHANGE}


def _evidence(document: dict[str, Any]) -> Evidence:
    saving = document["saving_usd_month"]
    return Evidence(**document | {"saving_usd_month": None if saving is None else Decimal(saving)})
