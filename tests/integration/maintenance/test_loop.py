"""The whole loop on real Spark: propose, approve, carry out, prove; then nothing is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.health import HealthState
from lakehouse_core.domain.maintenance import Kind, State

if TYPE_CHECKING:
    from tests.integration.maintenance.world import World

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
