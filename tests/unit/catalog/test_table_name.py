"""Table ids: readable, unambiguous, and back again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.domain.table import TableName

parts = st.text(min_size=1, max_size=8)


def test_plain_names_stay_plain() -> None:
    assert str(TableName("lake", ("a", "b"), "events")) == "lake.a.b.events"


def test_names_with_dots_and_quotes_are_quoted() -> None:
    assert str(TableName("lake", ("demo",), 'a.b"c')) == 'lake.demo."a.b""c"'


@given(parts, st.lists(parts, min_size=1, max_size=3), parts)
def test_a_table_id_gives_back_its_parts(catalog: str, namespace: list[str], name: str) -> None:
    table = TableName(catalog, tuple(namespace), name)
    assert TableName.parse(str(table)) == table


@pytest.mark.parametrize("text", ["", "events", "demo.events", 'lake.demo."open', 'lake."a"b.c'])
def test_what_is_no_table_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"name|table"):
        TableName.parse(text)
