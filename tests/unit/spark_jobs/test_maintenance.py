"""The parts of the maintenance job that need no JVM."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_core.domain.curve import hilbert_index
from lakehouse_core.domain.maintenance import Kind, Plan, Stage
from lakehouse_core.domain.table import MIB
from spark_jobs.maintain import main
from spark_jobs.maintenance.arrow_files import Bin, Layout, local_path, write_bin
from spark_jobs.maintenance.arrow_schema import UnfitError, to_arrow
from spark_jobs.maintenance.compact import shared_out, why_not_arrow
from spark_jobs.maintenance.expire import choose
from spark_jobs.maintenance.fence import Fence
from spark_jobs.maintenance.groups import most_bytes
from spark_jobs.maintenance.locations import split
from spark_jobs.maintenance.outcome import (
    LeaseLostError,
    conflict_of,
    first_line,
    is_catalog_silent,
    is_no_table,
    is_unknown_commit,
)
from spark_jobs.maintenance.plan import Guards, parse_plan
from spark_jobs.maintenance.report import ActionReport, Report
from spark_jobs.maintenance.table import Metadata
from spark_jobs.plan_file import PlanError

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 16, tzinfo=UTC)
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "score", "required": False, "type": "double"},
        {
            "id": 3,
            "name": "place",
            "required": False,
            "type": {
                "type": "struct",
                "fields": [{"id": 4, "name": "lat", "required": False, "type": "double"}],
            },
        },
    ],
}


def plan_file(**changes: Any) -> dict[str, Any]:
    stage = Stage(name="c", procedure="compact_files", arguments={}, call="", estimate={})
    plan = Plan(
        kind=Kind.COMPACT,
        table_id='lake.demo."a.b"',
        table_uuid="u",
        base_snapshot_id=None,
        stages=(stage,),
        preconditions=("lease",),
        input_bytes=0,
    )
    action = {
        "action_id": "a",
        "operation_id": "o",
        "lease_token": 1,
        "plan": asdict(plan) | {"kind": "compact"},
        "guards": {"keep_snapshot_ids": [3], "older_than": NOW.isoformat()},
    }
    return {"run_id": "r", "catalog": "lake", "stop_file": None, "actions": [action | changes]}


def test_a_plan_file_is_read_back() -> None:
    run = parse_plan(json.loads(json.dumps(plan_file())))
    assert run.actions[0].table.name == "a.b"
    assert run.actions[0].guards.keep_snapshot_ids == {3}
    assert run.actions[0].guards.older_than == NOW
    assert run.stop_file is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"guards": {"older_than": "2026-11-16T00:00:00"}}, "no zone"),
        ({"guards": {"keep": 1}}, "keep"),
        ({"plan": {}}, "kind"),
        ({"verify": {"parts": 1}}, "parts"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        parse_plan(plan_file(**changes))


def test_a_table_of_another_catalog_and_an_unknown_procedure_are_refused() -> None:
    with pytest.raises(PlanError, match="not in catalog other"):
        parse_plan(plan_file() | {"catalog": "other"})
    raw = plan_file()
    raw["actions"][0]["plan"]["stages"][0]["procedure"] = "drop_table"
    with pytest.raises(PlanError, match="drop_table"):
        parse_plan(raw)


def test_a_wrong_plan_ends_the_job_before_spark_starts(tmp_path: Path) -> None:
    given = tmp_path / "plan.json"
    arguments = ["--plan", str(given), "--report", str(tmp_path / "report.json")]
    assert main(arguments) == 2
    given.write_text("{")
    assert main(arguments) == 2
    assert not (tmp_path / "report.json").exists()


def test_the_report_is_whole_after_every_action(tmp_path: Path) -> None:
    report = Report("r", tmp_path / "report.json", total=3)
    report.write()
    told = ActionReport(action_id="a")
    report.actions.append(told)
    with report.step(told, "look") as step:
        step.facts["n"] = 1
    report.write()
    found = json.loads((tmp_path / "report.json").read_text())
    assert found["outcome"] == "failed"
    assert found["actions"][0]["stages"][0]["facts"] == {"n": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


class JavaError(Exception):
    pass


def test_errors_are_told_apart_by_what_they_mean_for_the_table() -> None:
    prefix = "An error occurred while calling o1.commit.\n: org.apache.iceberg.exceptions."
    unknown = JavaError(f"{prefix}CommitStateUnknownException: 503\n at x")
    conflict = JavaError(f"{prefix}ValidationException: Cannot commit, found new delete\n at x")
    referenced = JavaError("Cannot expire 7. Still referenced by refs: [late]")
    assert is_unknown_commit(unknown)
    assert not is_unknown_commit(conflict)
    assert conflict_of(conflict) == "ValidationException: Cannot commit, found new delete"
    assert conflict_of(referenced) == "Cannot expire 7. Still referenced by refs: [late]"
    assert conflict_of(JavaError("disk full")) is None
    assert is_no_table(JavaError(f"{prefix}NoSuchTableException: gone"))
    assert first_line(JavaError("\n  disk full\n at x")) == "disk full"


def history(count: int, **more: Any) -> Metadata:
    """A table with a snapshot a day, the last one now; ids from 1."""
    snapshots = [
        {
            "snapshot-id": n,
            "timestamp-ms": int((NOW - timedelta(days=count - n)).timestamp() * 1_000),
            "summary": {"operation": "append"},
        }
        | ({"parent-snapshot-id": n - 1} if n > 1 else {})
        for n in range(1, count + 1)
    ]
    return Metadata({"snapshots": snapshots, "current-snapshot-id": count, **more})


def test_expiry_takes_what_is_old_and_nobody_needs() -> None:
    older = {"older_than": (NOW - timedelta(days=3)).isoformat()}
    assert choose(history(8), Guards(), older, NOW) == [1, 2, 3, 4]
    assert choose(history(8), Guards(min_snapshots=6), older, NOW) == [1, 2]
    assert choose(history(8), Guards(), older | {"retain_last": 7}, NOW) == [1]
    assert choose(history(8), Guards(keep_snapshot_ids=frozenset({2})), older, NOW) == [1, 3, 4]
    guard = Guards(older_than=NOW - timedelta(days=6))
    assert choose(history(8), guard, older, NOW) == [1]  # the stricter age


def test_expiry_keeps_refs_and_the_table_s_own_settings() -> None:
    older = {"older_than": NOW.isoformat()}
    refs = {
        "main": {"snapshot-id": 8, "type": "branch"},
        "kept": {"snapshot-id": 2, "type": "tag"},
        "side": {"snapshot-id": 5, "type": "branch", "min-snapshots-to-keep": 2},
    }
    assert choose(history(8, refs=refs), Guards(), older, NOW) == [1, 3, 6, 7]
    properties = {"history.expire.min-snapshots-to-keep": "7"}
    assert choose(history(8, properties=properties), Guards(), older, NOW) == [1]
    assert choose(history(8), Guards(), {}, NOW) == [1, 2]  # Iceberg's five days


def test_an_age_in_the_future_takes_no_more_than_everything_until_now() -> None:
    ahead = {"older_than": (NOW + timedelta(days=9)).isoformat()}
    assert choose(history(3), Guards(), ahead, NOW) == [1, 2]


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 4), (2, 4), (3, 3), (4, 2)])
def test_a_hilbert_curve_visits_every_point_in_steps_of_one(dimensions: int, bits: int) -> None:
    grid = np.meshgrid(*[np.arange(1 << bits)] * dimensions, indexing="ij")
    points = np.stack([axis.ravel() for axis in grid]).astype(np.int64)
    index = hilbert_index(points, bits)
    assert sorted(index) == list(range(1 << (bits * dimensions)))
    path = points[:, np.argsort(index)]
    assert (np.abs(np.diff(path, axis=1)).sum(axis=0) == 1).all()


def test_a_new_file_is_never_much_larger_than_the_target() -> None:
    """Whatever Iceberg derives from the size above which files are cut up."""
    assert most_bytes(2**39, {"target-file-size-bytes": str(100 * MIB)}) == 140 * MIB
    assert most_bytes(120 * MIB, {"target-file-size-bytes": str(100 * MIB)}) == 120 * MIB
    assert most_bytes(2**39, {}) == 2**39


def test_work_is_dealt_out_evenly() -> None:
    bins = [Bin(group=n, sources=(), rows=rows, stem="") for n, rows in enumerate((5, 9, 1, 4, 7))]
    shares = shared_out(bins, 2)
    assert sorted(sum(one.rows for one in share) for share in shares) == [13, 13]
    assert len(shared_out(bins[:1], 8)) == 1


def test_one_place_written_in_two_ways_is_one_place() -> None:
    assert split("s3a://b/t//x")[1] == split("s3://b/t/x")[1]
    assert split("file:/t/x") == split("file:///t/x") == split("/t/x/")
    assert local_path("file://host/x") is None


def layout(**changes: Any) -> Layout:
    given: dict[str, Any] = {
        "schema": to_arrow(SCHEMA).serialize().to_pybytes(),
        "iceberg_schema": json.dumps(SCHEMA),
        "unfillable": frozenset(),
        "codec": "zstd",
        "codec_level": 3,
        "row_group_bytes": 1 << 20,
        "page_bytes": 1 << 20,
        "dictionary_bytes": 1 << 20,
        "most_bytes": 1 << 30,
    }
    return Layout(**given | changes)


def source(folder: Path, name: str, rows: int = 3, schema: pa.Schema | None = None) -> str:
    schema = schema or to_arrow(SCHEMA)
    table = pa.table(
        {
            "id": range(rows),
            "score": [float("nan"), -0.0, None][:rows],
            "place": [{"lat": float("nan")}, None, {"lat": 1.5}][:rows],
        },
        schema=schema,
    )
    pq.write_table(table, folder / name)
    return str(folder / name)


@pytest.mark.parametrize("threads", [1, 3])
def test_files_become_one_with_field_ids_and_counted_nan(tmp_path: Path, threads: int) -> None:
    sources = tuple(source(tmp_path, f"{n}.parquet") for n in range(20))
    work = Bin(group=0, sources=sources, rows=60, stem=f"file:{tmp_path}/new/stem")

    (file,) = write_bin(layout(threads=threads), work, 7).files

    assert file.location == f"file:{tmp_path}/new/stem-7-00001.parquet"
    assert (file.rows, file.nan_counts) == (60, {2: 20, 4: 20})
    written = pq.ParquetFile(local_path(file.location))
    assert written.schema_arrow.remove_metadata().equals(to_arrow(SCHEMA), check_metadata=True)
    assert written.read()["id"].to_pylist() == [0, 1, 2] * 20
    assert json.loads(written.schema_arrow.metadata[b"iceberg.schema"]) == SCHEMA


def test_a_file_that_grows_too_large_is_followed_by_another(tmp_path: Path) -> None:
    sources = tuple(source(tmp_path, f"{n}.parquet") for n in range(4))
    work = Bin(group=0, sources=sources, rows=12, stem=str(tmp_path / "stem"))
    files = write_bin(layout(row_group_bytes=1, most_bytes=1), work, 0).files
    assert [one.rows for one in files] == [3, 3, 3, 3]
    assert len({one.location for one in files}) == 4


def test_other_counts_than_the_manifests_say_are_an_error_and_leave_nothing(tmp_path: Path) -> None:
    work = Bin(
        group=0, sources=(source(tmp_path, "a.parquet"),), rows=4, stem=str(tmp_path / "stem")
    )
    with pytest.raises(ValueError, match="manifests say 4"):
        write_bin(layout(), work, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_a_file_of_another_shape_is_told_and_left_to_spark(tmp_path: Path) -> None:
    schema = to_arrow(SCHEMA)
    bare = pa.schema([one.remove_metadata() for one in schema])
    without = schema.remove(0)
    other = schema.set(1, schema.field(1).with_type(pa.string()))
    table = pa.table({"place": [{"lat": 1.0}], "score": [1.0]}, schema=without.set(0, without[0]))
    pq.write_table(table.select(["score", "place"]), tmp_path / "without.parquet")
    pq.write_table(pa.table({"id": [1], "score": ["x"]}, schema=other.remove(2)), tmp_path / "o")
    cases = {
        source(tmp_path, "bare.parquet", schema=bare): "without field ids",
        str(tmp_path / "without.parquet"): "lacks column id",
        str(tmp_path / "o"): "has score as string",
    }
    for path, reason in cases.items():
        written = write_bin(layout(), Bin(group=2, sources=(path,), rows=1, stem=path), 0)
        assert written.group == 2
        assert reason in str(written.unfit)
        assert written.files == ()


def test_a_column_of_identity_partitions_is_never_taken_for_null(tmp_path: Path) -> None:
    schema = to_arrow(SCHEMA).remove(1)
    pq.write_table(
        pa.table({"id": [1], "place": [None]}, schema=schema), tmp_path / "imported.parquet"
    )
    work = Bin(group=0, sources=(str(tmp_path / "imported.parquet"),), rows=1, stem=str(tmp_path))
    assert "lacks column score" in str(write_bin(layout(unfillable=frozenset({2})), work, 0).unfit)
    assert write_bin(layout(), work, 0).unfit is None


@pytest.mark.parametrize("kind", ["variant", "geometry(srid:0)", "unknown"])
def test_types_that_arrow_does_not_write_as_iceberg_reads_them_are_left_to_spark(kind: str) -> None:
    schema = {"fields": [{"id": 1, "name": "x", "required": False, "type": kind}]}
    with pytest.raises(UnfitError):
        to_arrow(schema)


def test_properties_decide_whether_arrow_may_write() -> None:
    document = {"format-version": 2, "current-schema-id": 0, "schemas": [SCHEMA]}
    assert why_not_arrow(Metadata(document)) is None
    for key, value in {
        "write.parquet.compression-codec": "brotli",
        "write.format.default": "avro",
        "encryption.key-id": "k",
    }.items():
        assert why_not_arrow(Metadata(document | {"properties": {key: value}})) is not None


def fence(file: Path, text: str | None) -> Fence:
    request = parse_plan(plan_file(lease_file=str(file))).actions[0]
    if text is not None:
        file.write_text(text)
    return Fence(request)


def test_a_lease_that_holds_lets_pass_and_without_one_nobody_is_asked(tmp_path: Path) -> None:
    ends = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    told = {"token": 1, "expires_at": ends, "released_at": None}
    fence(tmp_path / "lease.json", json.dumps(told)).check()
    Fence(parse_plan(plan_file()).actions[0]).check()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"token": 1}', "cannot be read"),
        ('{"token": 2, "expires_at": "2100-01-01T00:00:00+00:00", "released_at": null}', "taken"),
        ('{"token": 1, "expires_at": "2026-01-01T00:00:00+00:00", "released_at": null}', "ended"),
        ('{"token": 1, "expires_at": "2100-01-01", "released_at": "2026-01-01"}', "ended 2026"),
    ],
)
def test_a_lease_that_does_not_hold_or_cannot_be_read_stops_the_job(
    tmp_path: Path, text: str | None, said: str
) -> None:
    with pytest.raises(LeaseLostError, match=said):
        fence(tmp_path / "lease.json", text).check()


def test_what_a_task_raised_is_told_and_not_that_one_failed() -> None:
    text = (
        "An error occurred while calling z:collectAndServe.\n: org.apache.spark.SparkException: "
        "Job aborted: Task 0 failed: org.apache.spark.api.python.PythonException: Traceback (most "
        'recent call last):\n  File "worker.py", line 1, in main\n    process()\n'
        "OSError: [Errno 28] No space left on device\n\n\tat org.apache.spark.Runner.scala"
    )
    assert first_line(RuntimeError(text)) == "OSError: [Errno 28] No space left on device"


@pytest.mark.parametrize(
    ("text", "is_silent"),
    [
        ("UncheckedSQLException: Failed to get table: [SQLITE_BUSY] The database is locked", True),
        ("org.apache.iceberg.exceptions.ServiceFailureException: Server error: 503", True),
        ("java.net.ConnectException: Connection refused", True),
        ("org.apache.spark.SparkException: Job aborted", False),
        ("java.lang.OutOfMemoryError: Java heap space", False),
    ],
)
def test_a_catalog_that_does_not_answer_is_told_from_a_failure(text: str, is_silent: bool) -> None:
    assert is_catalog_silent(RuntimeError(text)) is is_silent
