"""What breaks in between: answers are lost, tables vanish, rows change, somebody says stop."""

from __future__ import annotations

import contextlib
import json
import resource
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.maintenance import Kind
from tests.integration.maintenance.job.lakes import FEW, MERGE_ON_READ, Lake, ok, stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse_core.domain.table import TableName

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
LOST = "org.apache.iceberg.exceptions.CommitStateUnknownException: 503, try again later"


class AnswerLostError(Exception):
    pass


def tools(**parts: Callable[..., Any]) -> Any:
    from spark_jobs.maintenance.work import Tools  # noqa: PLC0415 needs pyspark

    return Tools(**{"pause": lambda _: None, **parts})


def commit(*given: Any) -> None:
    from spark_jobs.maintenance.commit import commit_groups  # noqa: PLC0415 needs pyspark

    commit_groups(*given)


def test_a_commit_whose_answer_is_lost_is_found_by_its_operation(lake: Lake) -> None:
    table = lake.events(3)
    rows = lake.rows(table)

    def applied(*given: Any) -> None:
        commit(*given)
        raise AnswerLostError(LOST)

    report = ok(lake.compact(table, tools(commit=applied)))

    assert len(report.commits) == 1
    assert "503" in report.stages[1].facts["answer_lost"]
    assert lake.rows(table) == rows
    lake.assert_whole(table)


def test_a_commit_nobody_knows_of_is_unknown_and_nothing_is_deleted(lake: Lake) -> None:
    table = lake.events(3)
    rows, files = lake.rows(table), len(lake.files(table))
    written: list[str] = []

    def never(_table: Any, _snapshot: int, groups: Any, _properties: Any) -> None:
        written.extend(file.location() for group in groups for file in group.java.addedFiles())
        raise AnswerLostError(LOST)

    report = lake.compact(table, tools(commit=never))

    assert report.outcome == "unknown"
    assert report.commits == []
    assert written
    assert all(Path(one.removeprefix("file:")).exists() for one in written)
    assert lake.rows(table) == rows
    assert len(lake.files(table)) == files


def test_an_action_is_not_done_twice(lake: Lake) -> None:
    table = lake.events(3)
    request = lake.request(table, Kind.COMPACT, [stage("compact_files", options=FEW)])
    first = ok(lake.run(request))
    lake.append(table, 7)
    lake.append(table, 8)
    files = len(lake.files(table))

    again = ok(lake.run(request))

    assert again.commits == first.commits
    assert again.stages[1].facts["found_done"] is True
    assert len(lake.files(table)) == files


def test_a_run_that_died_before_its_commit_is_simply_run_again(lake: Lake) -> None:
    table = lake.events(3)
    rows = lake.rows(table)
    request = lake.request(table, Kind.COMPACT, [stage("compact_files", options=FEW)])

    def die(*_: Any) -> None:
        raise KeyboardInterrupt  # nothing is tidied up after it, as after a kill

    with pytest.raises(KeyboardInterrupt):
        lake.run(request, tools(commit=die))
    assert lake.rows(table) == rows

    assert len(ok(lake.run(request)).commits) == 1
    assert lake.rows(table) == rows
    lake.assert_whole(table)


def with_other_rows(layout: Any, work: Any, attempt: int) -> Any:
    """The first file twice and the last not at all: as many rows, but not the same."""
    from spark_jobs.maintenance.arrow_files import write_bin  # noqa: PLC0415 as above

    return write_bin(layout, replace(work, sources=(*work.sources[:-1], work.sources[0])), attempt)


def test_other_rows_after_a_rewrite_are_rolled_back(lake: Lake) -> None:
    table = lake.events(3, partition="day")
    rows, head = lake.rows(table), lake.snapshots(table)[-1]

    report = lake.compact(table, tools(write=with_other_rows))

    assert (report.outcome, report.rolled_back) == ("failed", True)
    assert [check.ok for check in report.checks] == [True, False]  # the count, the content
    assert "rolled back" in str(report.error)
    assert lake.open(table).metadata().current_snapshot_id == head
    assert lake.rows(table) == rows


