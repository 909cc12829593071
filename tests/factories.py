"""Records with sensible values, so that a test names only what it is about.

query_event(status=QueryStatus.FAILED, error_class="INSUFFICIENT_RESOURCES")
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import socket
from datetime import UTC, datetime, timedelta
from typing import Any

from lakehouse_core.domain.agent import AgentRun, AgentState, DeadLetter, Watermark
from lakehouse_core.domain.engine import EngineProbe, ObservedState
from lakehouse_core.domain.health import Contributor, HealthState, TableHealth
from lakehouse_core.domain.maintenance import (
    Action,
    Change,
    DecisionRequest,
    Kind,
    Plan,
    Stage,
    State,
)
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus, StatementKind
from lakehouse_core.domain.table import MIB, LakeTable, SnapshotCommit, TableMetrics

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
_numbers = itertools.count(1)


def unique(prefix: str) -> str:
    """A text no other call returns: `q-1`, `q-2`, …"""
    return f"{prefix}-{next(_numbers)}"


# Below the range the kernel takes the near ends of outgoing connections from: a port given to a
# test stays free while its server is away, whatever else this machine connects to meanwhile.
_ports = iter(random.Random(os.getpid()).sample(range(10_000, 32_000), 20_000))  # noqa: S311
_given_ports: set[int] = set()


def free_port() -> int:
    """A port that nobody listens on at this moment, and a new one each time."""
    for port in _ports:
        if port not in _given_ports and _is_free(port):
            _given_ports.add(port)
            return port
    raise AssertionError("no port is left")


def _is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False


def free_port_pair() -> int:
    """The first of two neighbouring ports that nobody listens on: the store takes both."""
    while True:
        first = free_port()
        if first + 1 not in _given_ports and _is_free(first + 1):
            _given_ports.add(first + 1)
            return first


def query_event(**given: Any) -> QueryEvent:
    """A finished SELECT on DuckDB that took 1.5 s; a new query id each time."""
    submitted_at = given.get("submitted_at", NOW - timedelta(minutes=5))
    is_over = given.get("status", QueryStatus.FINISHED).revision == 2
    values: dict[str, Any] = {
        "engine_id": EngineId("duckdb"),
        "query_id": unique("q") if "query_id" not in given else "",
        "status": QueryStatus.FINISHED,
        "submitted_at": submitted_at,
        "collected_at": NOW,
        "dialect": "duckdb",
        "sql_text": "SELECT count(*) FROM demo.events WHERE day = DATE '2026-11-15'",
        "statement_kind": StatementKind.SELECT,
        "user_name": "ana",
        "source": "bi",
        "started_at": submitted_at + timedelta(milliseconds=100),
        "ended_at": submitted_at + timedelta(milliseconds=1_500) if is_over else None,
        "queued_ms": 100.0,
        "execution_ms": 1_400.0 if is_over else None,
        "elapsed_ms": 1_500.0 if is_over else None,
        "bytes_scanned": 4 * MIB if is_over else None,
        "rows_returned": 1 if is_over else None,
    }
    return QueryEvent(**{**values, **given})


def table_metrics(**given: Any) -> TableMetrics:
    """A table in good shape: 20 files of 64 MiB, 3 snapshots, no deletes."""
    data_files = given.get("data_files", 20)
    total_bytes = given.get("total_bytes", data_files * 64 * MIB)
    mean = total_bytes / data_files if data_files else None
    values: dict[str, Any] = {
        "table_id": "lake.demo.healthy",
        "snapshot_id": 1,
        "metadata_location": "file:/lake/warehouse/demo/healthy/metadata/00001.metadata.json",
        "collected_at": NOW,
        "format_version": 2,
        "data_files": data_files,
        "total_bytes": total_bytes,
        "total_rows": data_files * 500_000,
        "small_files": 0,
        "avg_file_bytes": mean,
        "median_file_bytes": mean,
        "file_size_histogram": (0, 0, 0, data_files, 0, 0),
        "delete_files": 0,
        "position_delete_files": 0,
        "equality_delete_files": 0,
        "deletion_vectors": 0,
        "deleted_rows": 0,
        "delete_ratio": 0.0,
        "manifests": 2,
        "manifest_bytes": 20_000,
        "snapshots": 3,
        "oldest_snapshot_at": NOW - timedelta(days=1),
        "latest_snapshot_at": NOW - timedelta(hours=1),
        "metadata_bytes": 5_000,
        "partitions": 1,
        "skew": 1.0,
        "sort_order": None,
        "sort_overlap": None,
        "unsorted_share": None,
    }
    return TableMetrics(**{**values, **given})


def lake_table(**given: Any) -> LakeTable:
    """`lake.demo.events` as last seen; a `table_id` given fills the other names."""
    table_id = given.get("table_id", "lake.demo.events")
    catalog, *namespace, name = table_id.split(".")
    values: dict[str, Any] = {
        "table_id": table_id,
        "catalog": catalog,
        "namespace": ".".join(namespace),
        "table_name": name,
        "seen_at": NOW,
        "table_uuid": "5d3f9a4e-0000-4000-8000-000000000001",
        "metadata_location": f"file:/lake/warehouse/{name}/metadata/00001.metadata.json",
        "current_snapshot_id": 1,
    }
    return LakeTable(**{**values, **given})


def snapshot_commit(**given: Any) -> SnapshotCommit:
    """An append of one file; a new snapshot id each time."""
    values: dict[str, Any] = {
        "table_id": "lake.demo.events",
        "snapshot_id": next(_numbers),
        "parent_id": None,
        "committed_at": NOW - timedelta(hours=1),
        "operation": "append",
        "added_files": 1,
        "deleted_files": 0,
        "added_rows": 1_000,
        "deleted_rows": 0,
        "added_bytes": 1 * MIB,
        "engine_name": "spark",
        "app_id": "app-1",
        "flink_job_id": None,
        "flink_checkpoint_id": None,
    }
    return SnapshotCommit(**{**values, **given})


def engine_probe(**given: Any) -> EngineProbe:
    """A healthy DuckDB."""
    values: dict[str, Any] = {
        "engine_id": EngineId("duckdb"),
        "probed_at": NOW,
        "observed": ObservedState.HEALTHY,
        "version": "1.5.5",
        "latency_ms": 2.0,
        "running_queries": 0,
        "queued_queries": 0,
    }
    return EngineProbe(**{**values, **given})


def contributor(**given: Any) -> Contributor:
    """Too many small files."""
    values: dict[str, Any] = {
        "rule": "small_file_share",
        "state": HealthState.CRITICAL,
        "value": 0.9,
        "warning": 0.2,
        "critical": 0.5,
        "unit": "share",
        "points_lost": 40.0,
        "message": "90 % of 1,000 data files are smaller than 32 MiB",
    }
    return Contributor(**{**values, **given})


def table_health(**given: Any) -> TableHealth:
    """A critical verdict on `lake.demo.events`."""
    values: dict[str, Any] = {
        "table_id": "lake.demo.events",
        "assessed_at": NOW,
        "snapshot_id": 1,
        "state": HealthState.CRITICAL,
        "score": 42.0,
        "amoro_score": 55.0,
        "contributors": (contributor(),),
    }
    return TableHealth(**{**values, **given})


def agent_state(**given: Any) -> AgentState:
    """A job whose source answers."""
    values: dict[str, Any] = {
        "agent": "collect:duckdb",
        "circuit": "closed",
        "failures": 0,
        "since": NOW - timedelta(days=1),
        "reason": None,
        "retry_at": None,
        "abandoned": 0,
        "updated_at": NOW,
    }
    return AgentState(**{**values, **given})


def agent_run(**given: Any) -> AgentRun:
    """A collect run that went well; a new run id each time."""
    values: dict[str, Any] = {
        "run_id": unique("run") if "run_id" not in given else "",
        "agent": "collect:duckdb",
        "started_at": NOW - timedelta(seconds=10),
        "ended_at": NOW - timedelta(seconds=9),
        "outcome": "ok",
        "rows_written": 12,
        "dead_letters": 0,
        "error": None,
    }
    return AgentRun(**{**values, **given})


def watermark(**given: Any) -> Watermark:
    """DuckDB's journal, read up to now."""
    values: dict[str, Any] = {
        "source": "duckdb",
        "position": "{}",
        "event_at": NOW,
        "updated_at": NOW,
    }
    return Watermark(**{**values, **given})


