"""The place of an error in the text its author wrote."""

from __future__ import annotations

import pytest

from lakehouse_core.sql.places import carried, place_of, word_at


@pytest.mark.parametrize(
    ("place", "sent", "written", "expected"),
    [
        ((1, 8), "SELECT nope FROM t", "SELECT nope FROM t", (1, 8)),
        ((1, 8), "SELECT nope FROM lake.s.t", "SELECT\n  NOPE FROM t", (2, 3)),
        ((1, 8), "SELECT `nope` FROM t", 'SELECT 1, "nope" FROM t', (1, 11)),
        ((2, 1), "SELECT 1,\nnope", "SELECT 1, nope", (1, 11)),
        # Twice in the text, not in the text, no such place: nothing is told.
        ((1, 8), "SELECT nope FROM t a", "SELECT nope FROM t WHERE nope = 1", None),
        ((1, 8), "SELECT other FROM t", "SELECT nope FROM t", None),
        ((9, 1), "SELECT 1", "SELECT  1", None),
        (None, "SELECT 1", "SELECT  1", None),
    ],
)
def test_a_place_is_carried_over_by_its_word(
    place: tuple[int, int] | None, sent: str, written: str, expected: tuple[int, int] | None
) -> None:
    assert carried(place, sent, written) == expected


def test_no_word_has_no_place() -> None:
    assert word_at("SELECT 1", 99) is None
    assert word_at("a + b", 2) is None
    assert place_of(None, "SELECT 1") is None
