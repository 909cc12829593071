"""Space-filling curves over whole columns: where points lie on a Hilbert curve, Iceberg's z-order.

Pure functions, shared by the job that arranges rows and by the simulator that predicts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MOST_BITS = 10  # 1,024 ranks: more than a sample of SAMPLE_ROWS can tell
SAMPLE_ROWS = 20_000
_WORD = 64


def hilbert_bits(dimensions: int) -> int:
    """Bits per dimension, so that an index fits a signed 64-bit number."""
    return min(MOST_BITS, 62 // dimensions)


def spread(places: NDArray[np.int64], count: int, bits: int) -> NDArray[np.int64]:
    """Ranks of values among those of a sample, spread over the bits; 0 is left to NULL.

    Args:
        places: how many of the sample's distinct values are not greater, per value.
        count: how many distinct values the sample has.
        bits: of a rank.
    """
    last = (1 << bits) - 1
    share = places / max(1, count)
    found: NDArray[np.int64] = np.minimum(last, 1 + (share * (last - 1)).astype(np.int64))
    return found


def hilbert_index(ranks: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Where points lie on the Hilbert curve.

    The transformation of axes to transposed index by Skilling ("Programming the Hilbert curve",
    2004), over whole columns at a time.

    Args:
        ranks: one row per dimension, one column per point, each below 2**bits.
        bits: of each dimension.
    """
    axes = [row.copy() for row in ranks]
    level = 1 << (bits - 1)
    while level > 1:
        mask = level - 1
        for axis in axes:
            is_set = (axis & level) != 0
            exchanged = np.where(is_set, 0, (axes[0] ^ axis) & mask)
            axes[0] ^= np.where(is_set, mask, exchanged)
            if axis is not axes[0]:
                axis ^= exchanged  # noqa: PLW2901 the array itself is changed
        level >>= 1
    for place in range(1, len(axes)):
        axes[place] ^= axes[place - 1]
    flips = np.zeros_like(axes[0])
    level = 1 << (bits - 1)
    while level > 1:
        flips ^= np.where((axes[-1] & level) != 0, level - 1, 0)
        level >>= 1
    index: NDArray[np.int64] = np.zeros_like(axes[0])
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            index = (index << 1) | (((axis ^ flips) >> bit) & 1)
    return index


def zorder_words(columns: Sequence[NDArray[np.uint64]]) -> list[NDArray[np.uint64]]:
    """The interleaved bits of columns as words, the most significant first.

    Iceberg interleaves the eight bytes of each value bit by bit, the first column first. Bits that
    no value differs in do not change the order and are left out, so that two words are enough.
    """
    varying = [_varying_bits(column) for column in columns]
    words: list[NDArray[np.uint64]] = []
    word: NDArray[np.uint64] = np.zeros(len(columns[0]), np.uint64)
    used = 0
    for bit in range(_WORD - 1, -1, -1):
        for column, varies in zip(columns, varying, strict=True):
            if not varies >> bit & 1:
                continue
            word = (word << np.uint64(1)) | ((column >> np.uint64(bit)) & np.uint64(1))
            used += 1
            if used == _WORD:
                words.append(word)
                word, used = np.zeros_like(word), 0
                if len(words) == 2:
                    return words
    return [*words, word]


def _varying_bits(column: NDArray[np.uint64]) -> int:
    if not len(column):
        return 0
    differing = np.bitwise_or.reduce(column ^ column[0])
    return int(differing)