def dead_letter(**given: Any) -> DeadLetter:
    """A payload that was not JSON."""
    values: dict[str, Any] = {
        "source": "duckdb",
        "letter_id": unique("letter") if "letter_id" not in given else "",
        "seen_at": NOW,
        "reason": "not JSON",
        "payload": "{",
    }
    return DeadLetter(**{**values, **given})


def maintenance_plan(**given: Any) -> Plan:
    """A compaction of `lake.demo.events`."""
    values: dict[str, Any] = {
        "kind": Kind.COMPACT,
        "table_id": "lake.demo.events",
        "table_uuid": "5d3f9a4e-0000-4000-8000-000000000001",
        "base_snapshot_id": 1,
        "stages": (
            Stage(
                name="compact",
                procedure="compact_files",
                arguments={"table": "`lake`.`demo`.`events`"},
                call="CALL `lake`.system.rewrite_data_files(table => '`lake`.`demo`.`events`')",
                estimate={"input_files": 336.0, "output_files": 1.0},
            ),
        ),
        "preconditions": ("lease",),
        "input_bytes": 64 * MIB,
    }
    return Plan(**{**values, **given})


def action(**given: Any) -> Action:
    """A proposal to compact `lake.demo.events`, made an hour ago; a new id each time."""
    kind = given.get("kind", Kind.COMPACT)
    table_id = given.get("table_id", "lake.demo.events")
    values: dict[str, Any] = {
        "action_id": unique("a") if "action_id" not in given else "",
        "dedupe_key": f"{kind.value} {table_id}",
        "revision": 0,
        "kind": kind,
        "table_id": table_id,
        "state": State.PROPOSED,
        "title": "Put 336 small files together",
        "reason": "336 of 336 data files (100%) are smaller than 32MiB",
        "evidence": (),
        "evidence_at": NOW - timedelta(hours=1),
        "predicted": (
            Change(name="data_files", unit="files", before=336, after=1, low=1, high=2),
            Change(name="score", unit="points", before=40.0, after=95.0),
        ),
        "risk": "Undo: roll back to the snapshot before.",
        "plan": maintenance_plan(kind=kind, table_id=table_id),
        "plan_hash": "ab" * 32,
        "gain_usd_month": None,
        "cost_usd": None,
        "priority": 0.5,
        "proposed_by": "lakehelm",
        "proposed_at": NOW - timedelta(hours=1),
        "updated_at": NOW - timedelta(hours=1),
        "expires_at": NOW + timedelta(days=6),
    }
    return Action(**{**values, **given})


def decision_request(**given: Any) -> DecisionRequest:
    """Ana approves what she has just seen; a new id each time."""
    values: dict[str, Any] = {
        "request_id": unique("wish") if "request_id" not in given else "",
        "asked_at": NOW,
        "action_id": "a-1",
        "verb": "approve",
        "actor": "ana",
        "reason": None,
        "plan_hash": "ab" * 32,
        "confirmation": None,
        "until": None,
        "state": "waiting",
    }
    return DecisionRequest(**{**values, **given})
