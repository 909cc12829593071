"""What the estimate of packed rows is put together from: axes, paths, values made up."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_core.layout.packing.column import Column, column_of
from lakehouse_core.layout.packing.neighbours import direction, is_strewn
from lakehouse_core.layout.packing.parquet import has_dictionary, written_bytes
from lakehouse_core.layout.packing.paths import Paths
from lakehouse_core.layout.packing.told import told_columns
from lakehouse_core.layout.packing.unseen import room_of, shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = 3_000
AT = np.linspace(0, ROWS - 1, 20_000)


def column(values: Any) -> Column:
    found = column_of(pa.chunked_array([values]))
    assert found is not None
    return found


def lots(count: int, seed: int = 1) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, count, ROWS)


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        (pa.array(np.arange(30_000)), False),
        (pa.array(np.arange(30_000) % 500), True),
        (pa.array([f"text {n % 500}" for n in range(30_000)]), True),
        (pa.array([f"text {n}" for n in range(30_000)]), False),
        # Only the first page counts.
        (pa.array(np.maximum(np.arange(30_000), 20_000)), True),
        (pa.array([True, False] * 100), False),
        (pa.array([None] * 100, pa.int64()), True),
    ],
)
def test_dictionary_is_kept_where_it_makes_the_first_page_smaller(
    values: pa.Array, kept: bool
) -> None:
    assert has_dictionary(pa.chunked_array([values])) == kept


def test_each_file_has_a_dictionary_of_its_own() -> None:
    rows = pa.table({"a": [f"{n % 1_000:040}" for n in range(20_000)]})
    assert written_bytes(rows, 2_000) > 2 * written_bytes(rows)


def test_nothing_is_written_without_a_column() -> None:
    assert written_bytes(pa.table({})) == 0.0


@pytest.mark.parametrize(
    "values",
    [
        pa.array(lots(100)),
        pa.array(lots(100) * 1.5),
        pa.array(lots(100).astype(str)),
        pa.array(lots(100), mask=lots(3, 2) == 0),
    ],
    ids=["numbers", "floats", "texts", "with NULL"],
)
def test_point_of_a_row_is_its_value_when_the_sample_has_all_of_them(values: pa.Array) -> None:
    found = column(values)
    back = found.axis.values(found.points)
    assert back.cast(values.type).equals(values)


def test_numbers_made_up_are_between_those_of_the_sample_in_their_steps() -> None:
    seen = lots(100_000) * 1_000
    axis = column(pa.array(seen)).axis
    made = axis.values(np.linspace(0, 1, 50_000)).to_numpy()
    assert (np.diff(made) >= 0).all()
    assert (made[0], made[-1]) == (seen.min(), seen.max())
    assert (made % 1_000 == 0).all()
    assert len(np.unique(made)) > 5 * len(np.unique(seen))


def test_texts_made_up_begin_as_those_around_them_and_are_in_order() -> None:
    axis = column(pa.array([f"item-{n:07}" for n in lots(10_000_000)])).axis
    made = axis.values(np.linspace(0, 1, 20_000)).to_pylist()
    assert len(set(made)) > 2 * ROWS
    assert all(text.startswith(b"item-") and len(text) == 12 for text in made)
    places, _ = axis.places(np.linspace(0, 1, 20_000))
    for _, some in itertools.groupby(zip(places, made, strict=True), key=lambda one: one[0]):
        texts = [text for _, text in some]
        assert texts[1:] == sorted(texts[1:])


def test_texts_made_up_have_pieces_of_others() -> None:
    letters, lengths = lots(26), lots(180, 2) + 20
    texts = [chr(ord("a") + a) * int(n) for a, n in zip(letters, lengths, strict=True)]
    axis = column(pa.array(texts)).axis
    made = set(axis.values(np.linspace(0, 1, 20_000)).to_pylist()) - {one.encode() for one in texts}
    assert len(made) > 500
    changes = sum(one != two for text in made for one, two in itertools.pairwise(text))
    assert changes < sum(len(text) for text in made) / 5


def test_unseen_are_as_frequent_as_those_seen_once_and_as_many_as_chao_says() -> None:
    counts = np.array([1] * 60 + [2] * 30 + [5] * 10)
    seen_shares, unseen_shares, unseen = shares(counts, np.full(100, np.inf))
    assert unseen.sum() == pytest.approx(60 * 60 / (2 * 30))
    assert unseen_shares.sum() == pytest.approx(60)
    assert seen_shares.sum() == pytest.approx(counts.sum() - 60)


def test_values_that_the_sample_has_by_luck_more_often_are_taken_for_rarer() -> None:
    counts = np.bincount(np.random.default_rng(1).integers(0, 20_000, 30_000))
    counts = counts[counts > 0]
    seen_shares, _, _ = shares(counts, np.full(len(counts), np.inf))
    assert seen_shares[counts == 3] == pytest.approx(30_000 / 20_000, rel=0.1)


def test_nothing_is_unseen_where_there_is_no_room() -> None:
    step, room = room_of(np.arange(100) * 7, np.dtype(np.int64))
    assert (step, room.sum()) == (7, 0)
    _, _, unseen = shares(np.ones(100, np.int64), np.append(room, 0.0))
    assert unseen.sum() == 0


def test_rising_falling_and_neither() -> None:
    rises = np.arange(100)
    assert direction(np.diff(rises)) == 1
    assert direction(np.diff(-rises)) == -1
    assert direction(np.diff(lots(100))) == 0
    assert direction(np.diff(rises[:20])) == 0


def test_order_has_nothing_to_do_with_lots() -> None:
    rng = np.random.default_rng(4)
    assert is_strewn(rng.random(ROWS))
    assert not is_strewn(np.sort(rng.random(ROWS)))
    assert column(pa.array(lots(ROWS))).near(np.arange(ROWS), AT, rng) is None


def test_path_stays_near_the_rows_around_it() -> None:
    wave = (50_000 + 40_000 * np.sin(np.arange(ROWS) / 300)).astype(int) + lots(2_000)
    found = column(pa.array(wave))
    path = found.near(np.arange(ROWS), AT, np.random.default_rng(4))
    assert path is not None
    made = found.axis.values(path).to_numpy()
    assert np.abs(made - wave[AT.astype(int)]).mean() < 2_500


@pytest.mark.parametrize("sign", [1, -1])
def test_path_of_a_sorted_column_goes_one_way(sign: int) -> None:
    found = column(pa.array(lots(1_000)))
    order = np.argsort(found.codes)[::sign]
    path = found.sorted(order, AT, sign)
    assert (np.diff(path) * sign >= 0).all()


def test_number_tells_a_name_and_what_is_made_up_keeps_to_it() -> None:
    customer, names = lots(800), np.random.default_rng(5).permutation(800) % 50
    columns = [
        column(pa.array(customer)),
        column(pa.array([f"name {n}" for n in names[customer]])),
        column(pa.array(lots(50, 6))),
    ]
    told = told_columns(columns)
    assert [(one.by, one.number, one.is_safe) for one in told] == [(0, 1, True)]
    along, name, other = Paths(columns, told, AT).under(np.argsort(customer))
    assert along is not None
    assert name is not None
    assert other is None
    who = columns[0].axis.values(along).to_numpy()
    called = columns[1].axis.values(name).to_pylist()
    assert len(set(zip(who, called, strict=True))) == len(set(who))


def test_second_column_of_an_order_rises_within_the_first() -> None:
    first, second = lots(1_000), lots(100_000, 2)
    columns = [column(pa.array(first)), column(pa.array(second))]
    along, path = Paths(columns, (), AT).under(np.lexsort((second, first)))
    assert along is not None
    assert path is not None
    begins = columns[0].axis.starts(along)
    assert (np.diff(path)[~begins[1:]] >= 0).all()
