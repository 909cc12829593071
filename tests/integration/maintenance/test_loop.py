"""The whole loop on real Spark: propose, approve, carry out, prove; then nothing is left."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.catalog.location import local_path
from lakehouse_core.domain.health import HealthState
from lakehouse_core.domain.maintenance import DESTRUCTIVE, Kind, State
from tests.integration.maintenance.world import World, quick

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def test_a_sick_table_is_healed_once_and_proven(world: World) -> None:
    table_id = world.create(files=20)
    rows = world.rows(table_id)
    world.collect()
    state, before = world.score(table_id)
    assert state is not HealthState.HEALTHY
    proposed = [one for one in world.recommend() if one.kind is Kind.COMPACT]
    assert [one.table_id for one in proposed] == [table_id]
    approved = world.decide(proposed[0])
    assert approved.state is State.APPROVED, approved.explanation
    world.maintainer.run_once()
    done = world.now(approved)
    assert done.state is State.VERIFIED, done.explanation
    predicted = {one.name: one for one in done.predicted}
    realised = {one.name: one for one in done.realised}
    assert realised["data_files"].after == predicted["data_files"].after == 1
    assert all(check["ok"] for check in done.verification)
    assert any("row" in check["name"] for check in done.verification)
    world.collect()
    assert world.score(table_id)[1] > before
    assert world.rows(table_id) == rows
    assert world.is_whole(table_id)
    assert [one for one in world.recommend() if one.kind is Kind.COMPACT] == []


def test_every_kind_in_one_job(world: World) -> None:
    columns: dict[str, Any] = {"parameters": {"columns": ["id", "region"]}}
    kinds: dict[Kind, dict[str, Any]] = {
        Kind.COMPACT: {},
        Kind.SORT: columns,
        Kind.ZORDER: columns,
        Kind.HILBERT: columns,
        Kind.SET_SORT_ORDER: columns,
        Kind.REWRITE_MANIFESTS: {},
        Kind.EXPIRE_SNAPSHOTS: {},
        Kind.REMOVE_ORPHANS: {},
    }
    tables = {kind: world.create(files=7 if kind in DESTRUCTIVE else 3) for kind in kinds}
    rows = {table_id: world.rows(table_id) for table_id in tables.values()}
    stray = planted(world, tables[Kind.REMOVE_ORPHANS], "stray", days=30)
    young = planted(world, tables[Kind.REMOVE_ORPHANS], "young", days=0)
    world.config = quick(world.config, keep_snapshots="1s")
    world.maintainer = world.new_maintainer()
    approved = {kind: world.approve(tables[kind], kind, **given) for kind, given in kinds.items()}
    assert world.maintainer.run_once() == len(kinds)
    ends = {kind: world.now(one) for kind, one in approved.items()}
    told = {kind.value: (one.state.value, one.explanation) for kind, one in ends.items()}
    assert {one.state for one in ends.values()} == {State.VERIFIED}, told
    assert len({(one.operation_id or "").partition(".")[0] for one in ends.values()}) == 1
    for table_id, before in rows.items():
        assert world.rows(table_id) == before
        assert world.is_whole(table_id)
    assert not stray.exists()
    assert young.exists()
    expired = {one.name: one for one in ends[Kind.EXPIRE_SNAPSHOTS].realised}["snapshots"]
    assert (expired.before, expired.after) == (7, 5)
    order = world.metadata(tables[Kind.SET_SORT_ORDER]).sort_order
    assert order is not None
    assert order.text == "id ASC NULLS FIRST, region ASC NULLS FIRST"
    # I9: all of it once more changes nothing.
    again = [
        world.approve(tables[kind], kind, **given)
        for kind, given in kinds.items()
        if kind is not Kind.REMOVE_ORPHANS  # only a listing can tell
    ]
    places = {table_id: world.metadata(table_id).location for table_id in tables.values()}
    world.maintainer.run_once()
    refused = [world.now(one) for one in again]
    assert {one.state for one in refused} == {State.REFUSED}, [one.explanation for one in refused]
    assert {t: world.metadata(t).location for t in tables.values()} == places


def planted(world: World, table_id: str, name: str, *, days: int) -> Path:
    """A file in the table's folder that no snapshot knows."""
    file = local_path(world.metadata(table_id).table_location) / "data" / f"{name}.parquet"
    file.write_bytes(b"nobody knows me")
    age = time.time() - timedelta(days=days).total_seconds()
    os.utime(file, (age, age))
    return file
