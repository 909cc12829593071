"""Rows in files: nothing lost, keys together, sizes as asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.domain.curve import hilbert_index, zorder_words
from lakehouse_core.domain.layout import Layout
from lakehouse_core.layout.arrange import arrange, cut, output_files
from lakehouse_core.layout.encoding import rows_until_closed
from tests.unit.layout.lake import whole

KEYS = st.lists(st.integers(0, 40), min_size=1, max_size=300).map(sorted)


@given(KEYS, st.integers(1, 20))
def test_cut_keeps_a_key_together_unless_it_is_too_large(keys: list[int], files: int) -> None:
    most = max(1.0, 1.4 * len(keys) / files)
    found = cut(np.asarray(keys, np.int64), files, most)
    assert (np.diff(found) >= 0).all()
    assert set(np.diff(found).tolist()) <= {0, 1}
    for key in set(keys):
        own = np.unique(found[np.asarray(keys) == key])
        if keys.count(key) <= most and files > 1:
            part = np.flatnonzero(np.isin(found, own))
            # Two files share a key only where their part was too large as a whole.
            assert len(own) == 1 or len(part) > most


@given(st.floats(1, 1e12), st.floats(1, 1e9))
def test_output_files_are_about_as_large_as_asked_for(size: float, target: float) -> None:
    files = output_files(size, target)
    assert files >= 1
    assert size <= target or 0.5 * target < size / files <= 1.11 * target


@pytest.mark.parametrize(
    "order", ["a", "b, a", "zorder(a, b)", "hilbert(a, b)", "c, hilbert(a, b)"]
)
def test_every_row_is_laid_out_once_and_stays_in_its_partition(order: str) -> None:
    rng = np.random.default_rng(3)
    partition = rng.integers(0, 4, 2_000)
    table = whole(
        {
            "a": pa.array(rng.integers(0, 1_000, 2_000)),
            "b": pa.array(rng.integers(0, 1_000, 2_000)),
            "c": pa.array([["x", "y", None][n] for n in rng.integers(0, 3, 2_000)]),
        },
        partition,
    )
    found = arrange(Layout.parse(order), table.spaces, table.partition, [5, 5, 5, 5])
    assert sorted(found.order.tolist()) == list(range(2_000))
    assert found.files == found.file.max() + 1
    for file in range(found.files):
        assert len(set(partition[found.order[found.file == file]].tolist())) == 1


@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 300)), min_size=2, max_size=50))
def test_zorder_is_the_order_of_interleaved_bits(points: list[tuple[int, int]]) -> None:
    columns = [np.asarray([p[n] for p in points], np.uint64) for n in (0, 1)]
    words = zorder_words(columns)

    def interleaved(point: tuple[int, int]) -> int:
        return int("".join(a + b for a, b in zip(*(f"{v:064b}" for v in point), strict=True)), 2)

    expected = sorted(range(len(points)), key=lambda n: (interleaved(points[n]), n))
    assert np.lexsort((np.arange(len(points)), *words[::-1])).tolist() == expected


def test_neighbours_on_the_hilbert_curve_are_neighbours() -> None:
    grid = np.stack([one.ravel() for one in np.meshgrid(range(16), range(16))]).astype(np.int64)
    order = np.argsort(hilbert_index(grid, 4))
    steps = np.abs(np.diff(grid[:, order], axis=1)).sum(axis=0)
    assert set(steps.tolist()) == {1}


def test_small_file_is_closed_by_its_unpacked_page() -> None:
    # 127 bytes a row before packing, 50 after: 1.4 MiB are reached within the first page.
    assert rows_until_closed(1.4 * 2**20, 50, 127) == 12_000
    # A large one is closed at its size, but for its last page.
    rows = rows_until_closed(180 * 2**20, 50, 127)
    assert 0.98 * 180 * 2**20 / 50 < rows <= 180 * 2**20 / 50
