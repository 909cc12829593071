"""What an action does, exactly: stages with their arguments, built from facts alone.

The approver sees the plan verbatim and approves its hash; whoever carries it out adds nothing but
what the safety rules take away (`guards`, coordinate.py).
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import MaintenanceError
from lakehouse_core.domain.maintenance import Kind, Plan, Stage, plan_to_json
from lakehouse_core.domain.table import HISTOGRAM_BOUNDS, TableName
from lakehouse_core.maintenance.calls import call_text, identifier, order_text, table_argument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import timedelta

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.maintenance import Change
    from lakehouse_core.domain.table import LakeTable, TableMetrics

# Ids of the safety rules (preflight.py); each is asked right before the action runs.
ALWAYS = (
    "not-stopped",
    "window",
    "writers-first",
    "same-table",
    "base-snapshot",
    "changes-something",
    "budget",
    "max-running",
    "lease",
)
REWRITES = (*ALWAYS, "readable", "quiet-partitions")
DELETES = (*ALWAYS, "readable", "gc-enabled", "own-location", "refs", "snapshots-in-use")
PRECONDITIONS: Mapping[Kind, tuple[str, ...]] = {
    Kind.COMPACT: REWRITES,
    Kind.SORT: REWRITES,
    Kind.ZORDER: REWRITES,
    Kind.HILBERT: REWRITES,
    Kind.SET_SORT_ORDER: ALWAYS,
    Kind.EXPIRE_SNAPSHOTS: DELETES,
    Kind.REMOVE_ORPHANS: (*DELETES, "orphan-age", "live-writers"),
    Kind.REWRITE_MANIFESTS: (*ALWAYS, "readable"),
    Kind.REWRITE_POSITION_DELETES: REWRITES,
}
# A file below this share of the target is put together with others; Iceberg's own share.
SMALL_SHARE = 0.75
LEAST_INPUT_FILES = 2
# Compaction leaves large files alone. Without this Iceberg takes files over 180 % of the target
# too and cuts them up. How large new files become does not hang on it: a new file is made of as
# much input as the target, and our own writer has its own limit (spark_jobs/maintenance/groups.py).
NO_FILE_IS_TOO_LARGE = {"max-file-size-bytes": str(2**40)}


def build_plan(
    kind: Kind,
    table: LakeTable,
    metrics: TableMetrics,
    config: Config,
    *,
    parameters: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of an action on a table as it was last seen.

    Args:
        kind: what to do.
        table: the table.
        metrics: its structure at the snapshot the plan is of.
        config: ages, sizes and numbers that are kept.
        parameters: `columns` of an order (names, or maps of column, direction and nulls);
            `primary` columns (names) that rows are ordered by before a Hilbert curve;
            `target_file_bytes`; `where` (a predicate) or `partitions` (maps of field → value) of
            a rewrite; `batches` of an order: lists of such partitions, one commit each;
            `older_than` and `retain_last` of an expiry; `input_bytes` and
            `input_files` when the caller has counted what the metrics only bound.

    Raises:
        MaintenanceError: the table was never read, or a parameter is missing or not known.
    """
    if table.table_uuid is None:
        raise MaintenanceError(
            f"Nothing can be planned for {table.table_id}: its metadata was not read yet"
        )
    draft = _Draft(kind, table, metrics, config, parameters or {})
    stages, input_bytes = draft.build()
    return Plan(
        kind=kind,
        table_id=table.table_id,
        table_uuid=table.table_uuid,
        base_snapshot_id=metrics.snapshot_id or None,
        stages=stages,
        preconditions=PRECONDITIONS[kind],
        input_bytes=input_bytes,
    )


def plan_hash(plan: Plan, predicted: Iterable[Change] = ()) -> str:
    """What an approval is of: the plan, its table and snapshot, and what was predicted."""
    document = {"plan": plan_to_json(plan), "predicted": [asdict(change) for change in predicted]}
    canonical = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


