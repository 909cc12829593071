"""Backups that are made at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from lakehouse_core.store.gate import backup_script, discard_script

if TYPE_CHECKING:
    from pathlib import Path


def test_a_backup_that_fails_leaves_another_one_alone(tmp_path: Path) -> None:
    whole, broken = tmp_path / "telemetry-1.partial", tmp_path / "telemetry-2.partial"
    with duckdb.connect(tmp_path / "store.duckdb") as store, store.cursor() as other:
        store.execute("CREATE TABLE engine AS SELECT 'trino' AS engine_id")
        attach, begin, copy = backup_script(store, whole).partition("BEGIN TRANSACTION")
        store.execute(attach)
        other.execute(backup_script(other, broken).partition("BEGIN TRANSACTION")[0])
        other.execute(discard_script(broken))
        assert store.execute(begin + copy).fetchall() == [(str(whole),)]
    with duckdb.connect(whole, read_only=True) as copied:
        assert copied.execute("SELECT engine_id FROM engine").fetchall() == [("trino",)]
