"""On a Spark Connect server commits cannot carry our operation: the job's report names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.maintenance import State

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import Action
    from tests.unit.maintenance.yard import Yard

pytestmark = pytest.mark.slow


def run(yard: Yard, table_id: str, *, named: list[int] | None) -> Action:
    """An action whose commit has no mark of ours; the report names `named`, or what it made."""
    approved = yard.approve(table_id)

    def work(one: dict[str, Any]) -> dict[str, Any]:
        yard.change(table_id, lambda t: t.overwrite(t.scan().to_arrow()))
        made = [yard.metadata(table_id).history[n].snapshot_id for n in (1, 0)]
        commits = made if named is None else named
        return {"action_id": one["action_id"], "outcome": "done", "checks": [], "commits": commits}

    yard._work = work  # type: ignore[method-assign]
    remote = yard.config.spark.model_copy(update={"remote": "sc://spark:15002"})
    maintainer = yard.new_maintainer(spark=remote)
    maintainer.run_once()
    maintainer.close()
    return yard.now(approved)


def test_a_rewrite_on_a_server_is_proven_by_the_commits_its_report_names(yard: Yard) -> None:
    table_id = yard.create(files=3)
    done = run(yard, table_id, named=None)
    assert done.state is State.VERIFIED, done.explanation
    assert done.result_snapshot_id == yard.metadata(table_id).history[0].snapshot_id
    names = {check["name"] for check in done.verification}
    assert {"our commit is in the history", "data_files did not grow"} <= names


def test_a_commit_from_before_the_action_proves_nothing(yard: Yard) -> None:
    table_id = yard.create(files=3)
    earlier = yard.metadata(table_id).history[0].snapshot_id
    done = run(yard, table_id, named=[earlier, 1])
    assert done.state is State.FAILED
    assert "our commit is in the history" in (done.explanation or "")
