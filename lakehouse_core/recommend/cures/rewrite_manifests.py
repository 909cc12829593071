"""Many manifests: write fewer, larger ones."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse_core.domain.maintenance import Change, Kind
from lakehouse_core.maintenance.plan import build_plan
from lakehouse_core.recommend.cures.base import Remedy

if TYPE_CHECKING:
    from lakehouse_core.recommend.facts import Subject

TARGET_MANIFEST_BYTES = 8 * 2**20  # Iceberg's own default
RISK = (
    "Writes metadata only: no data file is read or written. Undo: roll back to the snapshot before."
)


class RewriteManifests:
    """Many manifests: planning opens each of them. Fewer and larger ones list the same files."""

    def remedy(self, subject: Subject) -> Remedy | None:
        """Rewrite manifests when clearly fewer would be left."""
        metrics = subject.metrics
        reasons = subject.suffers_from("manifests")
        left = max(1, math.ceil(metrics.manifest_bytes / TARGET_MANIFEST_BYTES))
        kept = 1 - subject.config.maintenance.min_difference
        if not reasons or left > metrics.manifests * kept:
            return None
        change = Change(
            name="manifests",
            unit="manifests",
            before=metrics.manifests,
            after=left,
            low=1,
            # Delete manifests stay, and each partition spec has manifests of its own.
            high=min(2 * left + 4, metrics.manifests),
        )
        after = replace(metrics, manifests=left)
        return Remedy(
            kind=Kind.REWRITE_MANIFESTS,
            plan=build_plan(Kind.REWRITE_MANIFESTS, subject.table, metrics, subject.config),
            title=f"Write {metrics.manifests:,} manifests as {left:,}",
            reason="; ".join(reasons),
            risk=RISK,
            after=after,
            live=after,
            changes=(change,),
        )
