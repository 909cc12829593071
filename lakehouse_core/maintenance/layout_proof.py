"""The proof of a layout: the very conditions it was advised for, planned before and after.

Exact: files and bytes that planning keeps, from the manifests of the snapshot before the rewrite
and of the one it made. What was predicted stands beside it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import structlog

from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.domain.layout import LayoutAdvice, LayoutProof
from lakehouse_core.domain.maintenance import Change, Kind
from lakehouse_core.layout.decision import Pricing
from lakehouse_core.layout.evidence import read_workload
from lakehouse_core.layout.planned import LakeFiles
from lakehouse_core.layout.simulate import replay
from lakehouse_core.layout.usable import Columns
from lakehouse_core.layout.workload import columns_tested, from_json
from lakehouse_core.maintenance.verify import ACTION
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.catalog.metadata import TableMetadata
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.maintenance import Action
    from lakehouse_core.layout.simulate import Replay
    from lakehouse_core.layout.workload import Workload
    from lakehouse_core.store.port import TelemetryStore

ORDERS = frozenset({Kind.SORT, Kind.ZORDER, Kind.HILBERT})
ADVICE_SQL = """
SELECT * FROM layout_advice
WHERE table_id = $table::VARCHAR AND advised_at <= $at::TIMESTAMPTZ
ORDER BY layout IS NULL, advised_at DESC LIMIT 1
"""
_log = structlog.get_logger(__name__)


def prove_layout(
    action: Action, store: TelemetryStore, config: Config, now: datetime
) -> tuple[Change, ...]:
    """Plan the workload before and after, write the proof down, and sum it up.

    Nothing when the action orders nothing, nobody reads the table, or a snapshot has expired:
    then it is said in the log.
    """
    if action.kind not in ORDERS:
        return ()
    files = LakeFiles(config)
    try:
        return _prove(action, store, config, files, now)
    except LakehouseError as error:
        _log.warning("layout.unproven", action=action.action_id, detail=str(error))
        return ()
    finally:
        files.close()


def _prove(
    action: Action, store: TelemetryStore, config: Config, files: LakeFiles, now: datetime
) -> tuple[Change, ...]:
    metadata = files.metadata(action.table_id)
    edges = _edges(metadata, action.action_id)
    workload, predicted = _workload(action, store, config, metadata, now)
    if edges is None or not workload.patterns:
        return ()
    columns = {name for one in workload.conditions for name in columns_tested(one)}
    before, after = (
        replay(
            workload.conditions,
            files.bounds(files.read(action.table_id, metadata, snapshot_id), columns),
        )
        for snapshot_id in edges
    )
    rows = _rows(action.action_id, workload, (before, after), predicted, now)
    store.upsert("layout_proof", to_arrow("layout_proof", rows))
    return _changes(rows)


def _edges(metadata: TableMetadata, action_id: str) -> tuple[int, int] | None:
    """The snapshot before the action's first commit, and its last one."""
    ours = [one for one in metadata.history if one.summary.get(ACTION) == action_id]
    if not ours or ours[-1].parent_id is None:
        return None
    return ours[-1].parent_id, ours[0].snapshot_id


def _workload(
    action: Action, store: TelemetryStore, config: Config, metadata: TableMetadata, now: datetime
) -> tuple[Workload, dict[tuple[str, str], tuple[float, float]]]:
    """What was advised from, with its prediction per template and engine; else who reads now."""
    found = records(
        LayoutAdvice, store.read(ADVICE_SQL, table=action.table_id, at=action.evidence_at)
    )
    if not found:
        start = now - config.maintenance.evidence_window
        columns = Columns.of(metadata)
        return read_workload(store, action.table_id, columns, start, now), {}
    said: dict[str, Any] = json.loads(found[0].advice)
    is_same = found[0].layout is not None and action.dedupe_key.endswith(f" {found[0].layout}")
    predicted = {
        (row["template_id"], row["engine_id"]): (row["bytes_then"], row["files_then"])
        for row in said["rows"]
        if is_same
    }
    return from_json(found[0].workload), predicted


def _rows(
    action_id: str,
    workload: Workload,
    replays: tuple[Replay, Replay],
    predicted: dict[tuple[str, str], tuple[float, float]],
    now: datetime,
) -> list[LayoutProof]:
    before, after = replays
    pricing = Pricing(workload, {}, before)
    rows = []
    for pattern in workload.patterns:
        size_before, files_before = pricing.per_run(pattern, before)
        size_after, files_after = pricing.per_run(pattern, after)
        for reader in pattern.readers:
            expected = predicted.get((pattern.template_id, reader.engine_id))
            rows.append(
                LayoutProof(
                    action_id=action_id,
                    template_id=pattern.template_id,
                    engine_id=reader.engine_id,
                    proven_at=now,
                    runs=reader.runs,
                    bytes_before=size_before,
                    files_before=files_before,
                    bytes_predicted=expected[0] if expected else None,
                    files_predicted=expected[1] if expected else None,
                    bytes_after=size_after,
                    files_after=files_after,
                )
            )
    return rows


def _changes(rows: list[LayoutProof]) -> tuple[Change, ...]:
    runs = max(1, sum(row.runs for row in rows))

    def mean(name: str) -> float:
        return float(round(sum(getattr(row, name) * row.runs for row in rows) / runs, 3))

    return (
        Change(
            name="scan_bytes",
            unit="bytes per run",
            before=mean("bytes_before"),
            after=mean("bytes_after"),
        ),
        Change(
            name="scan_files",
            unit="files per run",
            before=mean("files_before"),
            after=mean("files_after"),
        ),
    )
