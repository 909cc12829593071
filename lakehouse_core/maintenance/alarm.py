"""An action whose check failed, told to people through the channels that budgets use too."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from lakehouse_core.finops.alerts import Alert

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from lakehouse_core.domain.maintenance import Action

KIND = "maintenance"
WHAT_NOW = (
    "Nothing more happens to this table by itself. Look at the action, and approve again what is "
    "to be done: lakehelm maintain show {action}"
)


def alarm_of(action: Action, notify: Sequence[str], now: datetime) -> Alert:
    """The alert about an action that failed its check; one per action, however often it is told."""
    began = action.started_at or action.updated_at
    body = [
        f"What: {action.kind} on {action.table_id}, action {action.action_id}.",
        f"Found: {action.explanation or 'no reason is known'}",
        f"Since: {began:%Y-%m-%d %H:%M} UTC.",
        WHAT_NOW.format(action=action.action_id),
    ]
    return Alert(
        alert_id=f"{KIND}:{action.table_id}:{action.action_id}",
        kind=KIND,
        subject=action.table_id,
        scope=f"{action.kind} on {action.table_id}",
        title=f"Maintenance of {action.table_id} failed its check",
        body="\n".join(body),
        since=began,
        raised_at=now,
        amount=Decimal(0),
        expected=Decimal(0),
        currency="",
        channels=tuple(notify),
        delivered={},
        settled=not notify,
    )
