"""Half characters in JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.torn import mended
from lakehouse_core.domain.text import well_formed


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (rb'"a\ud800"', "a\ufffd"),
        (rb'"\uDC00b"', "\ufffdb"),
        (rb'"\ud800\ud83d\ude00\udfff"', "\ufffd\U0001f600\ufffd"),
        (rb'"\\\ud800"', "\\\ufffd"),
    ],
)
def test_half_characters_are_replaced(document: bytes, text: str) -> None:
    whole = mended(document)
    assert whole is not None
    assert json.loads(whole) == text


@pytest.mark.parametrize(
    "document", [rb'"\ud83d\ude00"', rb'"\\ud800"', rb'"plain \" text"', b"", b"not json \\"]
)
def test_whole_documents_are_left_alone(document: bytes) -> None:
    assert mended(document) is None


# Any mixture of characters, halves of characters and backslashes.
@given(st.text(st.sampled_from('a\\"\ud800\udc00\udbff😀\n')))
def test_what_json_can_say_is_mended_as_text_is(text: str) -> None:
    document = json.dumps({"sql": text}).encode()
    found = json.loads(mended(document) or document)["sql"]
    assert found == well_formed(json.loads(document)["sql"])
