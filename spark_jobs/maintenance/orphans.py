"""Files that nothing refers to: listed, looked at again, deleted by Iceberg's procedure.

Two phases. A dry run lists what would go. Right before deleting, the table is read again and what
it reaches now is taken off the list, whatever scheme or authority its paths are written with. The
procedure gets only the rest, and checks it against the metadata once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.maintenance.arrow_files import local_path
from spark_jobs.maintenance.expire import logged_metadata, reachable
from spark_jobs.maintenance.locations import overlapping, split
from spark_jobs.maintenance.outcome import RefusedError, first_line
from spark_jobs.maintenance.work import StageResult

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import Stage
    from spark_jobs.maintenance.work import Work

LEAST_AGE = timedelta(hours=24)
MISMATCH = "Unable to determine whether certain files are orphan"
VIEW = "lakehelm_orphans"
SHOWN = 200


@dataclass(frozen=True, slots=True)
class _Limits:
    older_than: datetime
    arguments: dict[str, Any]


def remove_orphan_files(work: Work, stage: Stage) -> StageResult:
    """List orphans (`dry_run`), or delete those of the list that still are."""
    limits = _limits(work, stage.arguments)
    if bool(stage.arguments.get("dry_run")) or work.listed is None:
        work.listed = _listed(work, limits)
    facts: dict[str, Any] = {"listed": len(work.listed), "orphans": work.listed[:SHOWN]}
    if bool(stage.arguments.get("dry_run")):
        return StageResult(is_changed=False, facts=facts)
    work.stop.check()
    doomed = _still_orphans(work, work.listed)
    facts["kept_after_recheck"] = len(work.listed) - len(doomed)
    if not doomed:
        return StageResult(is_changed=False, facts=facts | {"deleted": 0})
    work.stop.check()
    _delete(work, limits, doomed)
    left = [path for path in doomed if _is_there(work, path)]
    facts |= {"deleted": len(doomed) - len(left), "not_deleted": left[:SHOWN]}
    return StageResult(is_changed=True, facts=facts)


def _limits(work: Work, arguments: dict[str, Any]) -> _Limits:
    metadata = work.pin()
    if not metadata.is_gc_enabled():
        raise RefusedError(
            f"Orphans of {work.table.name} are not removed: gc.enabled is false, its files may "
            "belong to another table too"
        )
    given = arguments.get("older_than")
    limits = [] if given is None else [datetime.fromisoformat(given)]
    if work.request.guards.older_than is not None:
        limits.append(work.request.guards.older_than)
    if not limits:
        raise RefusedError(f"Orphans of {work.table.name}: no age is given")
    older_than = min(limits)
    if datetime.now(UTC) - older_than < LEAST_AGE:
        raise RefusedError(
            f"Orphans of {work.table.name} younger than 24 hours are not removed: a writer may be "
            f"about to commit them (asked for: older than {older_than.isoformat()})"
        )
    others = overlapping(work.table, metadata)
    if others:
        raise RefusedError(
            f"Orphans of {work.table.name} are not removed: its location {metadata.location} is "
            f"shared with {', '.join(others)}, whose files would be taken for orphans"
        )
    return _Limits(older_than, arguments)


def _listed(work: Work, limits: _Limits) -> list[str]:
    try:
        rows = work.spark.sql(
            f"CALL `{_catalog(work)}`.system.remove_orphan_files(table => :name, "
            "older_than => :older, dry_run => true, prefix_mismatch_mode => 'ERROR')",
            args={"name": work.table.full_name, "older": limits.older_than},
        ).collect()
    except Exception as error:
        if MISMATCH in str(error):
            raise RefusedError(
                f"Orphans of {work.table.name} cannot be told: its metadata and the listing write "
                f"the same paths with other schemes or authorities ({first_line(error)[-200:]})"
            ) from error
        raise
    return sorted(row[0] for row in rows)


def _still_orphans(work: Work, listed: list[str]) -> list[str]:
    """Those of a list that the table, read again, does not reach."""
    needed = {split(one)[1] for one in reachable(work.table)}
    needed |= {split(one)[1] for one in logged_metadata(work.table)}
    return [
        one
        for one in listed
        if split(one)[1] not in needed and not one.endswith("/version-hint.text")
    ]


def _delete(work: Work, limits: _Limits, doomed: list[str]) -> None:
    """Let the procedure delete files of the list; it checks the metadata once more."""
    spark = work.spark
    rows = [(path, limits.older_than - timedelta(seconds=1)) for path in doomed]
    frame = spark.createDataFrame(rows, "file_path string, last_modified timestamp")
    frame.createOrReplaceTempView(VIEW)
    try:
        spark.sql(
            f"CALL `{_catalog(work)}`.system.remove_orphan_files(table => :name, "
            "older_than => :older, location => :place, file_list_view => :view, "
            "prefix_mismatch_mode => 'ERROR')",
            args={
                "name": work.table.full_name,
                "older": limits.older_than,
                "place": _common_prefix(doomed),
                "view": VIEW,
            },
        ).collect()
    finally:
        spark.catalog.dropTempView(VIEW)


def _common_prefix(paths: list[str]) -> str:
    first, last = min(paths), max(paths)
    count = next((n for n, one in enumerate(first) if n >= len(last) or one != last[n]), len(first))
    return first[:count].rsplit("/", 1)[0]


def _catalog(work: Work) -> str:
    return work.table.name.catalog.replace("`", "``")


def _is_there(work: Work, location: str) -> bool:
    path = local_path(location)
    if path is not None:
        return Path(path).exists()
    return bool(work.table.java.io().newInputFile(location).exists())