def test_a_rollback_never_takes_back_another_writers_rows(lake: Lake) -> None:
    table = lake.events(3)

    def commit_then_append(*given: Any) -> None:
        commit(*given)
        lake.append(table, 50)

    report = lake.compact(table, tools(write=with_other_rows, commit=commit_then_append))

    assert (report.outcome, report.rolled_back) == ("failed", False)
    assert "NOT rolled back" in str(report.error)
    assert lake.sql("SELECT id FROM {t} WHERE id >= 1000", table)


def test_a_table_dropped_meanwhile_is_refused(lake: Lake) -> None:
    table = lake.events(2)

    def drop(*given: Any) -> None:
        lake.sql("DROP TABLE {t}", table)
        commit(*given)

    report = lake.compact(table, tools(commit=drop))
    assert report.outcome == "refused"
    assert "dropped" in str(report.error)


def test_another_table_of_the_same_name_is_refused(lake: Lake) -> None:
    table = lake.events(2)
    request = lake.request(table, Kind.COMPACT, [stage("compact_files", options=FEW)])
    lake.sql("DROP TABLE {t}", table)
    lake.table(name=table.name)
    for number in range(3):
        lake.append(table, number)

    report = lake.run(request)

    assert report.outcome == "refused"
    assert "uuid" in str(report.error)
    assert len(lake.files(table)) == 3


def test_a_table_that_is_not_there_is_refused(lake: Lake) -> None:
    table = lake.table()
    request = lake.request(table, Kind.COMPACT, [stage("compact_files", options=FEW)])
    lake.sql("DROP TABLE {t}", table)
    assert lake.run(request).outcome == "refused"


def test_a_column_added_meanwhile_does_no_harm(lake: Lake) -> None:
    table = lake.events(3)

    def widen(*given: Any) -> None:
        lake.sql("ALTER TABLE {t} ADD COLUMN extra INT", table)
        lake.sql("INSERT INTO {t} VALUES (999, DATE '2026-11-09', 'x', 1.0, 5)", table)
        commit(*given)

    report = lake.compact(table, tools(commit=widen))

    assert report.outcome == "done", report.error
    rows = lake.sql("SELECT id, extra FROM {t}", table)
    assert sorted(row.id for row in rows) == [*range(60), 999]
    assert [row.extra for row in rows if row.id == 999] == [5]


def test_a_stop_ends_running_jobs_and_leaves_the_table_whole(lake: Lake, tmp_path: Path) -> None:
    table = lake.events(3)
    rows, snapshots = lake.rows(table), lake.snapshots(table)
    flag = tmp_path / "stop"
    told = str(flag)

    def slowly(_layout: Any, _work: Any, _attempt: int) -> Any:
        Path(told).touch()
        time.sleep(600)

    request = lake.request(table, Kind.COMPACT, [stage("compact_files", options=FEW)])
    started = time.monotonic()
    report = lake.run(request, tools(write=slowly), stop_file=flag)

    assert report.outcome == "stopped"
    assert time.monotonic() - started < 300  # not when its task is over
    assert (lake.rows(table), lake.snapshots(table)) == (rows, snapshots)
    assert lake.run(request, stop_file=flag).outcome == "stopped"
    flag.unlink()
    ok(lake.run(request, stop_file=flag))


