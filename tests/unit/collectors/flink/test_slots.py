"""Slots held over time: the sum does not depend on how often one looks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from collectors.flink.slots import Held, held_slots
from tests.unit.collectors.flink.recorded import payloads

START = 1_794_800_000_000


def detail(state: str, now: int, slots: int = 2, **timestamps: int) -> dict[str, Any]:
    return {
        "state": state,
        "now": START + now,
        "end-time": START + now if state in ("FINISHED", "CANCELED", "FAILED") else -1,
        "timestamps": {name: START + at for name, at in timestamps.items()},
        "vertices": [{"slotSharingGroupId": "g", "parallelism": slots}],
    }


def at(milliseconds: int) -> datetime:
    return datetime.fromtimestamp((START + milliseconds) / 1_000, UTC)


def follow(looks: list[dict[str, Any]]) -> dict[datetime, Held]:
    """What the store would hold after these looks."""
    rows: dict[datetime, Held] = {}
    last: Held | None = None
    for look in looks:
        for held in held_slots(last, look):
            rows[held.started_at] = held
            last = held
    return rows


def total(rows: dict[datetime, Held]) -> timedelta:
    return sum((h.slots * (h.ended_at - h.started_at) for h in rows.values()), timedelta())


@given(
    st.lists(st.integers(101, 9_999), max_size=20, unique=True),
    st.integers(1, 64),
)
def test_the_number_of_looks_does_not_change_the_sum(looks: list[int], slots: int) -> None:
    seen = [detail("RUNNING", now, slots, RUNNING=100) for now in sorted(looks)]
    rows = follow([*seen, detail("FINISHED", 10_000, slots, RUNNING=100)])
    assert total(rows) == timedelta(milliseconds=9_900 * slots)
    assert len(rows) == 1


def test_a_job_that_does_not_run_yet_holds_nothing() -> None:
    assert held_slots(None, detail("CREATED", 50)) == []


def test_a_restart_ends_one_stretch_and_begins_another() -> None:
    rows = follow(
        [
            detail("RUNNING", 1_000, RUNNING=100),
            detail("RUNNING", 5_000, RUNNING=3_000, RESTARTING=2_000),
        ]
    )
    assert rows[at(100)] == Held(at(100), at(2_000), 2)
    assert rows[at(3_000)] == Held(at(3_000), at(5_000), 2)


def test_while_it_restarts_it_holds_nothing() -> None:
    rows = follow(
        [
            detail("RUNNING", 1_000, RUNNING=100),
            detail("RESTARTING", 9_000, RUNNING=100, RESTARTING=2_000),
        ]
    )
    assert rows == {at(100): Held(at(100), at(2_000), 2)}


def test_another_parallelism_begins_another_stretch() -> None:
    rows = follow(
        [
            detail("RUNNING", 1_000, slots=2, RUNNING=100),
            detail("RUNNING", 2_000, slots=5, RUNNING=100),
            detail("CANCELED", 3_000, slots=5, RUNNING=100),
        ]
    )
    assert rows[at(100)] == Held(at(100), at(1_000), 2)
    assert rows[at(1_000)] == Held(at(1_000), at(3_000), 5)


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    before = Held(at(100), at(5_000), 2)
    (held,) = held_slots(before, detail("RUNNING", 4_000, RUNNING=100))
    assert held == before


def test_the_recorded_job_held_its_slot_until_it_was_cancelled() -> None:
    looks = [payloads("running")["detail"], payloads("cancelled")["detail"]]
    (held,) = follow(looks).values()
    assert held.ended_at - held.started_at == timedelta(milliseconds=187_730 - 1_375)
