"""Approvals without a human: named kinds on named tables, within a window of the day and a size.

What deletes files is approved by a policy only when it is named like any other kind; there is no
pattern for kinds. A table on which an action failed waits for a human.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from lakehouse_core.domain.maintenance import State

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from lakehouse_core.config.models import MaintenancePolicy
    from lakehouse_core.domain.maintenance import Action

_MINUTES = 24 * 60


def approving_policy(
    action: Action,
    policies: Sequence[MaintenancePolicy],
    now: datetime,
    *,
    failed_tables: Collection[str] = (),
) -> int | None:
    """The number of the first policy that approves an action now, counted from 1; None: none does.

    Args:
        action: a proposal.
        policies: as configured, in order.
        now: the moment.
        failed_tables: tables whose last action failed.
    """
    if action.state is not State.PROPOSED or now >= action.expires_at:
        return None
    if action.table_id in failed_tables:
        return None
    for number, policy in enumerate(policies, start=1):
        if _fits(policy, action) and is_open(policy.window, now):
            return number
    return None


def is_open(window: str | None, now: datetime) -> bool:
    """Whether a moment is within `22:00-04:00` (UTC); the end is not part of it.

    A window that ends where it begins is the whole day.
    """
    if window is None:
        return True
    start, end = (_minute(text) for text in window.split("-"))
    moment = now.astimezone(UTC)
    minute = moment.hour * 60 + moment.minute
    return (minute - start) % _MINUTES < ((end - start) % _MINUTES or _MINUTES)


def opens_at(window: str | None, now: datetime) -> datetime:
    """When a window opens next; now, when it is open."""
    if window is None or is_open(window, now):
        return now
    start = _minute(window.split("-")[0])
    moment = now.astimezone(UTC).replace(second=0, microsecond=0)
    return moment + timedelta(minutes=(start - moment.hour * 60 - moment.minute) % _MINUTES)


def actor_of(number: int) -> str:
    """The name a policy signs with."""
    return f"policy:{number}"


def _fits(policy: MaintenancePolicy, action: Action) -> bool:
    return (
        action.kind in policy.kinds
        and any(fnmatchcase(action.table_id, pattern) for pattern in policy.tables)
        and (policy.max_bytes is None or action.plan.input_bytes <= policy.max_bytes)
    )


def _minute(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)
