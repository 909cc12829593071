from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.snowflake.position import HOUR, SnowflakePosition, ViewPosition, truncated
from tests.factories import NOW

FINGERPRINTS = st.dictionaries(
    st.integers(-90, 5).map(lambda n: NOW + n * HOUR), st.sampled_from(["1/1", "2/1", "2/2"])
)


@given(before=FINGERPRINTS, now=FINGERPRINTS, longest=st.integers(1, 30))
def test_exactly_the_hours_that_changed_are_read(before: dict, now: dict, longest: int) -> None:
    position = ViewPosition(hours=dict(before))
    spans = list(position.changed(now, longest))
    read = [s.start + n * HOUR for s in spans for n in range(int((s.end - s.start) / HOUR))]
    assert read == sorted(hour for hour in now if before.get(hour) != now[hour])
    assert all(span.end - span.start <= longest * HOUR for span in spans)


@pytest.mark.slow
@given(rounds=st.lists(FINGERPRINTS, min_size=1, max_size=5), cut=st.integers(0, 3))
def test_a_pull_that_is_cut_leaves_what_it_did_not_read_to_the_next(
    rounds: list[dict], cut: int
) -> None:
    position = ViewPosition()
    for found in rounds:
        for span in list(position.changed(found, 24))[:cut]:
            position.mark(found, span.start, span.end)
        position = SnowflakePosition.parse(SnowflakePosition({"v": position}).dump()).views["v"]
    for span in position.changed(rounds[-1], 24):
        position.mark(rounds[-1], span.start, span.end)
    assert list(position.changed(rounds[-1], 24)) == []
    assert rounds[-1].items() <= position.hours.items()


def test_the_floor_follows_the_overlap_and_never_goes_back() -> None:
    position = ViewPosition()
    position.finish(NOW, timedelta(days=3))
    assert position.floor == truncated(NOW - timedelta(days=3))
    position.finish(NOW - timedelta(days=9), timedelta(days=3))  # a clock that was set back
    assert position.floor == truncated(NOW - timedelta(days=3))


def test_ids_are_kept_for_young_hours_only_and_never_too_many() -> None:
    position = ViewPosition()
    position.take(NOW - timedelta(hours=7), ["old"], NOW)
    assert position.taken == {}
    for hour in range(3):
        position.take(NOW - hour * HOUR, [f"{hour}-{n}" for n in range(2_000)], NOW)
    assert sum(map(len, position.taken.values())) <= 5_000
    assert len(position.taken[NOW]) == 2_000  # the oldest hour was given up first
