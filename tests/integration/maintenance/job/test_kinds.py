"""Every kind of maintenance on a real table: what it changes, and that the rows stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.maintenance import Kind
from tests.integration.maintenance.job.lakes import FEW, MERGE_ON_READ, Lake, ok, stage

if TYPE_CHECKING:
    from lakehouse_core.domain.table import TableName

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_compaction_leaves_one_file_per_partition_and_says_who_it_was(lake: Lake) -> None:
    table = lake.events(4, partition="day")
    before, rows = lake.files(table), lake.rows(table)

    report = ok(lake.compact(table))

    assert len(before) == 8
    assert len(lake.files(table)) == 2
    assert lake.rows(table) == rows
    assert report.stages[1].facts["arrow_groups"] == 2
    assert report.figures["before"]["data_files"] == 8
    assert report.figures["after"]["data_files"] == 2
    assert report.figures["before"]["small_files"] == 8
    summary = lake.open(table).metadata().snapshots[report.commits[-1]].summary
    assert report.result_snapshot_id == report.commits[-1]
    assert summary["lakehelm.lease-token"] == "7"
    assert summary["lakehelm.action-id"] == report.action_id
    assert summary["operation"] == "replace"
    lake.assert_whole(table)

    again = lake.compact(table)
    assert (again.outcome, again.commits) == ("nothing", [])
    assert again.figures["before"] == again.figures["after"]


def test_compaction_of_rows_with_deletes_is_left_to_spark_in_the_same_commit(lake: Lake) -> None:
    table = lake.events(3, partition="day", **MERGE_ON_READ)
    lake.sql("DELETE FROM {t} WHERE id IN (1, 3, 21)", table)
    rows = lake.rows(table)

    report = ok(lake.compact(table, options={"delete-file-threshold": "1"}))

    assert len(report.commits) == 1
    assert report.stages[1].facts["arrow_groups"] == 1  # the day without a delete
    assert report.stages[1].facts["by_spark_because"] == "files with deleted rows"
    assert lake.rows(table) == rows


@pytest.mark.parametrize(
    ("kind", "order"),
    [
        (Kind.SORT, "`kind` ASC NULLS FIRST, `id` DESC NULLS LAST"),
        (Kind.ZORDER, "zorder(`id`, `amount`)"),
        (Kind.HILBERT, "hilbert(`id`, `amount`)"),
    ],
)
def test_a_rewrite_in_order_keeps_the_rows(lake: Lake, kind: Kind, order: str) -> None:
    table = lake.events(3)
    rows = lake.rows(table)
    arguments = {"strategy": "sort", "sort_order": order, "options": {"rewrite-all": "true"}}

    report = ok(lake.run(lake.request(table, kind, [stage("rewrite_data_files", **arguments)])))

    assert len(lake.files(table)) == 1
    assert lake.rows(table) == rows
    assert len(report.commits) == 1
    if kind is Kind.SORT:
        ordered = [(row.kind, -row.id) for row in lake.sql("SELECT * FROM {t}", table)]
        assert ordered == sorted(ordered)


def test_files_with_deletes_are_merged_and_dangling_deletes_go(lake: Lake) -> None:
    table = lake.events(3, **MERGE_ON_READ)
    lake.sql("DELETE FROM {t} WHERE id % 10 = 1", table)
    rows = lake.rows(table)
    options = FEW | {"delete-file-threshold": "1", "remove-dangling-deletes": "true"}
    arguments = {"strategy": "binpack", "options": options}

    report = ok(
        lake.run(lake.request(table, Kind.COMPACT, [stage("rewrite_data_files", **arguments)]))
    )

    assert report.figures["before"]["delete_files"] > 0
    assert report.figures["after"]["delete_files"] == 0
    assert lake.rows(table) == rows
    ours = (
        lake.open(table)
        .metadata()
        .commits_of(
            lake.open(table)
            .metadata()
            .snapshots[report.commits[0]]
            .summary["lakehelm.operation-id"]
        )
    )
    assert [one.snapshot_id for one in ours] == report.commits


def test_an_order_is_asked_for_once(lake: Lake) -> None:
    table = lake.events(1)
    wanted = [stage("set_sort_order", sort_order="`id` ASC NULLS FIRST")]

    assert lake.run(lake.request(table, Kind.SET_SORT_ORDER, wanted)).outcome == "done"
    assert lake.run(lake.request(table, Kind.SET_SORT_ORDER, wanted)).outcome == "nothing"
    assert lake.open(table).metadata().sort_order_id != 0


def test_what_is_no_order_is_not_executed(lake: Lake) -> None:
    table = lake.events(1)
    wanted = [stage("set_sort_order", sort_order="`id`; DROP TABLE x")]

    assert lake.run(lake.request(table, Kind.SET_SORT_ORDER, wanted)).outcome == "failed"
    assert lake.open(table).metadata().sort_order_id == 0


def test_manifests_become_few_and_then_stay(lake: Lake) -> None:
    table = lake.events(5)
    rows = lake.rows(table)
    wanted = [stage("rewrite_manifests", use_caching=False)]

    report = ok(lake.run(lake.request(table, Kind.REWRITE_MANIFESTS, wanted)))

    assert report.figures["before"]["manifests"] == 5
    assert report.figures["after"]["manifests"] == 1
    assert lake.rows(table) == rows
    assert lake.run(lake.request(table, Kind.REWRITE_MANIFESTS, wanted)).outcome == "nothing"


def test_position_deletes_become_one_file_and_then_stay(lake: Lake) -> None:
    table = lake.events(2, **MERGE_ON_READ, **{"write.delete.granularity": "partition"})
    for wanted in (1, 2, 23):
        lake.sql(f"DELETE FROM {{t}} WHERE id = {wanted}", table)  # noqa: S608 our own number
    rows = lake.rows(table)
    stages = [stage("rewrite_position_delete_files", options={"rewrite-all": "true"})]

    report = ok(lake.run(lake.request(table, Kind.REWRITE_POSITION_DELETES, stages)))

    assert report.figures["after"]["delete_files"] < report.figures["before"]["delete_files"]
    assert lake.rows(table) == rows
    repeated = lake.run(lake.request(table, Kind.REWRITE_POSITION_DELETES, stages))
    assert repeated.outcome == "nothing"


def test_protected_partitions_are_left_alone_by_every_rewrite(lake: Lake) -> None:
    table = lake.events(3, partition="day")
    kept = {row.file_path for row in lake.files(table) if "day=2026-11-02" in row.file_path}
    guard = ({"day": "2026-11-02"},)

    ok(lake.compact(table, protected_partitions=guard))
    assert kept <= {row.file_path for row in lake.files(table)}
    assert len(lake.files(table)) == 1 + 3

    arguments = {"sort_order": "`id` ASC NULLS FIRST", "options": {"rewrite-all": "true"}}
    request = lake.request(
        table, Kind.SORT, [stage("rewrite_data_files", **arguments)], protected_partitions=guard
    )
    ok(lake.run(request))
    assert kept <= {row.file_path for row in lake.files(table)}


def test_only_the_partitions_of_the_plan_are_rewritten(lake: Lake) -> None:
    table = lake.events(3, partition="day")
    chosen = {"partitions": [{"day": "2026-11-01"}]}

    ok(lake.compact(table, arguments=chosen))

    assert len(lake.files(table)) == 1 + 3


def test_a_partition_nobody_can_tell_is_refused(lake: Lake) -> None:
    table = lake.events(2, partition="day")

    report = lake.compact(table, protected_partitions=({"hour": 3},))

    assert report.outcome == "refused"
    assert "not partitioned by hour" in str(report.error)


def test_an_empty_table_needs_nothing(lake: Lake) -> None:
    table = lake.table()
    report = lake.compact(table)
    assert (report.outcome, report.error) == ("nothing", "the table is empty")


def expiry(older_than: datetime | None = None, retain_last: int = 1) -> list:
    moment = older_than or datetime.now(UTC) + timedelta(minutes=1)
    return [stage("expire_snapshots", older_than=moment.isoformat(), retain_last=retain_last)]


def expired(lake: Lake, table: TableName, **guards: object) -> set[int]:
    before = set(lake.snapshots(table))
    rows = {one: lake.rows(table, one) for one in before}
    report = lake.run(lake.request(table, Kind.EXPIRE_SNAPSHOTS, expiry(), **guards))
    assert report.outcome in {"done", "nothing"}, report.error
    assert all(check.ok for check in report.checks), report.checks
    after = set(lake.snapshots(table))
    for one in after:
        assert lake.rows(table, one) == rows[one]
    lake.assert_whole(table)
    return before - after


def test_expiry_keeps_refs_the_snapshots_in_use_and_their_files(lake: Lake) -> None:
    table = lake.events(6)
    first, second, third, fourth, fifth, last = lake.snapshots(table)
    lake.sql(f"ALTER TABLE {{t}} CREATE TAG kept AS OF VERSION {first}", table)
    lake.sql(f"ALTER TABLE {{t}} CREATE BRANCH side AS OF VERSION {third}", table)
    ok(lake.compact(table))

    gone = expired(lake, table, keep_snapshot_ids=frozenset({fifth}))

    assert gone == {second, fourth, last}
    assert {row.name for row in lake.sql("SELECT * FROM {t}", table, ".refs")} == {
        "main",
        "side",
        "kept",
    }
    assert expired(lake, table, keep_snapshot_ids=frozenset({fifth})) == set()


def test_expiry_keeps_as_many_as_the_stricter_setting_says(lake: Lake) -> None:
    table = lake.events(5, **{"history.expire.min-snapshots-to-keep": "3"})
    snapshots = lake.snapshots(table)
    assert expired(lake, table, min_snapshots=2) == set(snapshots[:2])
    assert expired(lake, table, min_snapshots=4) == set()


def test_expiry_is_refused_where_files_may_belong_to_another_table(lake: Lake) -> None:
    table = lake.events(2, **{"gc.enabled": "false"})
    report = lake.run(lake.request(table, Kind.EXPIRE_SNAPSHOTS, expiry()))
    assert report.outcome == "refused"
    assert "gc.enabled" in str(report.error)
    assert len(lake.snapshots(table)) == 2


def test_expiry_keeps_the_statistics_of_what_stays(lake: Lake) -> None:
    table = lake.events(2)
    lake.spark.sql(
        "CALL lake.system.compute_table_stats(table => :name)", args={"name": lake.name(table)}
    ).collect()
    first, last = lake.snapshots(table)
    assert expired(lake, table) == {first}
    assert lake.snapshots(table) == [last]
    assert lake.open(table).metadata().document["statistics"]
