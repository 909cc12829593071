"""From a signal to points: the one place where the score is defined.

Each rule may take at most its share of the points that are left:

| rule                 | takes at most |
|----------------------|---------------|
| small_file_share     | 75 %          |
| delete_ratio         | 75 %          |
| data_files           | 60 %          |
| snapshots            | 50 %          |
| manifests            | 50 %          |
| skew                 | 50 %          |
| oldest_snapshot_days | 25 %          |

How much of its share a rule takes depends on its signal alone: nothing below the warning limit,
25 % at it, growing evenly to 60 % at the critical limit, and beyond that towards all of it, never
quite reaching it (80 % at twice the critical limit). The score is what is left of 100, so it never
rises when a signal worsens, and one critical signal of the first rules leaves 55 or less.

The points a rule lost are what it took when its turn came, heaviest rule first: they add up to
100 minus the score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.domain.health import HealthState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.config.models import Threshold

AT_WARNING = 0.25
AT_CRITICAL = 0.60

SHARES: Mapping[str, float] = {
    "small_file_share": 0.75,
    "delete_ratio": 0.75,
    "data_files": 0.60,
    "snapshots": 0.50,
    "manifests": 0.50,
    "skew": 0.50,
    "oldest_snapshot_days": 0.25,
}


def state_of(value: float, limits: Threshold) -> HealthState:
    """The state a value stands for; reaching a limit counts."""
    if value >= limits.critical:
        return HealthState.CRITICAL
    return HealthState.WARNING if value >= limits.warning else HealthState.HEALTHY


def severity(value: float, limits: Threshold) -> float:
    """How much of its share a rule takes, 0 to 1, never falling when the value grows."""
    if value < limits.warning:
        return AT_CRITICAL if value >= limits.critical else 0.0
    if value >= limits.critical:
        # A limit of zero means that anything at all is critical.
        excess = limits.critical / value if value > 0 else 1.0
        return 1.0 - (1.0 - AT_CRITICAL) * max(excess, 0.0)
    way = (value - limits.warning) / (limits.critical - limits.warning)
    return AT_WARNING + (AT_CRITICAL - AT_WARNING) * way
