from __future__ import annotations

import pytest

from collectors.flink.position import FlinkPosition, RunningJob
from collectors.flink.slots import Held
from lakehouse_core.domain.errors import SourceError
from lakehouse_core.domain.query import QueryStatus
from tests.factories import NOW, query_event


def test_a_position_comes_back_as_it_was() -> None:
    event = query_event(status=QueryStatus.RUNNING, collected_at=NOW, ended_at=None)
    position = FlinkPosition("x", 3, 4, {"a"}, {"b": RunningJob(event, Held(NOW, NOW, 2))})
    assert FlinkPosition.parse(position.dump(), NOW) == position


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"v":99}', "not json", '{"v":1,"settled":3}', '{"v":1,"running":[]}']
)
def test_a_position_of_somebody_else_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(SourceError, match="watermark"):
        FlinkPosition.parse(text, NOW)


def test_the_first_look_misses_nothing_whatever_ended_before_it() -> None:
    assert FlinkPosition().finish_listing("x", 40, []) == 0


def test_a_job_that_ended_and_was_forgotten_unseen_is_missed_once() -> None:
    position = FlinkPosition()
    position.finish_listing("x", 40, [])
    position.settle("a")
    assert position.finish_listing("x", 43, ["a"]) == 2
    assert position.finish_listing("x", 43, []) == 0


def test_a_job_that_ended_after_the_count_was_taken_is_not_made_up_for_later() -> None:
    position = FlinkPosition()
    position.finish_listing("x", 0, [])
    position.settle("a")
    assert position.finish_listing("x", 0, ["a"]) == 0
    assert position.finish_listing("x", 1, ["a"]) == 0


@pytest.mark.parametrize(
    ("leader", "counted", "is_restarted"),
    [("x", 5, False), ("y", 5, True), (None, 5, False), (None, 4, True), ("x", 4, False)],
)
def test_another_leader_or_a_count_that_shrank_is_a_restart(
    leader: str | None, counted: int, is_restarted: bool
) -> None:
    position = FlinkPosition()
    position.finish_listing("x", 5, [])
    assert position.is_restarted(leader, counted) is is_restarted
    assert not FlinkPosition().is_restarted(leader, counted)
