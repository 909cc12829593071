"""The safety rules, asked right before an action runs, from a fresh look at its table.

A rule answers with a `Finding` when the action must not run now: it may wait, it is refused, or its
approval is void because the table is not the one it was given for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.maintenance.rules import RULES, TURN_RULES, Facts, Finding

if TYPE_CHECKING:
    from collections.abc import Collection

    from lakehouse_core.domain.maintenance import Action
    from lakehouse_core.maintenance.rules import Turn

# The gravest first: an action that may never run does not wait.
_ORDER = ("void", "refuse", "wait")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What the rules say of one action."""

    findings: tuple[Finding, ...] = ()

    @property
    def worst(self) -> Finding | None:
        """The one that decides; None: the action may run."""
        return min(self.findings, key=lambda one: _ORDER.index(one.verdict), default=None)


def check(facts: Facts, *, but: Collection[str] = ()) -> Preflight:
    """Ask every rule that the plan names."""
    wanted = set(facts.action.plan.preconditions) - set(but)
    findings = [rule.evaluate(facts) for rule in RULES if rule.id in wanted]
    return Preflight(findings=tuple(one for one in findings if one is not None))


def check_turn(turn: Turn) -> Preflight:
    """Ask the rules that need no look at the table."""
    wanted = set(turn.action.plan.preconditions)
    findings = [rule.evaluate(turn) for rule in TURN_RULES if rule.id in wanted]
    return Preflight(findings=tuple(one for one in findings if one is not None))


def unknown_rules(action: Action) -> set[str]:
    """Preconditions that no rule here stands for: a plan of another version."""
    return set(action.plan.preconditions) - {rule.id for rule in RULES}