@pytest.mark.parametrize("name", ['Größe `x` "y" z', "a.b;--drop", "it's"])
def test_names_are_data(lake: Lake, name: str) -> None:
    table = lake.table('`it\'s a "key"` BIGINT, `p.q` STRING', name=name, partition="`p.q`")
    for number in range(3):
        lake.sql(f"INSERT INTO {{t}} VALUES ({number}, 'a/b c')", table)  # noqa: S608 our number
    rows = lake.rows(table)

    ok(lake.compact(table, protected_partitions=({"p.q": "none of these"},)))

    assert len(lake.files(table)) == 1
    assert lake.rows(table) == rows
    older = "2100-01-01T00:00:00+00:00"
    expiry = [stage("expire_snapshots", older_than=older, retain_last=1)]
    ok(lake.run(lake.request(table, Kind.EXPIRE_SNAPSHOTS, expiry)))
    assert lake.rows(table) == rows
    lake.assert_whole(table)


def lease(file: Path, *, token: int = 7, seconds: float = 60, is_released: bool = False) -> str:
    """A lease as the agents tell it; `lake.request` works under token 7."""
    now = datetime.now(UTC)
    document = {
        "token": token,
        "expires_at": (now + timedelta(seconds=seconds)).isoformat(),
        "released_at": now.isoformat() if is_released else None,
    }
    file.write_text(json.dumps(document))
    return str(file)


@pytest.mark.parametrize(
    "meanwhile", [{"token": 8}, {"seconds": -1}, {"is_released": True}], ids=str
)
def test_a_lease_lost_while_files_were_written_commits_nothing(
    lake: Lake, tmp_path: Path, meanwhile: dict[str, Any]
) -> None:
    from spark_jobs.maintenance.arrow_files import write_bin  # noqa: PLC0415 needs pyspark

    table = lake.events(3)
    rows, snapshots, files = lake.rows(table), lake.snapshots(table), data_files(lake, table)
    told = tmp_path / "lease.json"
    document = Path(lease(tmp_path / "other.json", **meanwhile)).read_text()
    request = lake.request(table, Kind.COMPACT, [stage("compact_files", options=FEW)])
    request = replace(request, lease_file=lease(told))
    place = str(told)

    def paused(layout: Any, work: Any, attempt: int) -> Any:
        Path(place).write_text(document)
        return write_bin(layout, work, attempt)

    report = lake.run(request, tools(write=paused))

    assert report.outcome == "lost", report.error
    assert "lease" in str(report.error)
    assert (lake.rows(table), lake.snapshots(table)) == (rows, snapshots)
    assert data_files(lake, table) == files  # what was written is tidied up
    lease(told)
    ok(lake.run(request))
    assert lake.rows(table) == rows


@pytest.mark.parametrize("procedure", ["rewrite_data_files", "rewrite_manifests", "expire"])
def test_without_a_lease_no_procedure_is_begun(lake: Lake, tmp_path: Path, procedure: str) -> None:
    table = lake.events(3)
    snapshots = lake.snapshots(table)
    steps = {
        "rewrite_data_files": (Kind.SORT, stage("rewrite_data_files", strategy="sort",
                                                sort_order="`id`", options=FEW)),
        "rewrite_manifests": (Kind.REWRITE_MANIFESTS, stage("rewrite_manifests")),
        "expire": (Kind.EXPIRE_SNAPSHOTS,
                   stage("expire_snapshots", older_than="2100-01-01T00:00:00+00:00")),
    }  # fmt: skip
    kind, step = steps[procedure]
    request = replace(
        lake.request(table, kind, [step]), lease_file=lease(tmp_path / "lease.json", token=9)
    )

    report = lake.run(request)

    assert report.outcome == "lost"
    assert "token 9 is in force, this job has 7" in str(report.error)
    assert lake.snapshots(table) == snapshots


class LosesItsLease:
    """Lets pass until the commit is near; as the job's `Stop` is asked."""

    def __init__(self, checks: int) -> None:
        self.left = checks

    def check(self) -> None:
        from spark_jobs.maintenance.outcome import LeaseLostError  # noqa: PLC0415 needs pyspark

        self.left -= 1
        if self.left < 0:
            raise LeaseLostError("taken over")


