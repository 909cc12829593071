"""Iceberg metrics reports → rows. Pure.

A report has a fixed head and a map of metrics: counters (`{"unit", "value"}`) and timers
(`{"count", "time-unit", "total-duration"}`). A metric that is not there is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from collectors.base import BadRowError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_LARGEST = 2**63 - 1
_MILLISECONDS = {
    "nanoseconds": 1e-6,
    "microseconds": 1e-3,
    "milliseconds": 1.0,
    "seconds": 1e3,
    "minutes": 6e4,
    "hours": 3.6e6,
    "days": 8.64e7,
}
_SCAN_COUNTERS = {
    "scanned_data_files": "result-data-files",
    "scanned_delete_files": "result-delete-files",
    "scanned_bytes": "total-file-size-in-bytes",
    "scanned_delete_bytes": "total-delete-file-size-in-bytes",
    "skipped_data_files": "skipped-data-files",
    "skipped_delete_files": "skipped-delete-files",
    "total_data_manifests": "total-data-manifests",
    "scanned_data_manifests": "scanned-data-manifests",
    "skipped_data_manifests": "skipped-data-manifests",
    "total_delete_manifests": "total-delete-manifests",
    "scanned_delete_manifests": "scanned-delete-manifests",
    "skipped_delete_manifests": "skipped-delete-manifests",
    "indexed_delete_files": "indexed-delete-files",
    "equality_delete_files": "equality-delete-files",
    "position_delete_files": "positional-delete-files",
    "deletion_vectors": "dvs",
}
_COMMIT_COUNTERS = {
    "attempts": "attempts",
    "added_data_files": "added-data-files",
    "removed_data_files": "removed-data-files",
    "total_data_files": "total-data-files",
    "added_delete_files": "added-delete-files",
    "removed_delete_files": "removed-delete-files",
    "total_delete_files": "total-delete-files",
    "added_deletion_vectors": "added-dvs",
    "removed_deletion_vectors": "removed-dvs",
    "added_rows": "added-records",
    "removed_rows": "removed-records",
    "total_rows": "total-records",
    "added_bytes": "added-files-size-bytes",
    "removed_bytes": "removed-files-size-bytes",
    "total_bytes": "total-files-size-bytes",
    "manifests_created": "manifests-created",
    "manifests_replaced": "manifests-replaced",
    "manifests_kept": "manifests-kept",
    "manifest_entries_processed": "manifest-entries-processed",
}


Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=_LARGEST)]
Integer = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class Metric(msgspec.Struct, rename="kebab"):
    """A counter or a timer."""

    unit: str | None = None
    value: int | None = None
    time_unit: str | None = None
    total_duration: int | None = None


class _Report(msgspec.Struct, rename="kebab", kw_only=True):
    table_name: str
    snapshot_id: Long
    metrics: dict[str, Metric]
    metadata: dict[str, str] | None = None


class ScanReport(_Report, tag_field="report-type", tag="scan-report", kw_only=True):
    """How a scan was planned."""

    filter: msgspec.Raw
    schema_id: Integer | None = None
    projected_field_ids: list[Integer] = []
    projected_field_names: list[str] = []


class CommitReport(_Report, tag_field="report-type", tag="commit-report", kw_only=True):
    """What a commit changed."""

    sequence_number: Long
    operation: str


Report = ScanReport | CommitReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of `scan_report` or of `commit_report`."""

    table: str
    values: Mapping[str, Any]


def to_row(report: Report, report_id: str, table_id: str, received_at: datetime) -> Row:
    """The row of a report.

    Args:
        report: as it was read.
        report_id: equal for a report that is sent again.
        table_id: our name of its table.
        received_at: when it came.

    Raises:
        BadRowError: a metric does not fit; names it.
    """
    metadata = report.metadata or {}
    values: dict[str, Any] = {
        "report_id": report_id,
        "received_at": received_at,
        "table_id": table_id,
        # Java writes -1 for a table without a snapshot.
        "snapshot_id": report.snapshot_id,
        "engine_name": metadata.get("engine-name"),
        "engine_version": metadata.get("engine-version"),
        "app_id": metadata.get("app-id"),
        "metadata_json": msgspec.json.encode(metadata, order="sorted").decode(),
    }
    if isinstance(report, ScanReport):
        return Row(table="scan_report", values=values | _scan(report))
    return Row(table="commit_report", values=values | _commit(report))


def _scan(report: ScanReport) -> dict[str, Any]:
    return {
        "snapshot_id": None if report.snapshot_id == -1 else report.snapshot_id,
        "schema_id": report.schema_id,
        "filter_json": bytes(report.filter).decode(),
        "projected_ids": report.projected_field_ids,
        "projected_columns": report.projected_field_names,
        "planning_ms": _milliseconds(report, "total-planning-duration"),
        **{name: _count(report, metric) for name, metric in _SCAN_COUNTERS.items()},
    }


def _commit(report: CommitReport) -> dict[str, Any]:
    return {
        "sequence_number": report.sequence_number,
        "operation": report.operation,
        "duration_ms": _milliseconds(report, "total-duration"),
        **{name: _count(report, metric) for name, metric in _COMMIT_COUNTERS.items()},
    }


def _count(report: Report, name: str) -> int | None:
    metric = report.metrics.get(name)
    if metric is None:
        return None
    if metric.value is None or not 0 <= metric.value <= _LARGEST:
        raise BadRowError(f"metric {name} has no count: {metric.value}")
    return metric.value


def _milliseconds(report: Report, name: str) -> float | None:
    metric = report.metrics.get(name)
    if metric is None:
        return None
    factor = _MILLISECONDS.get((metric.time_unit or "").lower())
    if factor is None or metric.total_duration is None or metric.total_duration < 0:
        raise BadRowError(f"metric {name} is no time: {metric.total_duration} {metric.time_unit}")
    return metric.total_duration * factor
