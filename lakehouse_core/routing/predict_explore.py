"""Trying an engine about which little is known, within a budget of traffic and of worth.

Whether a statement is tried elsewhere hangs on its id alone, so that explaining a decision later
gives the same answer; a preview without an id is never tried. A statement that waits is decided
about again and again: its last decision counts, once.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.routing.predict_choice import Choice
    from lakehouse_core.routing.profiles import Profile

_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may be spent on learning.

    Attributes:
        share: of the statements, at most.
        worth: of what all statements are worth, at most: seconds or money beyond the choice.
        most_ratio: an engine known to take so many times as long is not tried.
        enough_runs: beyond so many runs nothing is tried any more.
    """

    share: float = 0.02
    worth: float = 0.02
    most_ratio: float = 5.0
    enough_runs: float = 12.0


@dataclass(slots=True)
class _Account:
    """Of the statements drawn: what they are worth, and what was spent beyond their choices."""

    worth: float = 0.0
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Lot:
    """A statement that may be tried elsewhere.

    Attributes:
        gateway_id: of the statement.
        account: whose budget it is: the group with the objective.
        budget: what may be spent.
    """

    gateway_id: str
    account: str
    budget: Budget

    @property
    def is_drawn(self) -> bool:
        """Whether the lot falls on it."""
        lot = zlib.crc32(self.gateway_id.encode()) / 2**32
        return bool(self.gateway_id) and lot < self.budget.share


class Explorer:
    """Keeps the accounts of what was tried; for any number of threads."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = defaultdict(_Account)
        self._booked: OrderedDict[str, tuple[_Account, float, float]] = OrderedDict()
        self._lock = Lock()

    def pick(
        self, lot: Lot, engines: Sequence[str], choice: Choice, profiles: Sequence[Profile]
    ) -> str | None:
        """An engine to try for a drawn statement instead of the choice, or None.

        Args:
            lot: the statement.
            engines: that can take it.
            choice: what is best by what is known.
            profiles: of its template.
        """
        budget = lot.budget
        runs: dict[str, float] = {}
        middle: dict[str, float] = {}
        for one in profiles:
            runs[one.engine_id] = runs.get(one.engine_id, 0.0) + one.weight
            if one.p50_value is not None:
                middle[one.engine_id] = max(one.p50_value, middle.get(one.engine_id, 0.0))
        usual = middle.get(choice.engine)
        unknown = [one for one in engines if one != choice.engine]
        unknown = [one for one in unknown if runs.get(one, 0.0) < budget.enough_runs]
        if usual is not None:
            limit = usual * budget.most_ratio
            unknown = [one for one in unknown if middle.get(one, 0.0) <= limit]
        if not unknown:
            return None
        tried = min(unknown, key=lambda one: (runs.get(one, 0.0), one))
        # Of an engine that never ran it nothing is known: it may take twice as long.
        extra = max(middle.get(tried, 2.0 * (usual or 0.0)) - (usual or 0.0), 0.0)
        return tried if self._book(lot, usual or 0.0, extra) else None

    def spent(self, account: str) -> float:
        """What tries of an account have cost beyond the choices, as expected."""
        return self._accounts[account].spent

    def _book(self, lot: Lot, worth: float, extra: float) -> bool:
        """Spend, if there is enough; what was booked for the statement before is given back."""
        with self._lock:
            account = self._accounts[lot.account]
            before = self._booked.pop(lot.gateway_id, None)
            if before is not None:
                before[0].worth -= before[1]
                before[0].spent -= before[2]
            account.worth += worth
            # One statement in 1 / share is drawn: together they are worth that many times more.
            budget = lot.budget
            is_enough = account.spent + extra <= budget.worth * account.worth / budget.share
            spent = extra if is_enough else 0.0
            account.spent += spent
            self._booked[lot.gateway_id] = account, worth, spent
            while len(self._booked) > _REMEMBERED:
                self._booked.popitem(last=False)
        return is_enough
