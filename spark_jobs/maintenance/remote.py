"""Actions on a Spark Connect server: Iceberg's procedures only, there is no JVM at hand.

A procedure cannot put our operation into a snapshot's summary. Ours are therefore the `replace`
snapshots after the one the action began with (one action at a time holds a table's lease), and a
repeated action finds nothing to do rather than its own commits. What needs more than procedures is
refused by name: orphans (whose place must be compared with every other table's), Hilbert curves,
and rollback, which could take back another writer's rows.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from spark_jobs.maintenance.content import content_of
from spark_jobs.maintenance.expire import choose
from spark_jobs.maintenance.figures import measure
from spark_jobs.maintenance.outcome import (
    ConflictError,
    RefusedError,
    VerificationError,
    is_no_table,
)
from spark_jobs.maintenance.report import Check
from spark_jobs.maintenance.table import Metadata, full_name, identifier
from spark_jobs.pipeline.commit import CommitConflictError, Commits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from lakehouse_core.domain.maintenance import Stage
    from spark_jobs.maintenance.plan import ActionRequest
    from spark_jobs.maintenance.report import ActionReport, Report
    from spark_jobs.maintenance.stop import Stop
    from spark_jobs.maintenance.table import Snapshot

REWRITES = frozenset({"compact_files", "rewrite_data_files", "rewrite_position_delete_files"})
ARGUMENTS = ("strategy", "sort_order", "use_caching", "spec_id")


class RemoteRun:
    """One action on a server."""

    def __init__(
        self,
        spark: SparkSession,
        request: ActionRequest,
        report: Report,
        stop: Stop,
        told: ActionReport,
    ) -> None:
        self._spark = spark
        self._request = request
        self._report = report
        self._stop = stop
        self._told = told
        self._table = full_name(request.table)
        self._commits = Commits(max(1, request.guards.max_attempts))

    def all(self) -> None:
        """Look, run the stages, verify."""
        with self._report.step(self._told, "look"):
            base = self._metadata().current_snapshot_id
            self._told.base_snapshot_id = base
            self._told.figures["before"] = measure(self._spark, self._table, base)
        is_changed = bool(self._request.proves)
        for stage in () if self._request.proves else self._request.plan.stages:
            self._stop.check()
            with self._report.step(self._told, stage.name) as told:
                try:
                    told.facts = self._commits.run(self._table, partial(self._run, stage))
                except CommitConflictError as error:
                    raise ConflictError(str(error)) from error
            is_changed = is_changed or bool(told.facts.pop("is_changed"))
        with self._report.step(self._told, "verify"):
            self._verify(base)
            head = self._metadata().current_snapshot_id
            self._told.figures["after"] = measure(self._spark, self._table, head)
        self._told.outcome = "done" if is_changed else "nothing"

    def _metadata(self) -> Metadata:
        """The metadata file itself, read by the server."""
        try:
            found = self._spark.sql(
                f"SELECT file FROM {self._table}.metadata_log_entries "  # noqa: S608 quoted
                "ORDER BY timestamp DESC LIMIT 1"
            ).collect()
        except Exception as error:
            if is_no_table(error):
                raise RefusedError(f"Table {self._request.plan.table_id} is not there") from None
            raise
        text = self._spark.read.text(found[0][0], wholetext=True).collect()[0][0]
        metadata = Metadata(json.loads(text))
        if metadata.uuid != self._request.plan.table_uuid:
            raise RefusedError(
                f"Table {self._request.plan.table_id} is another one than planned for: it has uuid "
                f"{metadata.uuid}, not {self._request.plan.table_uuid}"
            )
        return metadata

    def _run(self, stage: Stage) -> dict[str, Any]:
        metadata = self._metadata()
        self._stop.check()
        if stage.procedure == "set_sort_order":
            self._spark.sql(
                f"ALTER TABLE {self._table} WRITE ORDERED BY {stage.arguments['sort_order']}"
            ).collect()
            return {"is_changed": self._metadata().sort_order_id != metadata.sort_order_id}
        if stage.procedure == "expire_snapshots":
            return self._expire(metadata, stage.arguments)
        if stage.procedure == "remove_orphan_files":
            raise RefusedError("Orphans are removed by a Spark session of our own only")
        if str(stage.arguments.get("sort_order", "")).lower().startswith("hilbert("):
            raise RefusedError("Iceberg has no procedure for a Hilbert curve; use zorder here")
        if metadata.current_snapshot_id is None:
            return {"is_changed": False, "reason": "the table is empty"}
        return self._rewrite(metadata, stage)

    def _rewrite(self, metadata: Metadata, stage: Stage) -> dict[str, Any]:
        called = stage.procedure.replace("compact_files", "rewrite_data_files")
        parts, bound = ["table => :table"], {"table": self._table}
        for name in ARGUMENTS:
            if name in stage.arguments:
                parts.append(f"{name} => :{name}")
                bound[name] = stage.arguments[name]
        options = stage.arguments.get("options", {})
        if options:
            marks = [f":k{n}, :v{n}" for n in range(len(options))]
            parts.append(f"options => map({', '.join(marks)})")
            for number, (key, value) in enumerate(options.items()):
                bound |= {f"k{number}": str(key), f"v{number}": str(value)}
        if stage.procedure in REWRITES:
            where = self._where(metadata, stage.arguments)
            if where:
                parts.append("where => :where")
                bound["where"] = where
        catalog = identifier(self._request.table.catalog)
        rows = self._spark.sql(
            f"CALL {catalog}.system.{called}({', '.join(parts)})", args=bound
        ).collect()
        facts = {name: int(value or 0) for name, value in rows[0].asDict().items()}
        return {"is_changed": any(facts.values()), **facts}

    def _where(self, metadata: Metadata, arguments: Mapping[str, Any]) -> str:
        if arguments.get("partitions"):
            raise RefusedError("Single partitions are rewritten by a session of our own only")
        columns = {one["id"]: one["name"] for one in metadata.schema["fields"]}
        fields = {
            one["name"]: columns.get(one["source-id"])
            for one in metadata.spec["fields"]
            if one["transform"] == "identity"
        }
        parts = [f"({arguments['where']})"] if arguments.get("where") else []
        for partition in self._request.guards.protected_partitions:
            unknown = [name for name in partition if fields.get(name) is None]
            if unknown:
                raise RefusedError(
                    f"Protected partitions by {', '.join(unknown)} cannot be kept off here: only "
                    "columns themselves can be told to a procedure"
                )
            differs = [_differs(str(fields[name]), value) for name, value in partition.items()]
            parts.append(f"({' OR '.join(differs)})")
        return " AND ".join(parts)

    def _expire(self, metadata: Metadata, arguments: dict[str, Any]) -> dict[str, Any]:
        if not metadata.is_gc_enabled():
            raise RefusedError(f"gc.enabled is false for {self._request.plan.table_id}")
        if any(
            "max-snapshot-age-ms" in ref or "max-ref-age-ms" in ref
            for ref in metadata.refs.values()
        ):
            raise RefusedError(
                "A branch or tag has a retention of its own, which would expire more than the plan"
            )
        expired = choose(metadata, self._request.guards, arguments, datetime.now(UTC))
        if not expired:
            return {"is_changed": False, "reason": "no snapshot is old enough"}
        ids = ", ".join(str(int(one)) for one in expired)
        self._spark.sql(
            f"CALL {identifier(self._request.table.catalog)}.system.expire_snapshots("
            "table => :table, older_than => TIMESTAMP '1970-01-01 00:00:00', retain_last => 1, "
            f"snapshot_ids => array({ids}))",
            args={"table": self._table},
        ).collect()
        return {"is_changed": True, "expired": len(expired)}

    def _verify(self, base: int | None) -> None:
        metadata = self._metadata()
        ours = [
            one
            for one in _since(metadata, None if self._request.proves else base)
            if one.parent_id in metadata.snapshots and self._is_ours(one)
        ]
        self._told.commits = [one.snapshot_id for one in ours]
        for one in ours:
            self._told.result_snapshot_id = one.snapshot_id
            self._told.checks.append(self._compare(one))
            self._told.compared.append(one.snapshot_id)
        bad = next((check for check in self._told.checks if not check.ok), None)
        if bad is not None:
            raise VerificationError(
                f"Rows of {self._request.plan.table_id} changed: {bad.name} is {bad.found}, not "
                f"{bad.expected}; CALL rollback_to_snapshot after looking at later commits"
            )

    def _is_ours(self, snapshot: Snapshot) -> bool:
        if self._request.proves:
            return snapshot.snapshot_id in self._request.proves
        return snapshot.summary.get("operation") == "replace"

    def _compare(self, snapshot: Snapshot) -> Check:
        size = int(snapshot.summary.get("total-files-size", "0"))
        is_whole = size <= self._request.verify.max_bytes
        found = []
        for one in (snapshot.parent_id, snapshot.snapshot_id):
            rows = self._spark.sql(f"SELECT * FROM {self._table} VERSION AS OF {int(one or 0)}")  # noqa: S608
            content = content_of(rows) if is_whole else rows.count()
            found.append(str(content))
        name = "content_hash" if is_whole else (
            f"row_count (content not hashed: {size / 2**30:.1f} GiB in files, "
            f"{self._request.verify.max_bytes / 2**30:.1f} GiB may be read)"
        )  # fmt: skip
        return Check(name=name, expected=found[0], found=found[1], ok=found[0] == found[1])


def _since(metadata: Metadata, base: int | None) -> list[Snapshot]:
    """What was committed to main after a snapshot, oldest first; None: all of its history."""
    line = metadata.ancestors(metadata.current_snapshot_id)
    ids = [one.snapshot_id for one in line]
    return line[: ids.index(base)][::-1] if base in ids else line[::-1]


def _differs(column: str, value: Any) -> str:
    name = identifier(column)
    if value is None:
        return f"{name} IS NOT NULL"
    if isinstance(value, bool | int | float):
        return f"({name} <> {value} OR {name} IS NULL)"
    text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"({name} <> '{text}' OR {name} IS NULL)"
