"""Cures, one per file: each looks at a table and says what it would do about it, or nothing."""

from lakehouse_core.recommend.cures.base import Cure, Remedy
from lakehouse_core.recommend.cures.compact import Compact
from lakehouse_core.recommend.cures.expire_snapshots import ExpireSnapshots
from lakehouse_core.recommend.cures.rewrite_manifests import RewriteManifests
from lakehouse_core.recommend.cures.rewrite_position_deletes import RewritePositionDeletes

CURES: tuple[Cure, ...] = (
    Compact(),
    RewritePositionDeletes(),
    RewriteManifests(),
    ExpireSnapshots(),
)

__all__ = ["CURES", "Cure", "Remedy"]
