"""What breaks in between: answers are lost, tables vanish, rows change, somebody says stop."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.maintenance import Kind
from tests.integration.maintenance.job.lakes import FEW, Lake, ok, stage

if TYPE_CHECKING:
    from collections.abc import Callable

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
    from dataclasses import replace  # noqa: PLC0415 runs in a Spark task

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
        time.sleep(60)

    request = lake.request(table, Kind.COMPACT, [stage("compact_files", options=FEW)])
    started = time.monotonic()
    report = lake.run(request, tools(write=slowly), stop_file=flag)

    assert report.outcome == "stopped"
    assert time.monotonic() - started < 30
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
