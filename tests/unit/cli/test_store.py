"""`lakehelm store check|backup|restore` on a real, small store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config import load_config
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.rows import to_arrow
from tests.factories import free_port_pair, query_event

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Run

pytestmark = pytest.mark.duckdb


@pytest.fixture
def store_config(good_config: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A configuration whose store holds two queries and is not served."""
    monkeypatch.setenv("LAKEHELM__STORE__PORT", str(free_port_pair()))
    monkeypatch.setenv("LAKEHELM__HOME", "home")
    write(good_config, 2)
    return good_config


def write(config: str, queries: int) -> None:
    store = OwnerStore(load_config(config).config.store, None, utc_now)
    with store:
        store.upsert(
            "query_event", to_arrow("query_event", [query_event() for _ in range(queries)])
        )


def test_check_counts_the_rows_of_a_sound_store(run: Run, store_config: str) -> None:
    ended = run("store", "check", "--json", "--config", store_config)
    assert ended.code == 0
    assert (ended.data["state"], ended.data["problems"]) == ("closed", [])
    assert ended.data["rows"]["query_event"] == 2


def test_check_of_a_damaged_store_fails_with_words(run: Run, store_config: str) -> None:
    path = load_config(store_config).config.store.path
    path.write_bytes(b"not a database" * 1_000)
    ended = run("store", "check", "--config", store_config)
    assert ended.code == 1
    assert str(path) in ended.err
    assert "Traceback" not in ended.err


def test_restore_brings_back_what_the_backup_held(run: Run, store_config: str) -> None:
    made = run("store", "backup", "--config", store_config)
    assert made.code == 0
    copy = made.out.strip()
    write(store_config, 3)
    assert (
        run("store", "check", "--json", "--config", store_config).data["rows"]["query_event"] == 5
    )
    restored = run("store", "restore", copy, "--json", "--config", store_config)
    assert restored.code == 0
    assert Path(restored.data["replaced"]).exists()
    assert (
        run("store", "check", "--json", "--config", store_config).data["rows"]["query_event"] == 2
    )


def test_restore_of_a_missing_file_fails_with_words(run: Run, store_config: str) -> None:
    ended = run("store", "restore", "nope.duckdb", "--config", store_config)
    assert (ended.code, ended.out) == (1, "")
    assert "nope.duckdb" in ended.err


def test_backup_without_a_store_fails_with_words(
    run: Run, good_config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHELM__STORE__PORT", str(free_port_pair()))
    ended = run("store", "backup", "--config", good_config)
    assert ended.code == 1
    assert "nothing to back up" in ended.err
