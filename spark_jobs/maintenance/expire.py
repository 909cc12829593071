"""Old snapshots given up: chosen one by one, expired by Iceberg's procedure, checked afterwards.

The procedure gets a list of ids and an age that nothing has, so that it expires those and no
others: left to itself it also expires by the table's default age. Files go only when no snapshot
that stays reaches them; that is the procedure's own work, and is verified here.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.maintenance.arrow_files import local_path
from spark_jobs.maintenance.outcome import RefusedError, conflict_of, is_unknown_commit
from spark_jobs.maintenance.report import Check
from spark_jobs.maintenance.work import StageResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.domain.maintenance import Stage
    from spark_jobs.maintenance.plan import Guards
    from spark_jobs.maintenance.table import LakeTable, Metadata
    from spark_jobs.maintenance.work import Work

DEFAULT_AGE = timedelta(days=5)  # Iceberg's
MOST_ASKED = 2_000  # files on a remote store that are asked for one by one


def expire_snapshots(work: Work, stage: Stage) -> StageResult:
    """Give up old snapshots that nobody needs."""
    return work.retried(lambda: _attempt(work, stage.arguments))


def _attempt(work: Work, arguments: dict[str, Any]) -> StageResult:
    metadata = work.pin()
    if not metadata.is_gc_enabled():
        raise RefusedError(
            f"Snapshots of {work.table.name} are not expired: gc.enabled is false, its files may "
            "belong to another table too"
        )
    expired = choose(metadata, work.request.guards, arguments, datetime.now(UTC))
    if not expired:
        return StageResult(is_changed=False, facts={"reason": "no snapshot is old enough"})
    _refuse_more(work, metadata, expired)
    started = time.monotonic()
    work.stop.check()
    try:
        result = _call(work, expired, arguments)
    except Exception as error:
        # The commit is one thing, the deletions another: what is gone from the metadata is expired.
        gone = not set(expired) & set(work.pin().snapshots)
        if not gone or (conflict_of(error) is None and not is_unknown_commit(error)):
            raise
        result = {}
    facts = {"expired": len(expired), "seconds": round(time.monotonic() - started, 3), **result}
    return StageResult(is_changed=True, facts=facts)


def choose(
    metadata: Metadata, guards: Guards, arguments: dict[str, Any], now: datetime
) -> list[int]:
    """The snapshots that may go, oldest first.

    Kept are: what a branch or tag points to, the newest of every branch (the stricter of guard,
    argument and table property), what is younger than the age, and what somebody reads.
    """
    properties = metadata.properties
    asked = [
        guards.min_snapshots,
        int(arguments.get("retain_last") or 1),
        int(properties.get("history.expire.min-snapshots-to-keep", "1")),
    ]
    limit_ms = int(_older_than(guards, arguments, properties, now).timestamp() * 1_000)
    kept = set(guards.keep_snapshot_ids)
    for ref in metadata.refs.values():
        line = metadata.ancestors(ref["snapshot-id"])
        count = max(1, *asked, int(ref.get("min-snapshots-to-keep", 1)))
        kept |= {one.snapshot_id for one in line[: count if ref["type"] == "branch" else 1]}
    if metadata.current_snapshot_id is not None:
        line = metadata.ancestors(metadata.current_snapshot_id)
        kept |= {one.snapshot_id for one in line[: max(1, *asked)]}
    found = [
        one
        for one in metadata.snapshots.values()
        if one.timestamp_ms < limit_ms and one.snapshot_id not in kept
    ]
    return [one.snapshot_id for one in sorted(found, key=lambda one: one.timestamp_ms)]


def _older_than(
    guards: Guards, arguments: dict[str, Any], properties: dict[str, str], now: datetime
) -> datetime:
    given = arguments.get("older_than")
    if given is None:
        age_ms = properties.get("history.expire.max-snapshot-age-ms")
        age = DEFAULT_AGE if age_ms is None else timedelta(milliseconds=int(age_ms))
        limits = [now - age]
    else:
        limits = [datetime.fromisoformat(given)]
    if guards.older_than is not None:
        limits.append(guards.older_than)
    return min(*limits, now)


def _refuse_more(work: Work, metadata: Metadata, expired: list[int]) -> None:
    """Let Iceberg say what it would expire: a branch may have a retention of its own."""
    dry = work.table.java.expireSnapshots().expireOlderThan(0)
    for snapshot_id in expired:
        dry = dry.expireSnapshotId(snapshot_id)
    would_go = {int(one.snapshotId()) for one in dry.apply()}
    touched = sorted(would_go & set(work.request.guards.keep_snapshot_ids))
    if touched:
        raise RefusedError(
            f"Retention settings of a branch of {work.table.name} would expire snapshot "
            f"{', '.join(map(str, touched))}, which is in use"
        )
    lost = sorted(name for name, ref in metadata.refs.items() if ref["snapshot-id"] in would_go)
    if lost:
        raise RefusedError(
            f"Expiry would remove {', '.join(lost)} of {work.table.name}: their own age limit is "
            "reached; drop them first if that is meant"
        )


def _call(work: Work, expired: list[int], arguments: dict[str, Any]) -> dict[str, int]:
    ids = ", ".join(str(int(one)) for one in expired)
    catalog = work.table.name.catalog.replace("`", "``")
    rows = work.spark.sql(
        f"CALL `{catalog}`.system.expire_snapshots(table => :name, "
        "older_than => TIMESTAMP '1970-01-01 00:00:00', retain_last => 1, "
        f"stream_results => {str(bool(arguments.get('stream_results', True))).lower()}, "
        f"snapshot_ids => array({ids}))",
        args={"name": work.table.full_name},
    ).collect()
    return {name: int(value or 0) for name, value in rows[0].asDict().items()}


def missing_files(table: LakeTable) -> Check:
    """Whether every file of every snapshot that is kept exists."""
    paths = sorted(reachable(table))
    here = [(path, found) for path in paths if (found := local_path(path)) is not None]
    missing = [path for path, found in here if not Path(found).exists()]
    elsewhere = [path for path in paths if local_path(path) is None]
    luck = random.Random(len(elsewhere))  # noqa: S311 a sample, not a secret
    asked = luck.sample(elsewhere, min(MOST_ASKED, len(elsewhere)))
    io = table.java.io()
    with ThreadPoolExecutor(8) as pool:
        exist = pool.map(lambda path: bool(io.newInputFile(path).exists()), asked)
        missing += [path for path, is_there in zip(asked, exist, strict=True) if not is_there]
    name = f"files of all retained snapshots exist ({len(here) + len(asked)} of {len(paths)})"
    return Check(name=name, expected=[], found=missing[:20], ok=not missing)


def reachable(table: LakeTable) -> set[str]:
    """Every file that the metadata reaches: data, deletes, manifests, lists, statistics, itself."""
    document = table.refresh().document
    found = {
        *(one["manifest-list"] for one in document.get("snapshots", ()) if "manifest-list" in one),
        *(one["statistics-path"] for one in document.get("statistics", ())),
        *(one["statistics-path"] for one in document.get("partition-statistics", ())),
        table.java.operations().current().metadataFileLocation(),
    }
    for name, column in (("all_files", "file_path"), ("all_manifests", "path")):
        rows = table.spark.sql(f"SELECT DISTINCT {column} FROM {table.full_name}.{name}")  # noqa: S608
        found |= {row[0] for row in rows.collect()}
    return found


def logged_metadata(table: LakeTable) -> Iterable[str]:
    """Earlier metadata files that the current one still names."""
    return [one["metadata-file"] for one in table.metadata().document.get("metadata-log", ())]
