"""Which Iceberg snapshots a physical plan reads: Iceberg's scans name theirs in the plan's text."""

from __future__ import annotations

import re

_SCAN = re.compile(r"\bIceberg\w*Scan\(table=[^,\n]+, schemaId=-?\d+, snapshotId=(\d+),")


def snapshot_ids(plan: str) -> list[int]:
    """The snapshots of a plan description, each once, in the order of the plan."""
    return list(dict.fromkeys(int(found) for found in _SCAN.findall(plan)))
