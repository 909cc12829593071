"""A damaged file is noticed at the start, put aside, and replaced by the best that is left."""

from __future__ import annotations

import random
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.errors import StoreCorruptError, StoreError
from lakehouse_core.store.batch import prepare
from lakehouse_core.store.database import open_file
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.recover import damaged_since
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.spool import Spool
from tests.factories import NOW, query_event

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.models import StoreConfig

EVENTS = to_arrow("query_event", [query_event(sql_text="SELECT " + "x" * n) for n in range(2000)])


def count(store: OwnerStore) -> int:
    return int(store.read("SELECT count(*) AS n FROM query_event").column("n")[0].as_py())


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store file with 2,000 queries, closed properly."""
    folder = tmp_path_factory.mktemp("sound")
    with OwnerStore.at(folder) as store:
        store.upsert("query_event", EVENTS)
    return folder / "telemetry.duckdb"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_file_cut_off_anywhere_is_noticed_and_put_aside(
    place: StoreConfig, sound: Path, seed: int
) -> None:
    whole = sound.read_bytes()
    size = random.Random(seed).randrange(len(whole))  # noqa: S311 a place to cut
    place.path.write_bytes(whole[:size])
    with OwnerStore.open(place) as store:
        assert store.recovery is not None
        assert store.recovery.restored_from is None
        assert str(place.path) in store.recovery.reason
        assert store.recovery.quarantined[0].read_bytes() == whole[:size]
        assert count(store) == 0


@pytest.mark.parametrize("junk", [b"", b"PK\x03\x04 not a database", b"\0" * 100_000])
def test_a_file_that_is_no_database_is_corrupt(place: StoreConfig, junk: bytes) -> None:
    place.path.write_bytes(junk)
    with pytest.raises(StoreCorruptError, match=str(place.path)):
        open_file(place.path, place.memory_limit)


def test_a_sound_file_is_opened_as_it_is(place: StoreConfig, sound: Path) -> None:
    shutil.copyfile(sound, place.path)
    with OwnerStore.open(place) as store:
        assert store.recovery is None
        assert count(store) == 2000


def test_the_newest_sound_backup_replaces_a_damaged_file(place: StoreConfig, sound: Path) -> None:
    place.backups.mkdir()
    shutil.copyfile(sound, place.backups / "telemetry-20260101T000000.duckdb")
    (place.backups / "telemetry-20260102T000000.duckdb").write_bytes(b"damaged too")
    place.path.write_bytes(sound.read_bytes()[:20_000])
    with OwnerStore.open(place) as store:
        assert store.recovery is not None
        assert str(store.recovery.restored_from).endswith("telemetry-20260101T000000.duckdb")
        assert "rebuilt from" in str(store.recovery)
        assert count(store) == 2000
    assert (place.backups / "telemetry-20260101T000000.duckdb").exists()


@pytest.mark.slow
def test_the_spool_is_replayed_into_a_rebuilt_store(place: StoreConfig) -> None:
    spool = Spool(place.spool)
    spool.keep(spool.write("query_event", prepare("query_event", EVENTS)))
    place.path.write_bytes(b"broken")
    with OwnerStore.open(place) as store:
        assert store.recovery is not None
        assert count(store) == 2000
        assert spool.pending() == []


@pytest.mark.slow
def test_a_damaged_log_costs_what_follows_the_damage(
    place: StoreConfig, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = place.path.with_name(f"{place.path.name}.wal")
    with OwnerStore.at(tmp_path_factory.mktemp("live")) as live:
        live_path = live.path
        before = live_path.with_name(f"{live_path.name}.wal").stat().st_size
        for number in range(40):
            one = query_event(query_id=f"{number:02}")
            live.upsert("query_event", to_arrow("query_event", [one]))
        # As a crash would leave them: the file and its log, which nobody has merged yet.
        shutil.copyfile(live_path, place.path)
        damaged = bytearray(live_path.with_name(f"{live_path.name}.wal").read_bytes())
    damaged[(before + len(damaged)) // 2] ^= 0xFF
    log.write_bytes(damaged)
    with OwnerStore.open(place) as store:
        assert store.recovery is not None
        assert store.recovery.restored_from == place.path
        assert store.recovery.quarantined[0].read_bytes() == damaged
        found = store.read("SELECT query_id FROM query_event ORDER BY 1").column("query_id")
        assert found.to_pylist() == [f"{number:02}" for number in range(len(found))]
        assert 10 < len(found) < 40


def test_a_file_that_may_not_be_read_is_not_called_corrupt(place: StoreConfig) -> None:
    place.path.mkdir()
    with pytest.raises(StoreError) as caught:
        OwnerStore.open(place)
    assert not isinstance(caught.value, StoreCorruptError)
    assert place.path.is_dir()


def test_files_that_were_put_aside_since_a_moment_are_found(place: StoreConfig) -> None:
    place.path.write_bytes(b"broken")
    with OwnerStore.open(place, clock=lambda: NOW) as store:
        assert store.recovery is not None
        aside = list(store.recovery.quarantined)
    assert damaged_since(place, NOW) == aside
    assert damaged_since(place, NOW + timedelta(seconds=1)) == []
