"""Texts that the sample does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lakehouse_core.layout.packing.arrays import Flags, Places

_WORD = 6  # letters that are taken from one text


def texts_at(seen: pa.Array, place: Places, number: Places, is_null: Flags) -> pa.Array:
    """Texts; an unseen one begins as its neighbours do and goes on with pieces of any others.

    Args:
        seen: the texts of the sample, in order.
        place: of the seen one at or before each row's.
        number: which of the unseen behind it; 0: itself.
        is_null: rows without a text.
    """
    if not number.any():
        return seen.take(pa.array(place, mask=is_null))
    keys, which = np.unique((place << 32) + number, return_inverse=True)
    made = _made_up(seen, keys >> 32, (keys & 0xFFFFFFFF) > 0)
    return made.take(pa.array(which, mask=is_null))


def _made_up(seen: pa.Array, place: Places, is_new: Flags) -> pa.Array:
    """A text for each place: the seen one, or a new one behind it."""
    sizes = pc.binary_length(seen).to_numpy()
    width, count = max(1, int(sizes.max())), len(place)
    known = _letters(seen, sizes, width)
    own, following = known[place], known[np.minimum(place + 1, len(seen) - 1)]
    differs = own != following
    head = np.where(differs.any(axis=1), differs.argmax(axis=1), width)  # what they share
    rng = np.random.default_rng(4)
    length = np.maximum(sizes[rng.integers(0, len(seen), count)], head)
    length = np.where(is_new, length, sizes[place])
    # Texts of one length are codes: their letters are strewn. Others have words.
    piece = 1 if sizes.min() == width else _WORD
    donors = rng.integers(0, len(seen), (count, -(-width // piece)))
    at = np.arange(width)
    kept = ~is_new[:, None] | (at < head[:, None])
    letters = np.where(kept, own, known[np.repeat(donors, piece, axis=1)[:, :width], at])
    letters[at >= length[:, None]] = 0
    # Behind one seen text they are in order, too.
    ranked = np.concatenate([place.astype(">u4").view(np.uint8).reshape(-1, 4), letters], axis=1)
    by_text = np.argsort(ranked.view(f"S{width + 4}").ravel(), kind="stable")
    return _binary(letters[by_text], length[by_text])


def _letters(texts: pa.Array, sizes: Places, width: int) -> NDArray[np.uint8]:
    """A text per row, filled up with zeros."""
    letters = np.zeros((len(texts), width), np.uint8)
    used = np.frombuffer(b"".join(texts.to_pylist()), np.uint8)
    letters[np.arange(width) < sizes[:, None]] = used
    return letters


def _binary(letters: NDArray[np.uint8], length: Places) -> pa.Array:
    """The reverse of `_letters`."""
    offsets = np.append(0, np.cumsum(length)).astype(np.int32)
    chosen = letters[np.arange(letters.shape[1]) < length[:, None]].tobytes()
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(chosen)]
    return pa.Array.from_buffers(pa.binary(), len(length), buffers)
