from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pages.parts.text import coloured, plain, shorten

MARKDOWN = set("\\`*_{}[]()#+-!|<>~$:&^=")


@given(st.text())
def test_no_character_of_others_is_read_as_markdown(text: str) -> None:
    shown = plain(text)
    position = 0
    while position < len(shown):
        if shown[position] == "\\":
            assert shown[position + 1] in MARKDOWN
            position += 2
            continue
        assert shown[position] not in MARKDOWN
        position += 1
    assert "\n" not in shown


def test_a_name_cannot_leave_its_colour() -> None:
    assert coloured("a]{x}", "#112233") == ':color[a\\]\\{x\\}]{foreground="#112233"}'


@given(st.text(), st.integers(min_value=1, max_value=200))
def test_shortened_text_is_one_line_within_the_limit(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit + 2
    assert "\n" not in short
