"""How long a failing job waits: doubling, bounded, with jitter, forgotten at the first success."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

LONGEST = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class BackOff:
    """The waits of one job."""

    every: timedelta
    longest: timedelta = LONGEST

    def delay(self, failures: int, luck: random.Random) -> timedelta:
        """The wait after so many failures in a row (1 = the first).

        Never shorter than the job's own interval, never longer than the bound (or the interval,
        when that is longer); 10 % of it is chance, so that jobs broken by one cause do not return
        in step.
        """
        bound = max(self.longest, self.every)
        grown = min(bound, self.every * 2.0 ** min(failures, 30))
        return max(self.every, grown * (1 - 0.1 * luck.random()))
