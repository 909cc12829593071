"""A backup of the store a day, the last few kept; one of them brings a damaged store back."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agents.backup import run_once, scheduled_backups
from lakehouse_core.domain.errors import StoreError
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.store_care import newest_backup, recoveries
from tests.disk import files_of_at_most
from tests.factories import NOW, query_event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.config import Config

DAY = timedelta(days=1)


@pytest.fixture
def store(demo_config: Config) -> Iterator[OwnerStore]:
    with OwnerStore.open(demo_config.store) as opened:
        yield opened


@pytest.mark.slow
def test_a_backup_is_made_when_the_newest_is_a_day_old(
    demo_config: Config, store: OwnerStore
) -> None:
    assert run_once(store, demo_config, lambda: NOW).rows == 1
    assert run_once(store, demo_config, lambda: NOW + DAY / 2).rows == 0
    assert run_once(store, demo_config, lambda: NOW + DAY).rows == 1
    assert len(scheduled_backups(demo_config.store)) == 2


@pytest.mark.slow
def test_the_last_few_are_kept_and_those_that_people_made(
    demo_config: Config, store: OwnerStore
) -> None:
    config = demo_config.model_copy(
        update={"agents": demo_config.agents.model_copy(update={"keep_backups": 2})}
    )
    by_hand = config.store.backups / "telemetry-20200101T000000000000.duckdb"
    by_hand.write_bytes(b"")
    for day in range(4):
        run_once(store, config, lambda day=day: NOW + day * DAY)  # type: ignore[misc]
    kept = scheduled_backups(config.store)
    assert [path.name[10:18] for path in kept] == ["20261119", "20261118"]
    assert by_hand.exists()


@pytest.mark.slow
def test_a_backup_that_fails_leaves_nothing_and_takes_nothing(
    demo_config: Config, store: OwnerStore
) -> None:
    run_once(store, demo_config, lambda: NOW)
    (kept,) = scheduled_backups(demo_config.store)
    with files_of_at_most(500_000), pytest.raises(StoreError, match="cannot be backed up"):
        run_once(store, demo_config, lambda: NOW + DAY)
    assert list(demo_config.store.backups.iterdir()) == [kept]
    assert run_once(store, demo_config, lambda: NOW + DAY).rows == 1


def test_what_a_killed_backup_left_is_cleared_away(demo_config: Config, store: OwnerStore) -> None:
    left = demo_config.store.backups / "telemetry-20261101T000000000000-scheduled.partial"
    left.write_bytes(b"half a copy")
    run_once(store, demo_config, lambda: NOW)
    assert list(demo_config.store.backups.iterdir()) == scheduled_backups(demo_config.store)


@pytest.mark.slow
def test_rows_of_a_damaged_store_come_back_from_the_backup_and_it_is_told(
    demo_config: Config,
) -> None:
    with OwnerStore.open(demo_config.store, clock=lambda: NOW) as store:
        store.upsert("query_event", to_arrow("query_event", [query_event(query_id="kept")]))
        run_once(store, demo_config, lambda: NOW)
        assert recoveries(store, clock=lambda: NOW) == ()
    whole = demo_config.store.path.read_bytes()
    demo_config.store.path.write_bytes(whole[: len(whole) // 2])

    with OwnerStore.open(demo_config.store, clock=lambda: NOW) as store:
        found = store.read("SELECT query_id FROM query_event").column("query_id").to_pylist()
        assert found == ["kept"]
        (told,) = recoveries(store, clock=lambda: NOW + DAY)
        assert told.recovered_at == NOW
        assert "-scheduled.duckdb" in told.sentence()
        assert told.quarantined[0] in told.sentence()
        assert recoveries(store, clock=lambda: NOW + 30 * DAY) == ()


def test_a_store_that_begins_anew_says_so(demo_config: Config) -> None:
    demo_config.store.path.parent.mkdir(parents=True)
    demo_config.store.path.write_bytes(b"no database")
    with OwnerStore.open(demo_config.store, clock=lambda: NOW) as store:
        (told,) = recoveries(store, clock=lambda: NOW)
    assert told.restored_from is None
    assert "history begins anew" in told.sentence()


def test_a_missing_or_old_backup_is_late(demo_config: Config, store: OwnerStore) -> None:
    assert newest_backup(demo_config, lambda: NOW).is_late
    run_once(store, demo_config, lambda: NOW)
    newest = newest_backup(demo_config, lambda: NOW)
    made = newest.made_at
    assert made is not None
    assert newest.sentence().startswith("Newest backup of the store: ")
    assert ", store/backups/telemetry-" in newest.sentence()
    assert not newest_backup(demo_config, lambda: made + DAY).is_late
    assert newest_backup(demo_config, lambda: made + 3 * DAY).is_late
