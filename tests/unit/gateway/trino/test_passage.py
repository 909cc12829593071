"""Pages of a Trino engine on their way to a client: only `nextUri` changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.gateway.trino.passage import rewrite

BASE = "http://gateway:8086"
NEXT = "http://10.0.0.1:8080/v1/statement/executing/20260101_000000_00001_abcde/yslug/3"


def page(**given: Any) -> dict[str, Any]:
    return {
        "id": "20260101_000000_00001_abcde",
        "infoUri": "http://10.0.0.1:8080/ui/query.html?x",
        **given,
        "stats": {"state": "RUNNING"},
    }


def compact(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


ROWS = st.lists(st.lists(st.text() | st.just(f'","nextUri":"{NEXT}"'), max_size=3), max_size=3)


@given(ROWS, st.booleans(), st.booleans(), st.booleans())
def test_nothing_but_the_next_uri_changes(
    rows: list[list[str]], has_next: bool, is_partial: bool, is_spaced: bool
) -> None:
    given_page = page(
        **({"partialCancelUri": NEXT} if is_partial else {}),
        **({"nextUri": NEXT} if has_next else {}),
        data=rows,
    )
    body = json.dumps(given_page).encode() if is_spaced else compact(given_page)
    rewritten, query_id, is_last = rewrite(body, BASE, "trino-a")
    found = json.loads(rewritten)
    assert query_id == "20260101_000000_00001_abcde"
    assert is_last is not has_next
    if has_next:
        rest = NEXT.partition("/v1/statement/")[2]
        assert found.pop("nextUri") == f"{BASE}/v1/statement/at/trino-a/{rest}"
        given_page.pop("nextUri")
    assert found == given_page


def test_fields_in_another_order_are_found_too() -> None:
    body = compact({"stats": {}, "data": [['"nextUri"']], "nextUri": NEXT, "id": "q"})
    rewritten, query_id, is_last = rewrite(body, BASE, "t")
    assert (query_id, is_last) == ("q", False)
    assert json.loads(rewritten)["nextUri"].startswith(f"{BASE}/v1/statement/at/t/executing/")


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", compact({"id": "q", "nextUri": "http://x/y"})]
)
def test_what_is_no_page_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"no answer|nextUri"):
        rewrite(body, BASE, "t")
