"""Metadata that is lost or broken, and tables that change while they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.catalog.sqlite import SqliteLake
from lakehouse_core.domain.errors import MetadataUnreadableError, TableGoneError
from tests.unit.catalog.lakes import (
    AVRO,
    File,
    HandMade,
    Manifest,
    append_files,
    manifest_paths,
    measured,
    name_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.domain.table import TableName
    from tests.unit.catalog.lakes import Lake


@pytest.fixture
def made(lake: Lake) -> HandMade:
    """A table of two manifests."""
    made = HandMade(lake)
    made.commit(Manifest((File(), File())), Manifest((File(),)))
    return made


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-10] ^= 0xFF
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def replace_with_text(path: Path) -> None:
    path.write_text("x" * path.stat().st_size)


@pytest.mark.parametrize("harm", [Path.unlink, damage, cut, replace_with_text])
@pytest.mark.parametrize("pattern", ["*.metadata.json", "snap-*.avro", "*-m0.avro"])
def test_a_file_that_is_missing_or_broken_is_named(
    lake: Lake, made: HandMade, pattern: str, harm: Callable[[Path], None]
) -> None:
    victim = sorted(made.folder.rglob(pattern))[-1]
    harm(victim)
    with pytest.raises(MetadataUnreadableError) as caught:
        measured(lake, made.table)
    assert victim.name in str(caught.value)


def test_a_manifest_cut_at_the_edge_of_a_block_is_noticed(lake: Lake) -> None:
    table = lake.create()
    append_files(table, 1, 2, 3)  # pyiceberg writes a block per entry
    path = manifest_paths(lake, name_of())[0]
    data = path.read_bytes()
    sync = data[-16:]
    path.write_bytes(data[: data.rindex(sync, 0, -16) + 16])
    with pytest.raises(MetadataUnreadableError, match=path.name):
        measured(lake, name_of())


def test_a_manifest_list_that_lost_its_lines_is_noticed(lake: Lake) -> None:
    table = lake.create()
    append_files(table, 1, 2, 3)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    path = Path(snapshot.manifest_list.removeprefix("file://"))
    data = path.read_bytes()
    sync = data[-16:]
    path.write_bytes(data[: data.index(sync) + 16])
    with pytest.raises(MetadataUnreadableError, match=path.name):
        measured(lake, name_of())


def test_a_lost_manifest_is_noticed_although_its_entries_are_known(
    lake: Lake, made: HandMade
) -> None:
    reader = lake.reader()
    measured(lake, made.table, reader)
    victim = next(made.folder.rglob("*-m0.avro"))
    victim.unlink()
    for one in (reader, lake.reader()):
        with pytest.raises(MetadataUnreadableError, match=victim.name):
            measured(lake, made.table, one)


@pytest.mark.parametrize("pattern", ["*.metadata.json", "snap-*.avro", "*-m0.avro"])
def test_a_table_that_did_not_change_is_intact_until_a_file_is_lost(
    lake: Lake, made: HandMade, pattern: str
) -> None:
    reader = lake.reader()
    location = lake.catalog.metadata_location(made.table)
    assert not reader.is_intact(made.table, location)
    measured(lake, made.table, reader)
    assert reader.is_intact(made.table, location)
    assert lake.reader().is_intact(made.table, location)
    assert not reader.is_intact(made.table, f"{location}.newer")
    sorted(made.folder.rglob(pattern))[-1].unlink()
    assert not reader.is_intact(made.table, location)


def test_a_manifest_that_is_something_else_is_named(lake: Lake) -> None:
    made = HandMade(lake)
    path = made.commit(Manifest((File(),)))
    line = made.write_manifest(Manifest((File(),)), 1)
    line["manifest_path"] = f"file://{path}"  # a manifest list where a manifest should be
    line["manifest_length"] = path.stat().st_size
    made.commit_written([line], 77)
    with pytest.raises(MetadataUnreadableError, match=rf"{path.name}.*not a manifest"):
        measured(lake, made.table)


def test_a_manifest_where_the_list_should_be_is_named(lake: Lake, made: HandMade) -> None:
    wrong = next(made.folder.rglob("*-m0.avro"))
    made.snapshots[-1]["manifest-list"] = f"file://{wrong}"
    made.publish()
    with pytest.raises(MetadataUnreadableError, match=rf"{wrong.name}.*not a manifest list"):
        measured(lake, made.table)


def test_an_entry_without_a_size_is_refused(lake: Lake) -> None:
    made = HandMade(lake, optional_sizes=True)
    made.commit(Manifest((File(size=None),)))  # type: ignore[arg-type]
    with pytest.raises(MetadataUnreadableError, match="file_size_in_bytes"):
        measured(lake, made.table)


def test_a_snapshot_without_a_manifest_list_is_told(lake: Lake, made: HandMade) -> None:
    del made.snapshots[-1]["manifest-list"]
    path = made.publish()
    with pytest.raises(MetadataUnreadableError, match=rf"{path.name}.*no manifest list"):
        measured(lake, made.table)


class Meanwhile(SqliteLake):
    """A catalog whose first answer on a location is old by the time it is used."""

    def __init__(self, lake: Lake, happens: Callable[[], None]) -> None:
        super().__init__("lake", lake.path, lake.root / "warehouse")
        self._happens: Callable[[], None] | None = happens

    def metadata_location(self, table: TableName) -> str:
        location = super().metadata_location(table)
        if self._happens is not None:
            happens, self._happens = self._happens, None
            happens()
        return location


def test_a_table_dropped_between_listing_and_reading_is_gone(lake: Lake, made: HandMade) -> None:
    location = lake.catalog.metadata_location(made.table)
    lake.iceberg.drop_table("demo.t")
    for path in made.folder.rglob("*.metadata.json"):
        path.unlink()
    with pytest.raises(TableGoneError, match=r"lake\.demo\.t"):
        lake.reader().read(made.table, location)


def test_a_commit_that_removes_the_old_metadata_while_we_read_is_followed(
    lake: Lake, made: HandMade
) -> None:
    def commit() -> None:
        old = list(made.folder.rglob("*.metadata.json"))
        made.commit(Manifest((File(), File(), File(), File())))
        for path in old:
            path.unlink()

    lake.catalog = Meanwhile(lake, commit)
    assert measured(lake, made.table).data_files == 4


def test_snapshots_expired_while_we_read_are_followed(lake: Lake, made: HandMade) -> None:
    def expire() -> None:
        old = [*made.folder.rglob("snap-*.avro"), *made.folder.rglob("*-m0.avro")]
        made.snapshots.clear()
        made.commit(Manifest((File(size=5),)))
        for path in old:
            path.unlink()

    lake.catalog = Meanwhile(lake, expire)
    assert measured(lake, made.table).total_bytes == 5


def test_an_appending_writer_never_makes_a_reading_that_mixes_snapshots(lake: Lake) -> None:
    table = lake.create()
    append_files(table, 10)
    reader = lake.reader()
    for files in range(2, 6):
        location = lake.catalog.metadata_location(name_of())
        before = json.loads(Path(location.removeprefix("file://")).read_text())
        append_files(table, 10)
        reading = reader.read(name_of(), location)
        current = reading.metadata.current
        assert current is not None
        assert current.snapshot_id == before["current-snapshot-id"]
        assert len(reading.files.sizes) == files - 1
    assert list(AVRO.read([])) == []