@pytest.mark.parametrize(
    ("procedure", "arguments"),
    [
        ("rewrite_manifests", {}),
        ("rewrite_position_delete_files", {}),
        ("rewrite_data_files", {}),
        ("rewrite_data_files", {"strategy": "sort", "sort_order": "`id`"}),
        ("rewrite_data_files", {"strategy": "sort", "sort_order": "zorder(id, amount)"}),
    ],
    ids=str,
)
def test_a_lease_lost_right_before_the_commit_of_iceberg_s_own_actions(
    lake: Lake, procedure: str, arguments: dict[str, Any]
) -> None:
    from spark_jobs.maintenance.outcome import LeaseLostError  # noqa: PLC0415 needs pyspark
    from spark_jobs.maintenance.runner import STAGES  # noqa: PLC0415 as above
    from spark_jobs.maintenance.work import Work  # noqa: PLC0415 as above

    whole = {**MERGE_ON_READ, "write.delete.granularity": "partition"}
    table = lake.events(3, **whole)
    for wanted in (1, 2, 23):
        lake.sql(f"DELETE FROM {{t}} WHERE id = {wanted}", table)  # noqa: S608 our own number
    step = stage(procedure, options={"rewrite-all": "true"}, **arguments)
    request = lake.request(table, Kind.REWRITE_MANIFESTS, [step])
    before = (lake.rows(table), lake.snapshots(table), all_files(lake, table))
    stop: Any = LosesItsLease(checks=2)  # when the stage is tried, and when Iceberg begins
    work = Work(lake.spark, lake.open(table), request, stop, tools())

    with pytest.raises(LeaseLostError):
        STAGES[procedure](work, step)

    assert stop.left == -1
    assert (lake.rows(table), lake.snapshots(table), all_files(lake, table)) == before
    lake.assert_whole(table)


def all_files(lake: Lake, table: TableName) -> set[Path]:
    from spark_jobs.maintenance.arrow_files import local_path  # noqa: PLC0415 needs pyspark

    folder = Path(str(local_path(lake.open(table).metadata().location)))
    return {one for one in folder.rglob("*") if one.is_file() and not one.name.startswith(".")}


def data_files(lake: Lake, table: TableName) -> set[Path]:
    from spark_jobs.maintenance.arrow_files import local_path  # noqa: PLC0415 needs pyspark

    folder = Path(str(local_path(lake.open(table).metadata().location))) / "data"
    return set(folder.rglob("*.parquet"))


def in_a_full_task(layout: Any, work: Any, attempt: int) -> Any:
    """The disk of a task has no room for what it writes."""
    import resource  # noqa: PLC0415 runs in a Spark task

    from spark_jobs.maintenance.arrow_files import write_bin  # noqa: PLC0415 as above

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        return write_bin(layout, work, attempt)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def no_room(lake: Lake, most: int) -> Iterator[None]:
    """The kernel lets Java write no file beyond so many bytes, as a full disk does."""
    pid = lake.open(lake.table()).jvm.java.lang.ProcessHandle.current().pid()
    # Python's daemon is started by Java once and keeps its limits: not while they are these.
    lake.spark.sparkContext.parallelize([1], 1).map(abs).collect()
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("where", ["task", "metadata"])
def test_a_full_disk_leaves_the_table_as_it_was_and_is_got_over(lake: Lake, where: str) -> None:
    table = lake.events(3)
    rows, snapshots, files = lake.rows(table), lake.snapshots(table), data_files(lake, table)
    given = tools(write=in_a_full_task) if where == "task" else tools()
    with contextlib.nullcontext() if where == "task" else no_room(lake, 1_000):
        report = lake.compact(table, given)

    assert report.outcome == "failed", report.error
    assert "arge" in str(report.error)  # File too large
    assert (lake.rows(table), lake.snapshots(table)) == (rows, snapshots)
    lake.assert_whole(table)
    assert data_files(lake, table) >= files
    ok(lake.compact(table))
    assert lake.rows(table) == rows
