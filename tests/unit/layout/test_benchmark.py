"""When the layout benchmark is content."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.layout import verdict

GOOD: dict[str, Any] = {
    "shape": "single key",
    "advised": "order_id",
    "error": 0.01,
    "template_error": 0.02,
    "read": 0.05,
    "regret": 1.0,
}
LEFT = {"shape": "no useful predicate", "advised": None, "regret": 1.0}


def test_good_advice_is_within_the_limits() -> None:
    assert verdict([GOOD, LEFT], None, 1_000)["ok"]


@pytest.mark.parametrize(
    "worse",
    [
        {"advised": None, "regret": 1.0},
        {"error": -0.3},
        {"read": 0.5},
        {"regret": 1.2},
        {"shape": "no useful predicate"},
    ],
)
def test_table_left_as_it_is_and_every_figure_beyond_its_limit_fails(worse: Any) -> None:
    assert not verdict([GOOD | worse, LEFT], None, 1_000)["ok"]