class _Draft:
    """One plan on its way; knows each kind's stages."""

    def __init__(
        self,
        kind: Kind,
        table: LakeTable,
        metrics: TableMetrics,
        config: Config,
        parameters: Mapping[str, Any],
    ) -> None:
        self._kind = kind
        self._name = TableName.parse(table.table_id)
        self._argument = table_argument(self._name)
        self._seen_at = max(table.seen_at, metrics.collected_at)
        self._metrics = metrics
        self._limits = config.maintenance
        self._parameters = parameters

    def build(self) -> tuple[tuple[Stage, ...], int]:
        """The stages, and the bytes that are read and written again."""
        builders: dict[Kind, Callable[[], tuple[tuple[Stage, ...], int]]] = {
            Kind.COMPACT: self._compact,
            Kind.SORT: self._sort,
            Kind.ZORDER: self._curve,
            Kind.HILBERT: self._curve,
            Kind.SET_SORT_ORDER: self._set_order,
            Kind.EXPIRE_SNAPSHOTS: self._expire,
            Kind.REMOVE_ORPHANS: self._orphans,
            Kind.REWRITE_MANIFESTS: self._manifests,
            Kind.REWRITE_POSITION_DELETES: self._position_deletes,
        }
        self._refuse_unknown(PARAMETERS[self._kind])
        return builders[self._kind]()

    def _compact(self) -> tuple[tuple[Stage, ...], int]:
        metrics = self._metrics
        target = self._target()
        options = self._rewrite_options(target) | NO_FILE_IS_TOO_LARGE
        strategy = "sort" if metrics.sort_order else "binpack"
        if metrics.delete_files:
            options |= {"delete-file-threshold": "1", "remove-dangling-deletes": "true"}
        # Our own writer puts small files together; merging deletes or keeping an order is Spark's.
        is_plain = strategy == "binpack" and not metrics.delete_files
        files, size = self._input(_small_input(metrics, target))
        arguments = {"table": self._argument, "strategy": strategy, "options": options}
        estimate = _rewrite_estimate(metrics, files, size, target)
        procedure = "compact_files" if is_plain else "rewrite_data_files"
        return (self._rewrite("compact", procedure, arguments, estimate),), size

    def _sort(self) -> tuple[tuple[Stage, ...], int]:
        order = _linear_order(self._columns())
        # The order is kept for writers to come; without it the next append undoes the work.
        return self._whole(order, (self._order_stage(order),))

    def _curve(self) -> tuple[tuple[Stage, ...], int]:
        names = ", ".join(identifier(str(one["column"])) for one in self._columns())
        first = "".join(f"{identifier(one)}, " for one in self._parameters.get("primary", ()))
        return self._whole(f"{first}{self._kind.value}({names})", ())

    def _whole(self, order: str, before: tuple[Stage, ...]) -> tuple[tuple[Stage, ...], int]:
        target = self._target()
        files, size = self._input((self._metrics.data_files, self._metrics.total_bytes))
        options = self._rewrite_options(target) | {"rewrite-all": "true"}
        if self._metrics.delete_files:
            options["remove-dangling-deletes"] = "true"
        arguments = {
            "table": self._argument,
            "strategy": "sort",
            "sort_order": order,
            "options": options,
        }
        estimate = _rewrite_estimate(self._metrics, files, size, target)
        batches = self._parameters.get("batches")
        if batches:
            return (*before, *self._parts(arguments, batches, estimate)), size
        stage = self._rewrite("rewrite in order", "rewrite_data_files", arguments, estimate)
        return (*before, stage), size

    def _parts(
        self, arguments: dict[str, Any], batches: Sequence[Any], estimate: dict[str, float]
    ) -> list[Stage]:
        """A stage, and with it a commit, per batch of partitions: what is done stays done."""
        count = len(batches)
        share = {name: value / count for name, value in estimate.items()}
        return [
            self._of_partitions(
                self._stage(f"part {n} of {count}", "rewrite_data_files", arguments, share), batch
            )
            for n, batch in enumerate(batches, 1)
        ]

    def _set_order(self) -> tuple[tuple[Stage, ...], int]:
        return (self._order_stage(_linear_order(self._columns())),), 0

    def _order_stage(self, order: str) -> Stage:
        return Stage(
            name="ask writers for the order",
            procedure="set_sort_order",
            arguments={"table": self._argument, "sort_order": order},
            call=order_text(self._name, order),
            estimate={},
        )

    def _expire(self) -> tuple[tuple[Stage, ...], int]:
        keep = max(int(self._parameters.get("retain_last", 0)), self._limits.min_snapshots)
        arguments = {
            "table": self._argument,
            "older_than": self._older_than(self._limits.keep_snapshots),
            "retain_last": keep,
            "stream_results": True,
        }
        estimate = {"snapshots": float(self._metrics.snapshots)}
        return (self._stage("expire snapshots", "expire_snapshots", arguments, estimate),), 0

    def _orphans(self) -> tuple[tuple[Stage, ...], int]:
        def stage(name: str, *, is_rehearsal: bool) -> Stage:
            arguments = {
                "table": self._argument,
                "older_than": self._older_than(self._limits.orphan_age),
                "dry_run": is_rehearsal,
                "prefix_mismatch_mode": "ERROR",
            }
            return self._stage(name, "remove_orphan_files", arguments, {})

        return (
            stage("list orphans, delete nothing", is_rehearsal=True),
            stage("delete the orphans of the list", is_rehearsal=False),
        ), 0

    def _manifests(self) -> tuple[tuple[Stage, ...], int]:
        metrics = self._metrics
        estimate = {
            "manifests": float(metrics.manifests),
            "manifest_bytes": float(metrics.manifest_bytes),
        }
        arguments = {"table": self._argument, "use_caching": False}
        stage = self._stage("rewrite manifests", "rewrite_manifests", arguments, estimate)
        return (stage,), metrics.manifest_bytes

    def _position_deletes(self) -> tuple[tuple[Stage, ...], int]:
        arguments = {"table": self._argument, "options": {"rewrite-all": "true"}}
        estimate = {"delete_files": float(self._metrics.position_delete_files)}
        files = self._metrics.position_delete_files + self._metrics.deletion_vectors
        _, size = self._input((files, 0))
        return (
            self._rewrite(
                "rewrite position deletes", "rewrite_position_delete_files", arguments, estimate
            ),
        ), size

    def _rewrite(
        self, name: str, procedure: str, arguments: dict[str, Any], estimate: dict[str, float]
    ) -> Stage:
        where, partitions = self._parameters.get("where"), self._parameters.get("partitions")
        if where is not None:
            arguments = arguments | {"where": str(where)}
        stage = self._stage(name, procedure, arguments, estimate)
        return stage if partitions is None else self._of_partitions(stage, partitions)

    @staticmethod
    def _of_partitions(stage: Stage, partitions: Iterable[Mapping[str, Any]]) -> Stage:
        # Iceberg's procedure has no such argument: a partition of any transform is told by value.
        chosen = [dict(one) for one in partitions]
        return Stage(
            name=stage.name,
            procedure=stage.procedure,
            arguments=stage.arguments | {"partitions": chosen},
            call=f"{stage.call} -- of partitions {json.dumps(chosen, ensure_ascii=True)}",
            estimate=stage.estimate,
        )

    def _stage(
        self, name: str, procedure: str, arguments: dict[str, Any], estimate: dict[str, float]
    ) -> Stage:
        # Our own way to put files together does what this call of Iceberg's does.
        called = "rewrite_data_files" if procedure == "compact_files" else procedure
        return Stage(
            name=name,
            procedure=procedure,
            arguments=arguments,
            call=call_text(self._name.catalog, called, arguments),
            estimate=estimate,
        )

    def _rewrite_options(self, target: int) -> dict[str, str]:
        return {
            "target-file-size-bytes": str(target),
            "min-input-files": str(LEAST_INPUT_FILES),
        }

    def _target(self) -> int:
        usual = self._metrics.target_file_bytes or self._limits.target_file_bytes
        return int(self._parameters.get("target_file_bytes", usual))

    def _input(self, bound: tuple[int, int]) -> tuple[int, int]:
        files = int(self._parameters.get("input_files", bound[0]))
        return files, int(self._parameters.get("input_bytes", bound[1]))

    def _older_than(self, age: timedelta) -> str:
        latest = self._seen_at - age
        asked = self._parameters.get("older_than")
        if asked is None:
            return latest.astimezone(UTC).isoformat()
        moment = datetime.fromisoformat(asked) if isinstance(asked, str) else asked
        return moment.astimezone(UTC).isoformat()

    def _columns(self) -> list[dict[str, Any]]:
        columns = self._parameters.get("columns")
        if not columns:
            raise MaintenanceError(
                f"A plan to {self._kind.value} {self._metrics.table_id} needs `columns`"
            )
        return [{"column": one} if isinstance(one, str) else dict(one) for one in columns]

    def _refuse_unknown(self, known: frozenset[str]) -> None:
        unknown = sorted(set(self._parameters) - known)
        if unknown:
            raise MaintenanceError(
                f"A plan to {self._kind.value} {self._metrics.table_id} knows no parameter "
                f"{', '.join(unknown)}; known: {', '.join(sorted(known)) or 'none'}"
            )


