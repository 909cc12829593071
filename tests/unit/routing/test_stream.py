"""A stream of statements in which something happens: the predictor must find back."""

from __future__ import annotations

import pytest

from benchmarks._routed_stream import simulate
from benchmarks.evaluate import LATE

STEPS = 1_600  # each template runs some 65 times after the change


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "steps"),
    [
        ("drift", STEPS),
        ("failing_engine", STEPS),
        ("price_change", STEPS),
        ("poisoned", 3_000),  # its engines take longer to find out about, poisoned or not
    ],
)
def test_fifty_runs_after_a_change_the_choices_are_good_again(world: str, steps: int) -> None:
    found = simulate(world, seed=1, steps=steps)
    assert found["late_above_oracle"] <= LATE, found


@pytest.mark.slow
def test_where_all_engines_are_alike_nothing_is_lost() -> None:
    found = simulate("equal_engines", seed=1, steps=STEPS)
    assert found["after_above_best_single"] <= 0.02, found
