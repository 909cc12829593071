"""Rules about whose turn it is: writers first, one at a time, within a budget."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.maintenance.coordinate import next_gap, rest_until
from lakehouse_core.maintenance.decisions import POLICY_PREFIX
from lakehouse_core.maintenance.policies import is_open, opens_at
from lakehouse_core.maintenance.rules.base import Finding

if TYPE_CHECKING:
    from lakehouse_core.maintenance.rules.base import Facts, Turn

_GIB = 2**30
# A lease may be given back long before it runs out.
_LONGEST_WAIT = timedelta(minutes=1)


class NotStopped:
    """After a check found another content, nothing happens to a table until a human approves."""

    id = "not-stopped"

    def evaluate(self, facts: Turn) -> Finding | None:
        """See `Rule`."""
        failed, action = facts.books.failed, facts.action
        if failed is None or failed.ended_at is None:
            return None
        is_policy = (action.decided_by or POLICY_PREFIX).startswith(POLICY_PREFIX)
        is_later = action.decided_at is not None and action.decided_at > failed.ended_at
        is_grave = any(not check.get("ok", True) for check in failed.verification)
        if not is_policy and (is_later or not is_grave):
            return None
        return Finding(
            rule=self.id,
            verdict="refuse",
            message=f"Action {failed.action_id} failed on this table at "
            f"{failed.ended_at:%Y-%m-%d %H:%M}: a human has to look at it and approve again",
        )


class Window:
    """What a policy approved runs within the policy's window only."""

    id = "window"

    def evaluate(self, facts: Turn) -> Finding | None:
        """See `Rule`."""
        decided_by = facts.action.decided_by or ""
        number = decided_by.removeprefix(POLICY_PREFIX)
        if not decided_by.startswith(POLICY_PREFIX) or not number.isdecimal():
            return None
        policies = facts.settings.policies
        if not 1 <= int(number) <= len(policies):
            return Finding(
                rule=self.id,
                verdict="void",
                message=f"The policy that approved it, number {number}, is no longer configured",
            )
        window = policies[int(number) - 1].window
        if is_open(window, facts.now):
            return None
        return Finding(
            rule=self.id,
            verdict="wait",
            message=f"It waits for its window, {window}",
            not_before=opens_at(window, facts.now),
        )


class WritersFirst:
    """Maintenance works in the gaps of streams and leaves them half of the time."""

    id = "writers-first"

    def evaluate(self, facts: Facts) -> Finding | None:
        """See `Rule`."""
        rest, gap = rest_until(facts.activity), next_gap(facts.activity.streams, facts.now)
        if rest is not None and rest > facts.now:
            return Finding(
                rule=self.id,
                verdict="wait",
                message="The table was worked on a moment ago: its writers come first until "
                f"{rest:%H:%M:%S}",
                not_before=rest,
            )
        if gap is not None:
            return Finding(
                rule=self.id,
                verdict="wait",
                message=f"A stream writes to the table; its next commit is due {gap:%H:%M:%S}, and "
                "this runs right after it",
                not_before=gap,
            )
        return None


class Budget:
    """What is rewritten within a day has a limit."""

    id = "budget"

    def evaluate(self, facts: Turn) -> Finding | None:
        """See `Rule`."""
        limit, wanted = facts.settings.bytes_per_day, facts.action.plan.input_bytes
        if facts.books.bytes_today + wanted <= limit:
            return None
        is_never = wanted > limit
        return Finding(
            rule=self.id,
            verdict="refuse" if is_never else "wait",
            message=f"It rewrites {wanted / _GIB:.2f} GiB; {facts.books.bytes_today / _GIB:.2f} of "
            f"{limit / _GIB:.2f} GiB a day are used (maintenance.bytes_per_day)",
            not_before=None if is_never else facts.books.room_at,
        )


class MaxRunning:
    """Only so much maintenance runs at a time, over all tables."""

    id = "max-running"

    def evaluate(self, facts: Turn) -> Finding | None:
        """See `Rule`."""
        others = {one.holder for one in facts.books.leases if one.holder != facts.books.holder}
        if len(others) < facts.settings.max_running:
            return None
        return Finding(
            rule=self.id,
            verdict="wait",
            message=f"{len(others)} other runs are at work; maintenance.max_running is "
            f"{facts.settings.max_running}",
        )


class Lease:
    """One maintenance per table at a time."""

    id = "lease"

    def evaluate(self, facts: Turn) -> Finding | None:
        """See `Rule`."""
        for one in facts.books.leases:
            if one.table_id == facts.action.table_id and one.holder != facts.books.holder:
                return Finding(
                    rule=self.id,
                    verdict="wait",
                    message=f"Action {one.action_id} has the table until "
                    f"{one.expires_at:%H:%M:%S}, unless it goes on",
                    not_before=min(one.expires_at, facts.now + _LONGEST_WAIT),
                )
        return None