_COUNTED = frozenset({"input_bytes", "input_files"})
_SCOPE = frozenset({"where", "partitions", *_COUNTED})
_LAYOUT = frozenset({"columns", "target_file_bytes", "batches", *_SCOPE})
PARAMETERS: Mapping[Kind, frozenset[str]] = {
    Kind.COMPACT: frozenset({"target_file_bytes", *_SCOPE}),
    Kind.SORT: _LAYOUT,
    Kind.ZORDER: _LAYOUT,
    Kind.HILBERT: _LAYOUT | {"primary"},
    Kind.SET_SORT_ORDER: frozenset({"columns"}),
    Kind.EXPIRE_SNAPSHOTS: frozenset({"older_than", "retain_last"}),
    Kind.REMOVE_ORPHANS: frozenset({"older_than"}),
    Kind.REWRITE_MANIFESTS: frozenset(),
    Kind.REWRITE_POSITION_DELETES: _SCOPE,
}


def _linear_order(columns: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for one in columns:
        direction = str(one.get("direction", "asc")).upper()
        nulls = str(one.get("nulls", "first" if direction == "ASC" else "last")).upper()
        if direction not in {"ASC", "DESC"} or nulls not in {"FIRST", "LAST"}:
            raise MaintenanceError(f"{direction} NULLS {nulls} is no order of a column")
        parts.append(f"{identifier(str(one['column']))} {direction} NULLS {nulls}")
    return ", ".join(parts)


def _small_input(metrics: TableMetrics, target: int) -> tuple[int, int]:
    """Files below the target, and a bound of their bytes, as far as the histogram can tell."""
    if metrics.delete_files:
        return metrics.data_files, metrics.total_bytes
    limit = target * SMALL_SHARE
    lower_bounds = (0, *HISTOGRAM_BOUNDS)
    counts = metrics.file_size_histogram
    large = [(count, low) for count, low in zip(counts, lower_bounds, strict=True) if low >= limit]
    files = metrics.data_files - sum(count for count, _ in large)
    size = metrics.total_bytes - sum(count * low for count, low in large)
    return files, max(0, size) if files else 0


def _rewrite_estimate(
    metrics: TableMetrics, files: int, size: int, target: int
) -> dict[str, float]:
    written = max(math.ceil(size / target), min(metrics.partitions, files))
    return {
        "input_files": float(files),
        "input_bytes": float(size),
        "output_files": float(written),
    }
