"""Saved queries on a served store, as the console keeps them: by a client that may only read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.bootstrap import open_store
from lakehouse_core.config import load_config
from lakehouse_core.domain.errors import FilterError, NotFoundError
from lakehouse_core.views.console import (
    drop_query,
    own_statements,
    save_query,
    saved_queries,
    saved_query,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.store.client import StoreClient
    from tests.ui.conftest import Place

pytestmark = pytest.mark.ui


@pytest.fixture
def store(filled_place: Place) -> Iterator[StoreClient]:
    with open_store(load_config(environ=filled_place.environ).config) as opened:
        yield opened


def test_a_query_is_kept_found_by_its_id_and_removed_by_its_owner(store: StoreClient) -> None:
    text = "SELECT 'ü' -- {file} \"quoted\";\nFROM t"
    kept = save_query(store, " Orders ", text, actor="ana")
    assert saved_query(store, kept.query_id) == kept
    assert (kept.name, kept.sql_text, kept.saved_by) == ("Orders", text, "ana")
    with pytest.raises(FilterError, match="who saved it"):
        drop_query(store, kept.query_id, actor="bo")
    assert kept in saved_queries(store)
    drop_query(store, kept.query_id, actor="ana")
    with pytest.raises(NotFoundError, match="link is old"):
        saved_query(store, kept.query_id)


def test_a_text_that_is_too_long_or_missing_is_refused(store: StoreClient) -> None:
    for name, sql, actor in (("x", "y" * 8_001, "ana"), ("", "SELECT 1", "ana"), ("x", "y", " ")):
        with pytest.raises(FilterError, match="characters"):
            save_query(store, name, sql, actor=actor)


def test_the_longest_query_fits_whatever_its_letters(store: StoreClient) -> None:
    kept = save_query(store, "long", "x" * 8_000, actor="ana")
    assert len(kept.sql_text) == 8_000
    drop_query(store, kept.query_id, actor="ana")


def test_a_user_sees_own_statements_only(store: StoreClient) -> None:
    seen = own_statements(store, "etl_nightly")
    assert [one.gateway_id for one in seen] == [f"gw-write-{n}" for n in range(4)]
