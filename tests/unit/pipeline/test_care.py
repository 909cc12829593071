from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from lakehouse_core.catalog.metadata import Snapshot, TableMetadata
from lakehouse_core.config.models import PipelineConfig
from lakehouse_core.pipeline.care import plan_care
from lakehouse_core.pipeline.state import LakeState

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=3)
SETTINGS = PipelineConfig(compact_after_files=10, expire_after_snapshots=5)


def table(*operations: str, since: datetime = LONG_AGO) -> TableMetadata:
    snapshots = tuple(
        Snapshot(
            snapshot_id=number,
            parent_id=number - 1,
            timestamp_ms=int(since.timestamp() * 1_000) + number,
            manifest_list=None,
            summary={"operation": operation, "added-data-files": "4"},
        )
        for number, operation in enumerate(operations, start=1)
    )
    empty: dict[str, Any] = {"fields": (), "partition_names": {}, "properties": {}}
    return TableMetadata(
        location="x",
        size_bytes=1,
        table_uuid="u",
        format_version=2,
        snapshots=snapshots,
        current=snapshots[-1],
        sort_order=None,
        **empty,
    )


def care(**tables: TableMetadata) -> dict[str, Any]:
    return plan_care(LakeState(tables=tables), SETTINGS, NOW)


def test_a_table_is_compacted_once_enough_files_came_since_the_last_time() -> None:
    assert care(sql_text=table("append", "append"))["compact"] == []
    assert care(sql_text=table("append", "append", "append"))["compact"] == ["sql_text"]
    assert care(sql_text=table("append", "append", "append", "replace"))["compact"] == []


def test_gold_is_replaced_day_by_day_and_needs_no_compaction() -> None:
    assert care(template_hour=table(*("overwrite",) * 5))["compact"] == []


def test_many_snapshots_are_expired_everywhere() -> None:
    found = care(template_hour=table(*("overwrite",) * 6), sql_text=table("append"))
    assert found["expire"] == ["template_hour"]
    assert found["keep_hours"] == 24


def test_snapshots_that_expiry_would_keep_are_no_reason_to_start_it() -> None:
    young = table(*("overwrite",) * 60, since=NOW - timedelta(hours=23))
    assert care(template_hour=young)["expire"] == []
