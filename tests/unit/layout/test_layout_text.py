"""Layouts as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.domain.layout import Layout
from lakehouse_core.domain.maintenance import Kind

NAMES = st.lists(
    st.text(
        st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp")),
        min_size=1,
        max_size=8,
    ),
    min_size=2,
    max_size=4,
    unique=True,
)


@given(NAMES, st.sampled_from(["linear", "zorder", "hilbert"]))
def test_layout_is_read_back_from_its_text(names: list[str], kind: str) -> None:
    layout = Layout(kind, tuple(names))  # type: ignore[arg-type] # one of the three
    assert Layout.parse(str(layout)) == layout


def test_primary_columns_stand_before_a_hilbert_curve() -> None:
    layout = Layout.parse("region, hilbert(ts, id)")
    assert layout == Layout("hilbert", ("ts", "id"), ("region",))
    assert layout.action is Kind.HILBERT


@pytest.mark.parametrize(
    "text", ["", "a, a", "zorder(a)", "a,", "a b", "a, b, c, d, e, f", "r, zorder(a, b)"]
)
def test_what_is_no_layout_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"column|layout|hilbert"):
        Layout.parse(text)


def test_simple_layouts_come_first() -> None:
    texts = ["a", "a, b", "zorder(a, b)", "hilbert(a, b)", "a, b, c"]
    found = sorted(map(Layout.parse, reversed(texts)), key=lambda one: one.complexity)
    assert [str(one) for one in found] == texts
