"""Policies approve what they name, where and when they say, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.config.models import MaintenancePolicy
from lakehouse_core.domain.maintenance import DESTRUCTIVE, Kind, State
from lakehouse_core.maintenance.policies import approving_policy, is_open, opens_at
from tests.factories import NOW, action, maintenance_plan

MIDNIGHT = NOW.replace(hour=0)


def policy(**given: object) -> MaintenancePolicy:
    return MaintenancePolicy(**{"kinds": ("compact",), "tables": ("lake.demo.*",), **given})


def test_the_first_fitting_policy_signs() -> None:
    policies = (policy(tables=("lake.tpch.*",)), policy(), policy())
    assert approving_policy(action(), policies, NOW) == 2


@pytest.mark.parametrize(
    "given",
    [
        {"kinds": ("rewrite_manifests",)},
        {"tables": ("lake.tpch.*", "lake.demo.event")},
        {"max_bytes": 64 * 2**20 - 1},
        {"window": "13:00-11:59"},
    ],
)
def test_what_a_policy_does_not_name_waits_for_a_human(given: dict[str, object]) -> None:
    assert approving_policy(action(), (policy(**given),), NOW) is None


@pytest.mark.parametrize("kind", sorted(DESTRUCTIVE))
def test_what_deletes_files_must_be_named(kind: Kind) -> None:
    others = tuple(one.value for one in Kind if one not in DESTRUCTIVE)
    deleting = action(kind=kind)
    assert approving_policy(deleting, (policy(kinds=others, tables=("*",)),), NOW) is None
    assert approving_policy(deleting, (policy(kinds=(kind.value,)),), NOW) == 1


def test_a_table_whose_last_action_failed_waits_for_a_human() -> None:
    failed = {"lake.demo.events"}
    assert approving_policy(action(), (policy(),), NOW, failed_tables=failed) is None


@pytest.mark.parametrize("state", [one for one in State if one is not State.PROPOSED])
def test_only_proposals_are_approved(state: State) -> None:
    assert approving_policy(action(state=state), (policy(),), NOW) is None


def test_an_expired_proposal_is_not_approved() -> None:
    assert approving_policy(action(expires_at=NOW), (policy(),), NOW) is None


def test_the_size_counts_to_the_byte() -> None:
    sized = replace(action(), plan=maintenance_plan(input_bytes=100))
    assert approving_policy(sized, (policy(max_bytes=100),), NOW) == 1


@pytest.mark.parametrize(
    ("window", "hour", "minute", "expected"),
    [
        ("22:00-04:00", 22, 0, True),
        ("22:00-04:00", 3, 59, True),
        ("22:00-04:00", 4, 0, False),
        ("22:00-04:00", 21, 59, False),
        ("08:00-17:00", 8, 0, True),
        ("08:00-17:00", 17, 0, False),
        ("00:00-00:00", 12, 0, True),
    ],
)
def test_a_window_may_cross_midnight(window: str, hour: int, minute: int, expected: bool) -> None:
    assert is_open(window, MIDNIGHT.replace(hour=hour, minute=minute)) is expected


@given(start=st.integers(0, 1439), end=st.integers(0, 1439), now=st.integers(0, 1439))
def test_a_window_and_the_rest_of_the_day_share_no_minute(start: int, end: int, now: int) -> None:
    def text(one: int, other: int) -> str:
        return "-".join(f"{m // 60:02d}:{m % 60:02d}" for m in (one, other))

    moment = MIDNIGHT + timedelta(minutes=now)
    inside, outside = is_open(text(start, end), moment), is_open(text(end, start), moment)
    assert inside != outside or start == end


@pytest.mark.parametrize(
    ("window", "hours"),
    [
        (None, 0.0),
        ("00:00-04:00", 0.0),
        ("22:00-04:00", 0.0),
        ("22:30-23:00", 22.5),
        ("01:00-02:00", 1),
    ],
)
def test_a_window_says_when_it_opens_next(window: str | None, hours: float) -> None:
    assert opens_at(window, MIDNIGHT) == MIDNIGHT + timedelta(hours=hours)
