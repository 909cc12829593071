"""A column of a sample as bounds keep it."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_core.catalog.estimate_literal import range_of
from lakehouse_core.layout.encoding import CHECKED_ROWS, PAGE_ROWS, rows_until_closed
from lakehouse_core.layout.space import column_space


def test_uuids_that_come_as_text_are_keyed_as_literals_are() -> None:
    rng = np.random.default_rng(1)
    values = [str(uuid.UUID(bytes=rng.bytes(16))) for _ in range(20)]
    space = column_space(pa.chunked_array([values]), "uuid", 16)
    asked = range_of(values[3], "uuid")
    assert asked is not None
    assert asked[0] in space.keys
    assert list(space.keys) == sorted(uuid.UUID(one).bytes for one in values)


@pytest.mark.parametrize("packed", [0.0, 0.001, 2.0, 50.0])
def test_file_is_closed_at_some_row(packed: float) -> None:
    closed = rows_until_closed(64 * 2**20, packed, 50.0)
    assert closed % CHECKED_ROWS == 0
    # All pages but the one being written are packed.
    if packed:
        assert (closed - PAGE_ROWS - CHECKED_ROWS) * packed <= 64 * 2**20
