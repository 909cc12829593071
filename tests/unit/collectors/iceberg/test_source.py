"""The Iceberg source: what it sends, when it sends nothing, and what it survives."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config.models import HealthConfig, HealthThresholds
from lakehouse_core.domain.errors import SourceUnavailableError
from lakehouse_core.domain.table import MIB
from tests.unit.catalog.lakes import (
    SCHEMA,
    File,
    HandMade,
    Manifest,
    append_files,
    manifest_paths,
    name_of,
)

if TYPE_CHECKING:
    from tests.unit.collectors.iceberg.conftest import World


def test_a_first_sweep_sends_tables_metrics_and_commits(world: World) -> None:
    table = world.lake.create("events")
    append_files(table, 1 * MIB, 40 * MIB)
    append_files(table, 2 * MIB)
    world.lake.create("empty")
    world.pull()
    events = world.store.table("lake.demo.events")
    assert events["metadata_location"] == table.metadata_location
    assert (events["namespace"], events["table_name"]) == ("demo", "events")
    assert events["table_uuid"] == str(table.metadata.table_uuid)
    metrics = {row["table_id"]: row for row in world.store.rows("table_metrics")}
    assert metrics["lake.demo.events"]["data_files"] == 3
    assert metrics["lake.demo.events"]["small_files"] == 2
    assert metrics["lake.demo.events"]["amoro_score"] == 97
    assert metrics["lake.demo.empty"]["snapshot_id"] == 0
    assert metrics["lake.demo.empty"]["amoro_score"] == 100
    commits = world.store.rows("snapshot_commit")
    assert [row["added_files"] for row in commits] == [2, 1]
    assert world.store.watermark is not None
    assert world.store.watermark.event_at == max(row["committed_at"] for row in commits)


def test_a_second_sweep_sends_nothing(world: World) -> None:
    for number in range(7):
        append_files(world.lake.create(f"t{number}"), 1)
    assert world.pull()
    assert world.pull() == []
    world.now += timedelta(hours=1)
    assert world.pull() == []


def test_a_new_process_sends_nothing_for_tables_that_did_not_change(world: World) -> None:
    append_files(world.lake.create(), 1)
    world.pull()
    world.source = world.new_source()
    assert world.pull() == []


def test_one_commit_sends_one_table_and_only_recent_commits(world: World) -> None:
    made = HandMade(world.lake)
    for _ in range(3):
        made.commit(Manifest((File(),)))
    append_files(world.lake.create("other"), 1)
    world.pull()
    made.snapshots[-1]["timestamp-ms"] += 3_600_000  # the others are an hour older
    made.publish()
    world.pull()
    made.commit(Manifest((File(), File())))
    made.snapshots[-1]["timestamp-ms"] += 7_200_000
    made.publish()
    batches = world.pull()
    assert [sorted(batch.rows) for batch in batches] == [
        ["snapshot_commit", "table_metrics"],
        ["lake_table"],
    ]
    assert batches[1].rows["lake_table"].column("table_id").to_pylist() == ["lake.demo.t"]
    assert batches[0].rows["snapshot_commit"].num_rows == 2
    assert (
        len([r for r in world.store.rows("snapshot_commit") if r["table_id"] == "lake.demo.t"]) == 4
    )


def test_a_crash_before_the_tables_row_is_made_good_by_the_next_sweep(world: World) -> None:
    table = world.lake.create()
    append_files(table, 1)
    world.store.apply(next(iter(world.source.pull(None))))  # metrics and commits, then the end
    assert world.store.rows("lake_table") == []
    before = world.store.rows("table_metrics")
    world.pull()
    assert world.store.rows("table_metrics") == before
    assert len(world.store.rows("lake_table")) == 1


def test_batches_are_bounded(world: World) -> None:
    for number in range(8):
        world.lake.create(f"t{number}")
    sizes = [
        batch.rows["lake_table"].num_rows for batch in world.pull() if "lake_table" in batch.rows
    ]
    assert sizes == [3, 3, 2]


def test_a_dropped_table_is_marked_and_may_come_back(world: World) -> None:
    append_files(world.lake.create(), 1)
    world.lake.create("stays")
    world.pull()
    world.lake.iceberg.drop_table("demo.t")
    world.now += timedelta(minutes=1)
    world.pull()
    assert world.store.table("lake.demo.t")["dropped_at"] == world.now
    assert world.store.table("lake.demo.stays")["dropped_at"] is None
    assert world.pull() == []
    append_files(world.lake.create(), 1, 2)
    world.pull()
    assert world.store.table("lake.demo.t")["dropped_at"] is None


def test_a_table_dropped_while_the_sweep_reads_it(world: World) -> None:
    made = HandMade(world.lake)
    made.commit(Manifest((File(),)))
    world.lake.create("other")
    world.pull()
    location = made.commit(Manifest((File(),)))
    listed = world.lake.catalog.tables()
    world.lake.iceberg.drop_table("demo.t")
    for path in made.folder.rglob("*.metadata.json"):
        path.unlink()
    # The listing the sweep works from is older than the drop.
    world.lake.catalog.tables = lambda: listed  # type: ignore[method-assign]
    world.pull()
    assert location.exists()
    assert world.store.table("lake.demo.t")["dropped_at"] == world.now
    assert world.store.letters == {}


@pytest.mark.parametrize("pattern", ["*.metadata.json", "snap-*.avro", "*-m0.avro"])
def test_an_unreadable_table_is_told_once_and_does_not_stop_the_sweep(
    world: World, pattern: str
) -> None:
    made = HandMade(world.lake, name="broken")
    made.commit(Manifest((File(),)))
    append_files(world.lake.create("aaa"), 1)
    append_files(world.lake.create("zzz"), 1)
    victim = sorted(made.folder.rglob(pattern))[-1]
    content = victim.read_bytes()
    victim.unlink()
    world.pull()
    error = world.store.table("lake.demo.broken")["error"]
    assert victim.name in error
    assert world.store.table("lake.demo.aaa")["error"] is None
    assert world.store.table("lake.demo.zzz")["error"] is None
    assert [letter.reason for letter in world.store.letters.values()] == [error]
    assert world.pull() == []
    victim.write_bytes(content)
    world.pull()
    assert world.store.table("lake.demo.broken")["error"] is None


def test_a_manifest_lost_without_any_commit_is_noticed(world: World) -> None:
    append_files(world.lake.create(), 1)
    world.pull()
    victim = manifest_paths(world.lake, name_of())[0]
    victim.unlink()
    assert world.pull() == []  # looked at a moment ago
    world.now += timedelta(minutes=2)
    world.pull()
    row = world.store.table("lake.demo.t")
    assert victim.name in row["error"]
    assert row["table_uuid"] is not None


def test_another_meaning_of_small_measures_all_tables_again(world: World) -> None:
    append_files(world.lake.create(), 5 * MIB, 50 * MIB)
    world.pull()
    world.health = HealthConfig(tables={"lake.demo.*": HealthThresholds(small_file_bytes=MIB)})
    world.source = world.new_source()
    assert world.pull()
    assert [row["small_files"] for row in world.store.rows("table_metrics")] == [0]
    assert world.pull() == []


def test_a_lost_cache_changes_no_metric(world: World) -> None:
    append_files(world.lake.create(), 1, 2)
    world.pull()
    before = world.store.rows("table_metrics")
    for path in sorted(Path(world.lake.root / "cache").rglob("*"), reverse=True):
        if path.is_file():
            path.unlink()
    world.source = world.new_source()
    world.pull()
    assert world.store.rows("table_metrics") == before


def test_a_catalog_that_does_not_answer_is_told_and_drops_nothing(world: World) -> None:
    append_files(world.lake.create(), 1)
    world.pull()
    moved = world.lake.path.with_suffix(".away")
    world.lake.path.rename(moved)
    with pytest.raises(SourceUnavailableError, match=r"catalog\.db does not exist"):
        world.pull()
    assert world.store.table("lake.demo.t")["dropped_at"] is None
    moved.rename(world.lake.path)
    assert world.pull() == []


def test_tables_of_another_catalog_are_left_alone(world: World) -> None:
    world.lake.create()
    world.pull()
    other = {**world.store.table("lake.demo.t"), "table_id": "far.demo.t", "catalog": "far"}
    world.store.tables["lake_table"][("far.demo.t",)] = other
    assert world.pull() == []


def test_odd_names_do_not_collide(world: World) -> None:
    for name in ("a.b", '"a', "a b", "ü"):
        append_files(world.lake.create(name), 1)
    world.lake.iceberg.create_namespace("demo.a")
    append_files(world.lake.iceberg.create_table(("demo", "a", "b"), SCHEMA), 1)
    world.pull()
    names = {row["table_id"] for row in world.store.rows("lake_table")}
    assert names == {
        'lake.demo."a.b"',
        'lake.demo."""a"',
        "lake.demo.a b",
        "lake.demo.ü",
        "lake.demo.a.b",
    }
