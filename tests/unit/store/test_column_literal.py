"""The sketch of literals in a real store: order and number of collections change no row."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from collectors.understanding import Observed, Understanding
from lakehouse_core.store.owner import OwnerStore
from tests.factories import NOW, query_event

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = "SELECT * FROM column_literal ORDER BY ALL"
ENDS = """
SELECT part, literals[1] AS value, last_used_on FROM column_literal
WHERE column_name = 'id' AND part <> 'sample' ORDER BY part
"""
SAMPLE = "SELECT count(*) AS rows FROM column_literal WHERE part = 'sample'"
TEXT = "SELECT v FROM t WHERE id = {} AND day >= DATE '2026-01-{:02}'"


def observed(numbers: list[int]) -> list[Observed]:
    return [
        Observed(
            query_event(
                query_id=f"q{number}",
                dialect="trino",
                sql_text=TEXT.format(number * 13, number % 28 + 1),
                submitted_at=NOW - timedelta(days=number % 5),
            ),
            "lake",
            ("demo",),
        )
        for number in numbers
    ]


def collected(folder: Path, *batches: list[int]) -> tuple[list[object], int, list[object], int]:
    """Content, rows of the last write, ends and sample size after some batches."""
    written = 0
    with OwnerStore.at(folder) as store:
        for numbers in batches:
            rows = Understanding().rows(observed(numbers))
            written = store.upsert("column_literal", rows["column_literal"])
        return (
            store.read(CONTENT).to_pylist(),
            written,
            store.read(ENDS).to_pylist(),
            store.read(SAMPLE).to_pylist()[0]["rows"],
        )


@pytest.mark.slow
def test_order_and_repetition_of_collections_change_no_row(tmp_path: Path) -> None:
    numbers = list(range(1, 301))
    once, _, ends, sampled = collected(tmp_path / "a", numbers)
    backwards, _, _, _ = collected(
        tmp_path / "b", numbers[200:], numbers[:100][::-1], numbers[50:250], numbers[:10]
    )
    assert backwards == once
    _, written, _, _ = collected(tmp_path / "a", numbers[250:])
    assert written == 0
    assert sampled <= 2 * 64
    assert ends == [
        {"part": "last", "value": None, "last_used_on": NOW.date()},
        {"part": "max", "value": "3900", "last_used_on": None},
        {"part": "min", "value": "13", "last_used_on": None},
    ]
