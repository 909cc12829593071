"""From advice to a proposal: it is decided, carried out and proven like any other action."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import MaintenanceError
from lakehouse_core.domain.layout import Layout, LayoutAdvice
from lakehouse_core.domain.maintenance import Action, Change, Evidence, State
from lakehouse_core.layout.workload import to_json
from lakehouse_core.maintenance.decisions import PROPOSER
from lakehouse_core.maintenance.plan import build_plan, plan_hash
from lakehouse_core.recommend import model
from lakehouse_core.recommend.by_hand import RISKS
from lakehouse_core.recommend.propose import SHOWN_READERS
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from lakehouse_core.recommend.facts import Subject
    from lakehouse_core.recommend.layout_advisor import Advised
    from lakehouse_core.store.port import TelemetryStore

# The newest advice of each table, unless the table was rewritten in some order since.
NEWEST_SQL = """
SELECT a.* FROM layout_advice a
WHERE a.advised_at >= $since::TIMESTAMPTZ AND NOT EXISTS (
  SELECT 1 FROM action WHERE action.table_id = a.table_id AND action.state = 'verified'
    AND action.kind IN ('sort', 'zorder', 'hilbert') AND action.ended_at >= a.advised_at)
QUALIFY row_number() OVER (PARTITION BY a.table_id ORDER BY a.advised_at DESC, a.advice_id) = 1
"""


SCAN_BYTES = "scan_bytes"
_KEY = "layout "


def keep_advice(store: TelemetryStore, advised: Advised) -> LayoutAdvice:
    """Write advice down; the recommend agent makes a proposal of it."""
    found = advised.advice
    current = advised.reading.metadata.current
    row = LayoutAdvice(
        advice_id=f"l{secrets.token_hex(6)}",
        table_id=found.table_id,
        advised_at=advised.advised_at,
        snapshot_id=current.snapshot_id if current else None,
        layout=None if found.layout is None else str(spelled(found.layout, advised.columns.names)),
        reason=found.reason,
        target_bytes=found.target_bytes,
        advice=json.dumps(
            asdict(found) | {"batches": advised.batches}, default=str, ensure_ascii=True
        ),
        workload=to_json(advised.workload),
    )
    store.upsert("layout_advice", to_arrow("layout_advice", [row]))
    return row


def spelled(layout: Layout, names: Mapping[str, str]) -> Layout:
    """The layout with its columns as the table spells them."""
    return Layout(
        layout.kind,
        tuple(names.get(one, one) for one in layout.columns),
        tuple(names.get(one, one) for one in layout.primary),
    )


def layout_proposals(
    store: TelemetryStore, subjects: Mapping[str, Subject], now: datetime
) -> list[Action]:
    """What is proposed on account of advice that still stands."""
    if not subjects:
        return []
    settings = next(iter(subjects.values())).config.maintenance
    rows = records(LayoutAdvice, store.read(NEWEST_SQL, since=now - settings.expires_after))
    found = []
    for row in rows:
        subject = subjects.get(row.table_id)
        if subject is not None and row.layout is not None:
            action = _action(subject, row)
            if action is not None:
                found.append(action)
    return found


def layout_key(table_id: str, layout: str) -> str:
    """Table and layout: another layout is another action."""
    return f"{_KEY}{table_id} {layout}"


def is_layout(action: Action) -> bool:
    """Whether it was proposed on account of advice."""
    return action.dedupe_key.startswith(_KEY)


def _action(subject: Subject, row: LayoutAdvice) -> Action | None:
    layout = Layout.parse(str(row.layout))
    said = json.loads(row.advice)
    parameters: dict[str, Any] = {
        "columns": list(layout.columns),
        "target_file_bytes": row.target_bytes,
    }
    if said["batches"]:
        parameters["batches"] = said["batches"]
    if layout.primary:
        parameters["primary"] = list(layout.primary)
    try:
        plan = build_plan(
            layout.action, subject.table, subject.metrics, subject.config, parameters=parameters
        )
    except MaintenanceError:
        return None  # the table was never read: it is looked at again
    predicted = _predicted(subject, said)
    saved = _saved(said)
    cost = model.cost_usd(plan.input_bytes, subject.config.prices)
    return Action(
        action_id=f"a{secrets.token_hex(6)}",
        dedupe_key=layout_key(row.table_id, str(layout)),
        revision=0,
        kind=layout.action,
        table_id=row.table_id,
        state=State.PROPOSED,
        title=f"Arrange rows by {layout}",
        reason=_reason(said),
        evidence=_evidence(said["rows"]),
        evidence_at=row.advised_at,
        predicted=predicted,
        risk=RISKS[layout.action],
        plan=plan,
        plan_hash=plan_hash(plan, predicted),
        gain_usd_month=saved,
        cost_usd=cost,
        priority=model.priority(saved, cost, 0.0, plan.input_bytes),
        proposed_by=PROPOSER,
        proposed_at=subject.now,
        updated_at=subject.now,
        expires_at=subject.now + subject.config.maintenance.expires_after,
    )


def _predicted(subject: Subject, said: Mapping[str, Any]) -> tuple[Change, ...]:
    figures, runs = said["prediction"], max(1, said["runs"])
    changes = [
        Change(
            name=SCAN_BYTES,
            unit="bytes per run",
            before=figures["bytes_now"] / runs,
            after=figures["bytes_then"] / runs,
            low=figures["bytes_low"] / runs,
            high=figures["bytes_high"] / runs,
        ),
        Change(
            name="scan_files",
            unit="files per run",
            before=round(figures["files_now"] / runs, 3),
            after=round(figures["files_then"] / runs, 3),
        ),
        Change(
            name="data_files",
            unit="files",
            before=subject.metrics.data_files,
            after=figures["table_files_then"],
        ),
    ]
    saved = _saved(said)
    if saved is not None:
        then = figures["bytes_then"]
        error = figures["bytes_high"] / then - 1 if then else 0.0  # of bytes and of their cost
        unsure = abs(float(said["usd_month_then"])) * error
        changes.append(
            Change(
                name="saving_usd_month",
                unit="USD/month, modelled",
                before=0.0,
                after=float(saved),
                low=round(float(saved) - unsure, 6),
                high=round(float(saved) + unsure, 6),
            )
        )
    return tuple(changes)


def _saved(said: Mapping[str, Any]) -> Decimal | None:
    now, then = said["usd_month_now"], said["usd_month_then"]
    return None if now is None or then is None else Decimal(now) - Decimal(then)


def _reason(said: Mapping[str, Any]) -> str:
    used = [one for one in said["columns"] if one["cost_share"] > 0][:4]
    columns = ", ".join(f"{one['column']} {one['cost_share']:.0%}" for one in used)
    engines = sorted({row["engine_id"] for row in said["rows"]})
    return (
        f"{said['reason']}; {said['runs']:,} runs on {', '.join(engines)} filter on (share of scan "
        f"cost) {columns}"
    )


def _evidence(rows: Iterable[Mapping[str, Any]]) -> tuple[Evidence, ...]:
    found = []
    for row in list(rows)[:SHOWN_READERS]:
        now, then = row["usd_month_now"], row["usd_month_then"]
        found.append(
            Evidence(
                engine_id=row["engine_id"],
                template_id=row["template_id"],
                runs=row["runs"],
                bytes_scanned=int(row["bytes_now"] * row["runs"]),
                execution_ms=None,
                saving_usd_month=None if now is None else Decimal(now) - Decimal(then),
            )
        )
    return tuple(found)
