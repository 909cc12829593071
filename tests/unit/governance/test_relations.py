"""The guard learns the lake's tables from its catalogs, and keeps them when one is away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.catalog.sqlite import SqliteLake
from lakehouse_core.config.governance import GovernanceConfig
from lakehouse_core.governance.guard import Guard
from lakehouse_core.governance.relations import LakeRelations
from lakehouse_core.governance.roles import policies_of
from lakehouse_core.sql.guard import Known, Rule
from tests.unit.catalog.lakes import Lake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GOVERNANCE = GovernanceConfig.model_validate(
    {
        "default_role": "open",
        "roles": {
            "open": {},
            "masked": {"rules": [{"table": "lake.demo.t", "masks": {"id": "null"}}]},
        },
    }
)
SQL = "SELECT id FROM lake.demo.t"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path)
    yield made
    made.close()


@pytest.fixture
def guard() -> Guard:
    known = Known(is_complete=False, catalogs=frozenset({"lake"}))
    return Guard(policies_of(GOVERNANCE), {}, known)


def test_masks_follow_the_columns_of_the_catalog(lake: Lake, guard: Guard) -> None:
    relations = LakeRelations({"lake": lake.catalog})
    assert guard.check(SQL, "trino", "masked").rule == Rule.UNKNOWN_TABLE
    table = lake.create()
    relations.tell(guard)
    assert (
        'CASE WHEN 1 = 0 THEN lakehelm_row."id" END AS "id"'
        in guard.check(SQL, "trino", "masked").sql
    )
    from pyiceberg.types import LongType  # noqa: PLC0415 only here

    with table.update_schema() as update:
        update.add_column("later", LongType())
    relations.tell(guard)
    assert 'lakehelm_row."later"' in guard.check(SQL, "trino", "masked").sql


def test_role_that_sees_everything_may_name_a_table_that_is_new(guard: Guard) -> None:
    assert guard.check(SQL, "trino", "open").allowed
    assert guard.check("SELECT 1 FROM pg.public.t", "trino", "open").rule == Rule.UNKNOWN_TABLE


def test_view_nobody_knows_is_refused_to_a_role_that_does_not_see_everything(
    lake: Lake, guard: Guard
) -> None:
    lake.create()
    LakeRelations({"lake": lake.catalog}).tell(guard)
    assert guard.check("SELECT * FROM lake.demo.v", "trino", "masked").rule == Rule.UNKNOWN_TABLE


def test_catalog_that_is_away_changes_nothing(lake: Lake, guard: Guard, tmp_path: Path) -> None:
    lake.create()
    LakeRelations({"lake": lake.catalog}).tell(guard)
    away = SqliteLake("lake", tmp_path / "nowhere" / "catalog.db", tmp_path)
    LakeRelations({"lake": away}).tell(guard)
    assert guard.check(SQL, "trino", "masked").allowed
