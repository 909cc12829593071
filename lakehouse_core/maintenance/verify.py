"""The proof: what the job says it compared, and what a look of our own finds.

The job reads rows before and after and takes its commit back when they differ. Here the table is
read anew, by other code: every file it reaches must be there, every branch and tag too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakehouse_core.catalog.contents import losses
from lakehouse_core.domain.errors import CatalogError, CatalogUnavailableError
from lakehouse_core.domain.maintenance import Change, Kind
from lakehouse_core.health import assess, thresholds_for
from lakehouse_core.health.amoro import amoro_score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse_core.catalog.metadata import TableMetadata
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.health import TableHealth
    from lakehouse_core.domain.maintenance import Action
    from lakehouse_core.domain.table import TableMetrics
    from lakehouse_core.maintenance.look import Look, Lookout

OPERATION = "lakehelm.operation-id"
TOKEN = "lakehelm.lease-token"  # noqa: S105 a number that grows, no secret
UNITS: Mapping[str, str] = {
    "data_files": "files",
    "small_files": "files",
    "total_bytes": "bytes",
    "total_rows": "rows",
    "delete_files": "files",
    "manifests": "manifests",
    "manifest_bytes": "bytes",
    "snapshots": "snapshots",
    "metadata_bytes": "bytes",
    "score": "points",
}
# Which figure an action is for: it must not be worse afterwards.
_AIMS: Mapping[Kind, str] = {
    Kind.COMPACT: "data_files",
    Kind.EXPIRE_SNAPSHOTS: "snapshots",
    Kind.REWRITE_MANIFESTS: "manifests",
    Kind.REWRITE_POSITION_DELETES: "delete_files",
}
# These leave no snapshot in the table's history.
WITHOUT_SNAPSHOT = frozenset({Kind.EXPIRE_SNAPSHOTS, Kind.REMOVE_ORPHANS, Kind.SET_SORT_ORDER})
_ROWS_KEPT = frozenset({Kind.COMPACT, Kind.SORT, Kind.ZORDER, Kind.HILBERT, Kind.REWRITE_MANIFESTS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was found.

    Attributes:
        is_good: nothing speaks against it.
        problem: what does, in words.
        metrics: the table afterwards.
    """

    is_good: bool
    checks: tuple[dict[str, Any], ...]
    realised: tuple[Change, ...]
    result_snapshot_id: int | None
    metrics: TableMetrics | None = None
    health: TableHealth | None = None
    problem: str | None = None


def figures_of(look: Look, config: Config) -> dict[str, float]:
    """The numbers an action is measured by."""
    metrics = look.metrics
    verdict = assess(metrics, thresholds_for(config.health, metrics.table_id), look.at)
    named: dict[str, float | None] = {
        name: getattr(metrics, name) for name in UNITS if name != "score"
    }
    named["score"] = verdict.score
    return {name: float(value) for name, value in named.items() if value is not None}


def verify(
    action: Action,
    report: Mapping[str, Any] | None,
    before: tuple[Mapping[str, float], Mapping[str, int]],
    lookout: Lookout,
    config: Config,
) -> Proof:
    """Look at the table and compare.

    Args:
        action: what was done.
        report: what the job says of it; None when it did not live to say it.
        before: figures and refs before it ran, as far as they were kept.
        lookout: looks at tables.
        config: thresholds of the score.

    Raises:
        CatalogUnavailableError: the catalog does not answer: nothing is known.
    """
    told = [dict(one) for one in (report or {}).get("checks", ())]
    try:
        look = lookout.look(action.table_id, is_whole=True)
    except CatalogUnavailableError:
        raise
    except CatalogError as error:
        checks = (*told, _check("readable", "all metadata", str(error), ok=False))
        return Proof(
            is_good=False, checks=checks, realised=(), result_snapshot_id=None, problem=str(error)
        )
    figures, refs = before
    after = figures_of(look, config)
    own = _own_checks(action, look, figures, after, refs)
    realised = tuple(
        Change(name=name, unit=unit, before=figures.get(name), after=after.get(name))
        for name, unit in UNITS.items()
    )
    checks = (*told, *own)
    bad = [one for one in checks if not one["ok"]]
    metrics = replace(look.metrics, amoro_score=amoro_score(look.live))
    return Proof(
        is_good=not bad,
        checks=checks,
        realised=realised,
        result_snapshot_id=_result(action, look),
        metrics=metrics,
        health=assess(metrics, thresholds_for(config.health, action.table_id), look.at),
        problem=_problem(bad) if bad else None,
    )


def operation_snapshots(metadata: TableMetadata, operation_id: str | None) -> list[int]:
    """Snapshots of the table's history that an operation made, newest first."""
    return [
        one.snapshot_id
        for one in metadata.history
        if operation_id is not None and one.summary.get(OPERATION) == operation_id
    ]


def _own_checks(
    action: Action,
    look: Look,
    before: Mapping[str, float],
    after: Mapping[str, float],
    refs: Mapping[str, int],
) -> list[dict[str, Any]]:
    lost = losses(look.files or {})
    gone = sorted(set(refs) - set(look.metadata.refs))
    kept = {one.snapshot_id for one in look.metadata.snapshots}
    unkept = sorted(name for name, one in look.metadata.refs.items() if one not in kept)
    checks = [
        _check(
            "every reachable file is there",
            0,
            len(lost) if not lost else f"{len(lost)}: {lost[0].location}",
            ok=not lost,
        ),
        _check("branches and tags are kept", [], [*gone, *unkept], ok=not gone and not unkept),
    ]
    if action.kind not in WITHOUT_SNAPSHOT:
        found = operation_snapshots(look.metadata, action.operation_id)
        checks.append(_check("our commit is in the history", True, bool(found), ok=bool(found)))
    is_alone = _is_alone(action, look)
    had_deletes = before.get("delete_files", 1) > 0
    if is_alone and not had_deletes and action.kind in _ROWS_KEPT and "total_rows" in before:
        rows, found_rows = before["total_rows"], after["total_rows"]
        checks.append(_check("rows in files", rows, found_rows, ok=rows == found_rows))
    aim = _AIMS.get(action.kind)
    if aim is not None and is_alone and aim in before:
        # An expiry of a table that goes on may find as many new snapshots as it took.
        ok = after[aim] <= before[aim]
        checks.append(_check(f"{aim} did not grow", before[aim], after[aim], ok=ok))
    return checks


def _is_alone(action: Action, look: Look) -> bool:
    """Whether nobody else committed since the action began, as far as the history tells."""
    if action.started_at is None:
        return False
    start = action.started_at.timestamp() * 1000
    return all(
        one.summary.get(OPERATION) == action.operation_id
        for one in look.metadata.history
        if one.timestamp_ms >= start
    )


def _result(action: Action, look: Look) -> int | None:
    found = operation_snapshots(look.metadata, action.operation_id)
    if found:
        return found[0]
    return look.metadata.current.snapshot_id if look.metadata.current else None


def _check(name: str, expected: Any, found: Any, *, ok: bool) -> dict[str, Any]:
    return {"name": name, "expected": expected, "found": found, "ok": ok}


def _problem(bad: Sequence[Mapping[str, Any]]) -> str:
    first = bad[0]
    more = f" ({len(bad)} checks failed)" if len(bad) > 1 else ""
    return f"{first['name']}: expected {first['expected']}, found {first['found']}{more}"
