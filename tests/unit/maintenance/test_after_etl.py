"""What a batch job has just written is put together, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from agents.maintain import Maintain
from lakehouse_core.domain.maintenance import Kind, State
from lakehouse_core.maintenance.decisions import is_reserved
from lakehouse_core.maintenance.records import actions_of
from lakehouse_core.recommend.after_etl import PROPOSER_AFTER_ETL
from lakehouse_core.store.rows import to_arrow
from tests.factories import snapshot_commit
from tests.unit.maintenance.yard import SCHEMA

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import Action
    from tests.unit.maintenance.yard import Yard

pytestmark = pytest.mark.slow


def partitioned(yard: Yard) -> str:
    table_id = yard.create(files=0)
    yard.change(table_id, lambda t: t.update_spec().add_identity("region").commit())
    return table_id


def write(yard: Yard, table_id: str, region: str, times: int, **summary: str) -> None:
    rows = pa.Table.from_pylist([{"id": 1, "region": region}], schema=SCHEMA)
    for _ in range(times):
        yard.change(table_id, lambda t: t.append(rows, snapshot_properties=summary))


def tell(yard: Yard, table_id: str) -> None:
    """The collector has seen a commit of Spark."""
    seen = snapshot_commit(table_id=table_id, committed_at=yard.clock(), engine_name="spark")
    yard.store.upsert("snapshot_commit", to_arrow("snapshot_commit", [seen]))


def proposed(yard: Yard, table_id: str) -> tuple[Action, ...]:
    sql = "SELECT * FROM action WHERE table_id = $table ORDER BY proposed_at"
    return actions_of(yard.store.read(sql, table=table_id))


def test_the_partitions_a_job_has_written_are_put_together(yard: Yard) -> None:
    table_id = partitioned(yard)
    write(yard, table_id, "old", 7)
    agent = Maintain(yard.store, yard.config, yard.clock, lambda: False)
    agent.notice_etl()
    write(yard, table_id, "new", 7, **{"engine-name": "spark"})
    tell(yard, table_id)
    agent.notice_etl()
    (found,) = proposed(yard, table_id)
    assert (found.kind, found.state) == (Kind.COMPACT, State.PROPOSED)
    (stage,) = found.plan.stages
    assert stage.arguments["partitions"] == [{"region": "new"}]
    assert stage.estimate["input_files"] == 7
    assert found.proposed_by == PROPOSER_AFTER_ETL
    assert is_reserved(found.proposed_by)
    write(yard, table_id, "newer", 7, **{"engine-name": "spark"})
    tell(yard, table_id)
    agent.notice_etl()
    assert len(proposed(yard, table_id)) == 1  # there is one open at a time


def test_a_job_that_leaves_few_files_is_left_alone(yard: Yard) -> None:
    table_id = partitioned(yard)
    agent = Maintain(yard.store, yard.config, yard.clock, lambda: False)
    agent.notice_etl()
    write(yard, table_id, "new", 3, **{"engine-name": "spark"})
    tell(yard, table_id)
    agent.notice_etl()
    assert proposed(yard, table_id) == ()
