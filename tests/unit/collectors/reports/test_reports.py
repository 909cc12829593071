"""Reports as Iceberg 1.12's own Java code writes them (ReportMetricsRequestParser)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from collectors.reports.intake import ReportIntake
from lakehouse_core.gateway.intake import Delivery, Mapped
from lakehouse_core.store.batch import conform
from tests.factories import NOW

FIXTURES = Path(__file__).parents[3] / "integration" / "fixtures" / "iceberg_reports"
SCAN: dict[str, Any] = json.loads((FIXTURES / "scan.json").read_text())
COMMIT: dict[str, Any] = json.loads((FIXTURES / "commit.json").read_text())


def map_reports(
    *reports: dict[str, Any], path: dict[str, str] | None = None, catalogs: tuple = ("lake",)
) -> Mapped:
    intake = ReportIntake(catalogs, lambda: NOW)
    return intake.map([Delivery(path or {}, json.dumps(r).encode()) for r in reports])


def only_row(table: str, *reports: dict[str, Any], **more: Any) -> dict[str, Any]:
    (row,) = map_reports(*reports, **more).rows[table].to_pylist()
    return dict(row)


def test_a_scan_says_what_was_read_and_what_was_skipped() -> None:
    row = only_row("scan_report", SCAN)
    assert (row["table_id"], row["snapshot_id"]) == ("lake.demo.events", 5147114549406517015)
    assert (row["scanned_data_files"], row["skipped_data_files"]) == (7, 93)
    assert (row["scanned_bytes"], row["scanned_delete_bytes"]) == (10_485_760, 1_024)
    assert (row["scanned_data_manifests"], row["skipped_data_manifests"]) == (2, 3)
    assert row["total_data_manifests"] == 5
    assert row["planning_ms"] == pytest.approx(2_644.235116)
    assert row["projected_columns"] == ["id", "day", "note"]
    assert row["projected_ids"] == [1, 2, 5]
    assert (row["engine_name"], row["engine_version"], row["app_id"]) == (
        "spark",
        "4.1.4",
        "local-1",
    )
    assert json.loads(row["filter_json"]) == SCAN["filter"]
    assert json.loads(row["metadata_json"])["iceberg-version"] == "Apache Iceberg 1.12.0"
    assert row["deletion_vectors"] == 1


def test_a_commit_says_what_changed_and_how_long_it_took() -> None:
    row = only_row("commit_report", COMMIT)
    assert (row["operation"], row["sequence_number"], row["attempts"]) == ("overwrite", 9, 2)
    assert row["duration_ms"] == pytest.approx(321.0)
    assert (row["added_data_files"], row["removed_data_files"], row["total_data_files"]) == (
        3,
        2,
        40,
    )
    assert (row["added_rows"], row["removed_rows"], row["total_rows"]) == (1_000, 10, 41_000)
    assert (row["added_bytes"], row["removed_bytes"]) == (4_096, 2_048)
    assert row["removed_delete_files"] is None  # not said, not zero
    assert row["engine_name"] == "flink"


def test_the_rows_fit_the_store_and_a_repeated_report_has_the_same_key() -> None:
    mapped = map_reports(SCAN, COMMIT, SCAN)
    for name, table in mapped.rows.items():
        conform(name, table)
    ids = mapped.rows["scan_report"].column("report_id").to_pylist()
    assert ids[0] == ids[1]
    other = {**SCAN, "snapshot-id": 1}
    assert only_row("scan_report", other)["report_id"] != ids[0]


@pytest.mark.parametrize(
    ("reported", "path", "catalogs", "expected"),
    [
        ("lake.demo.t", {}, ("lake",), "lake.demo.t"),
        ("demo.t", {}, ("lake",), "lake.demo.t"),
        ("rest.demo.t", {"namespace": "demo", "table": "t"}, ("lake",), "lake.demo.t"),
        (
            "rest.a.b.t",
            {"prefix": "cold", "namespace": "a\x1fb", "table": "t"},
            ("lake", "cold"),
            "cold.a.b.t",
        ),
        ("rest.demo.t", {"namespace": "demo", "table": "t"}, ("lake", "cold"), "rest.demo.t"),
    ],
)
def test_a_table_bears_our_name_of_its_catalog(
    reported: str, path: dict[str, str], catalogs: tuple[str, ...], expected: str
) -> None:
    report = {**SCAN, "table-name": reported}
    row = only_row("scan_report", report, path=path, catalogs=catalogs)
    assert row["table_id"] == expected


def test_a_table_without_a_snapshot_has_none() -> None:
    assert only_row("scan_report", {**SCAN, "snapshot-id": -1})["snapshot_id"] is None


def changed(report: dict[str, Any], *path: str, value: Any) -> dict[str, Any]:
    made = copy.deepcopy(report)
    place = made
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return made


@pytest.mark.parametrize(
    ("report", "named"),
    [
        (changed(SCAN, "report-type", value="rumour"), "rumour"),
        (changed(SCAN, "snapshot-id", value="one"), "snapshot-id"),
        (changed(SCAN, "snapshot-id", value=2**70), "snapshot-id"),
        (changed(SCAN, "projected-field-ids", value=[2**40]), "projected-field-ids"),
        (changed(SCAN, "metrics", "dvs", "value", value=-1), "dvs"),
        (changed(SCAN, "metrics", "dvs", "value", value="x"), "metrics"),
        (
            changed(SCAN, "metrics", "total-planning-duration", "time-unit", value="moons"),
            "total-planning-duration",
        ),
        ({k: v for k, v in COMMIT.items() if k != "operation"}, "operation"),
        ({}, "report-type"),
    ],
)
def test_a_report_that_does_not_fit_is_a_dead_letter_that_names_the_field(
    report: dict[str, Any], named: str
) -> None:
    mapped = map_reports(report, SCAN)
    assert [(v.accepted, v.dead_letters) for v in mapped.verdicts] == [(0, 1), (1, 0)]
    (letter,) = mapped.rows["dead_letter"].to_pylist()
    assert named in letter["reason"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 9_000])
def test_what_is_not_json_is_refused(body: bytes) -> None:
    (verdict,) = ReportIntake(("lake",), lambda: NOW).map([Delivery({}, body)]).verdicts
    assert "not JSON" in str(verdict.refusal)
