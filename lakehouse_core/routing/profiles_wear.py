"""What worn tables cost each engine: small files and deletes, in doublings, and what one adds.

    wear_of(files=4_000, size=2 * GIB)      # 7.97: 250 times as many files as needed
    slopes.learn("trino", wear, log_seconds, others)
    slopes.of("trino")                      # log seconds per doubling

How much an engine suffers is learnt from its own runs: of a template that ran over a table in two
conditions. Runs are then told as they would be in the table's present condition, so that a worn
table drives work to engines that bear it, and a compaction brings it back without a new run.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

GOOD_FILE_BYTES = 128 * 2**20
_MOST = 1.0  # a doubling of the files never counts for more than e times the time
_LEAST_STEP = 1.0  # conditions nearer than that are the same
_RIDGE = 8.0
_FADING = 0.995
_ABSURD = math.log(50.0)


def wear_of(files: float | None, size: float | None) -> float | None:
    """Doublings of the number of files beyond what the bytes need; None: not known."""
    if files is None or size is None or not files:
        return None
    return max(0.0, math.log2(files / max(1.0, math.ceil(size / GOOD_FILE_BYTES))))


@dataclass(slots=True)
class _Sums:
    both: float = 0.0
    wear: float = 0.0


class WearSlopes:
    """One slope per engine, updated with every run; whoever uses it sees to locking."""

    def __init__(self) -> None:
        self._sums: dict[str, _Sums] = defaultdict(_Sums)

    def learn(
        self, engine_id: str, wear: float, log: float, others: Sequence[tuple[float, float]]
    ) -> None:
        """Take in one run, beside others of its template on its engine as (wear, log seconds)."""
        if not others:
            return
        step = wear - sum(one for one, _ in others) / len(others)
        if abs(step) < _LEAST_STEP:
            return
        rise = log - sum(one for _, one in others) / len(others)
        sums = self._sums[engine_id]
        sums.both = sums.both * _FADING + step * max(-_ABSURD, min(rise, _ABSURD))
        sums.wear = sums.wear * _FADING + step * step

    def of(self, engine_id: str) -> float:
        """Log seconds that a doubling adds on an engine; 0 as long as nothing is known."""
        sums = self._sums.get(engine_id)
        if sums is None:
            return 0.0
        return max(0.0, min(sums.both / (sums.wear + _RIDGE), _MOST))
