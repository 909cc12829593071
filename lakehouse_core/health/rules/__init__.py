"""Health rules, one class per file; a new rule is a file here, an entry below, limits and a share.

Limits are a field of `HealthThresholds` named as the rule's id; the share is in `health.points`.
"""

from lakehouse_core.health.rules.base import Facts, Rule, Signal
from lakehouse_core.health.rules.data_files import DataFiles
from lakehouse_core.health.rules.delete_ratio import DeleteRatio
from lakehouse_core.health.rules.manifests import Manifests
from lakehouse_core.health.rules.oldest_snapshot import OldestSnapshot
from lakehouse_core.health.rules.skew import Skew
from lakehouse_core.health.rules.small_files import SmallFiles
from lakehouse_core.health.rules.snapshots import Snapshots

RULES: tuple[Rule, ...] = (
    SmallFiles(),
    DeleteRatio(),
    DataFiles(),
    Snapshots(),
    Manifests(),
    Skew(),
    OldestSnapshot(),
)

__all__ = ["RULES", "Facts", "Rule", "Signal"]
