"""Migrations: numbered, atomic, restartable; a newer store is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakehouse_core import duck
from lakehouse_core.domain.errors import StoreError, StoreTooNewError
from lakehouse_core.store.migrate import Migration, known_migrations, migrate, schema_version
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.tables import TABLES

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from lakehouse_core.config.models import StoreConfig

FIRST = Migration(1, "0001_first", "CREATE TABLE a (i INTEGER); INSERT INTO a VALUES (1)")
SECOND = Migration(2, "0002_second", "ALTER TABLE a ADD COLUMN j INTEGER; UPDATE a SET j = 2")
BROKEN = Migration(2, "0002_broken", "INSERT INTO a VALUES (9); SELECT * FROM nowhere")


def rows(connection: duckdb.DuckDBPyConnection) -> list[tuple[int, ...]]:
    return connection.execute("FROM a").fetchall()


def test_a_new_store_gets_every_migration_once(store: OwnerStore) -> None:
    versions = [step.version for step in known_migrations()]
    assert store.schema_version == max(versions)
    found = store.read("SELECT version, name FROM schema_version ORDER BY 1").to_pylist()
    assert [row["version"] for row in found] == versions


def test_every_table_of_the_upsert_path_exists(store: OwnerStore) -> None:
    for name in TABLES:
        assert store.read(f"SELECT * FROM {name}").num_rows == 0  # noqa: S608 known names


def test_an_old_store_gets_only_what_it_lacks() -> None:
    with duck.connect() as connection:
        assert migrate(connection, [FIRST]) == 1
        assert migrate(connection, [FIRST, SECOND]) == 2
        assert migrate(connection, [FIRST, SECOND]) == 2
        assert rows(connection) == [(1, 2)]


def test_a_failed_migration_leaves_the_store_as_it_was_and_can_be_tried_again() -> None:
    with duck.connect() as connection:
        migrate(connection, [FIRST])
        with pytest.raises(StoreError, match="0002_broken"):
            migrate(connection, [FIRST, BROKEN])
        assert (schema_version(connection), rows(connection)) == (1, [(1,)])
        assert migrate(connection, [FIRST, SECOND]) == 2


def test_a_store_of_a_newer_release_is_refused_and_not_touched(place: StoreConfig) -> None:
    OwnerStore.open(place).close()
    with duck.connect(place.path) as connection:
        connection.execute("INSERT INTO schema_version VALUES (999, '0999_future', now())")
    before = place.path.read_bytes()
    with pytest.raises(StoreTooNewError, match=r"version 999.*upgrade Lakehelm"):
        OwnerStore.open(place)
    assert place.path.read_bytes() == before


def test_a_migration_that_comes_late_with_a_lower_number_is_applied_too() -> None:
    third = Migration(3, "0003_third", "CREATE TABLE c (i INTEGER)")
    with duck.connect() as connection:
        assert migrate(connection, [FIRST, third]) == 3
        assert migrate(connection, [FIRST, SECOND, third]) == 3
        assert rows(connection) == [(1, 2)]
        assert migrate(connection, [FIRST, SECOND, third]) == 3


def test_two_migrations_of_one_number_are_refused(tmp_path: Path) -> None:
    (tmp_path / "0001_a.sql").write_text("SELECT 1")
    (tmp_path / "0001_b.sql").write_text("SELECT 1")
    with pytest.raises(StoreError, match="0001_a and 0001_b"):
        known_migrations(tmp_path)


def test_usage_from_before_goes_to_the_defaults_its_template_ran_under() -> None:
    steps = known_migrations()
    before = [step for step in steps if step.name != "0022_defaults"]
    with duck.connect() as connection:
        migrate(connection, before)
        connection.execute("""
INSERT INTO query_event BY NAME
SELECT 'e' AS engine_id, row_number() OVER () AS query_id, 'finished' AS status, 2 AS revision,
  now() AS submitted_at, now() AS collected_at, 'real' AS origin, 'lake' AS default_catalog, *
FROM (VALUES ('one', 'a'), ('two', 'a'), ('two', 'b'), ('full', 'a'), ('full', 'b'))
  AS given(template_id, default_namespace);
INSERT INTO query_template BY NAME
SELECT *, 'trino' AS dialect, 'select' AS statement_kind, now() AS seen_at
FROM (VALUES ('one', 'SELECT v FROM t'), ('two', 'SELECT w FROM t'),
  ('full', 'SELECT v FROM lake.a.t')) AS given(template_id, template);
INSERT INTO column_usage VALUES ('one', 'lake.a.t', 'v', 'project'),
  ('two', 'lake.a.t', 'w', 'project'), ('full', 'lake.a.t', 'v', 'project'),
  ('gone', 'lake.a.t', 'v', 'project');
INSERT INTO template_table VALUES ('one', 'lake.a.t')""")
        migrate(connection, steps)
        found = connection.execute("""
SELECT template_id, default_namespace, table_name FROM column_usage ORDER BY ALL""").fetchall()
        assert found == [
            ("full", "a", "lake.a.t"),
            ("full", "b", "lake.a.t"),
            ("gone", "", "lake.a.t"),
            ("one", "a", "lake.a.t"),
            ("two", "a", "lake.a.t"),
        ]
        tables = connection.execute("""
SELECT template_id, default_namespace, table_name FROM template_table ORDER BY ALL""").fetchall()
        assert tables == found


def test_a_batch_from_before_has_empty_defaults(store: OwnerStore) -> None:
    old = pa.table({"template_id": ["t"], "table_name": ["lake.a.t"]})
    assert store.upsert("template_table", old) == 1
    assert store.upsert("template_table", old) == 0
    (row,) = store.read("FROM template_table").to_pylist()
    assert (row["default_catalog"], row["default_namespace"]) == ("", "")
