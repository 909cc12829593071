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
    from lakehouse_core.maintenance.before import Before
    from lakehouse_core.maintenance.look import Look, Lookout

OPERATION = "lakehelm.operation-id"
ACTION = "lakehelm.action-id"
STAGE = "lakehelm.stage"
TOKEN = "lakehelm.lease-token"  # noqa: S105 a number that grows, no secret
UNITS: dict[str, str] = {
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
# Of the table's readers, one run of each template; only where their conditions are known.
PLANNED: dict[str, str] = {"planned_files": "files", "planned_bytes": "bytes"}
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
    before: Before,
    lookout: Lookout,
    config: Config,
) -> Proof:
    """Look at the table and compare.

    Args:
        action: what was done.
        report: what the job says of it; None when it did not live to say it.
        before: the table before it ran, as far as that was kept.
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
    after = figures_of(look, config)
    is_remote, base = bool(config.spark.remote), before.refs.get("main")
    ours = commits_of(action, report, look.metadata, is_remote=is_remote, base=base)
    ours = ours or action_snapshots(look.metadata, action.action_id)  # of an earlier run
    own = _own_checks(_Run(action, look, ours), before.figures, after, before.refs)
    after |= lookout.planned(look, before.reads)
    realised = tuple(
        Change(name=name, unit=unit, before=before.figures.get(name), after=after.get(name))
        for name, unit in (UNITS | PLANNED).items()
        if name in UNITS or name in after
    )
    checks = (*told, *own)
    bad = [one for one in checks if not one["ok"]]
    metrics = replace(look.metrics, amoro_score=amoro_score(look.live))
    return Proof(
        is_good=not bad,
        checks=checks,
        realised=realised,
        result_snapshot_id=_result(look, ours),
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


def action_snapshots(metadata: TableMetadata, action_id: str) -> list[int]:
    """Snapshots of the table's history that an action made in any of its runs, newest first."""
    return [one.snapshot_id for one in metadata.history if one.summary.get(ACTION) == action_id]


def commits_of(
    action: Action,
    report: Mapping[str, Any] | None,
    metadata: TableMetadata,
    *,
    is_remote: bool,
    base: int | None,
) -> list[int]:
    """Snapshots of the table's history that an action made, newest first.

    They carry its operation's id. On a Spark Connect server Iceberg's procedures cannot put it
    there: then they are those that the job's report names, if they came after the action began;
    of a job that named none, those that replaced files since `base`, the head before it: nobody
    else who has a lease of ours did.
    """
    found = operation_snapshots(metadata, action.operation_id)
    if found or not is_remote or action.started_at is None:
        return found
    named = {int(one) for one in (report or {}).get("commits") or ()} or _replacing(metadata, base)
    start = action.started_at.timestamp() * 1000
    return [
        one.snapshot_id
        for one in metadata.history
        if one.snapshot_id in named and one.timestamp_ms >= start
    ]


def _replacing(metadata: TableMetadata, base: int | None) -> set[int]:
    """The snapshots after another one that replaced files and carry no mark of an action."""
    line = list(metadata.history)
    ids = [one.snapshot_id for one in line]
    if base not in ids:
        return set()
    return {
        one.snapshot_id
        for one in line[: ids.index(base)]
        if one.summary.get("operation") == "replace" and ACTION not in one.summary
    }


def parts_of(action: Action) -> set[str]:
    """The stages of an action that is done part by part; none when it is done at once."""
    parts = {
        str(place)
        for place, stage in enumerate(action.plan.stages)
        if stage.arguments.get("partitions") is not None
    }
    return parts if len(parts) > 1 else set()


def parts_left(action: Action, metadata: TableMetadata) -> int:
    """How many parts of an action that is done part by part no commit of it has made yet."""
    done = {
        one.summary.get(STAGE)
        for one in metadata.history
        if one.summary.get(ACTION) == action.action_id
    }
    return len(parts_of(action) - done)


@dataclass(frozen=True, slots=True)
class _Run:
    """What was done, and the table afterwards with the commits that are its own."""

    action: Action
    look: Look
    ours: list[int]

    @property
    def is_alone(self) -> bool:
        """Whether nobody else committed since the action began, as far as the history tells."""
        if self.action.started_at is None:
            return False
        start = self.action.started_at.timestamp() * 1000
        return all(
            one.snapshot_id in self.ours
            for one in self.look.metadata.history
            if one.timestamp_ms >= start
        )


def _own_checks(
    run: _Run,
    before: Mapping[str, float],
    after: Mapping[str, float],
    refs: Mapping[str, int],
) -> list[dict[str, Any]]:
    action, look = run.action, run.look
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
        is_there = bool(run.ours)
        checks.append(_check("our commit is in the history", True, is_there, ok=is_there))
    is_alone = run.is_alone
    had_deletes = before.get("delete_files", 1) > 0
    if is_alone and not had_deletes and action.kind in _ROWS_KEPT and "total_rows" in before:
        rows, found_rows = before["total_rows"], after["total_rows"]
        checks.append(_check("rows in files", rows, found_rows, ok=rows == found_rows))
    aim = _aim(action.kind, before)
    if aim is not None and is_alone and aim in before:
        # An expiry of a table that goes on may find as many new snapshots as it took.
        ok = after[aim] <= before[aim]
        checks.append(_check(f"{aim} did not grow", before[aim], after[aim], ok=ok))
    return checks


def _aim(kind: Kind, before: Mapping[str, float]) -> str | None:
    # A large file whose deletes are applied is written as several: that is not what it is for.
    if kind is Kind.COMPACT and before.get("delete_files", 0) > 0:
        return "delete_files"
    return _AIMS.get(kind)


def _result(look: Look, ours: Sequence[int]) -> int | None:
    if ours:
        return ours[0]
    return look.metadata.current.snapshot_id if look.metadata.current else None


def _check(name: str, expected: Any, found: Any, *, ok: bool) -> dict[str, Any]:
    return {"name": name, "expected": expected, "found": found, "ok": ok}


def _problem(bad: Sequence[Mapping[str, Any]]) -> str:
    first = bad[0]
    more = f" ({len(bad)} checks failed)" if len(bad) > 1 else ""
    return f"{first['name']}: expected {first['expected']}, found {first['found']}{more}"
