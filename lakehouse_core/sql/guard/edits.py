"""Changes to a text at their places: the rest stays as its author wrote it.

Rendering the whole tree anew could change what a statement means; a subquery in place of a name
cannot. A change is also worked out for every other text that differs in literals only (`Template`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.sql.mask import MASK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakehouse_core.sql.mask import Mask


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Characters `start` to `end` (exclusive) give way to a text."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Limit:
    """The row limit of a statement: the number of its literal, and what it may be at most."""

    literal: int
    at_most: int

    def of(self, text: str) -> str:
        """The limit to send in place of the one that was asked for."""
        is_kept = text.isdecimal() and int(text) <= self.at_most
        return text if is_kept else str(self.at_most)


@dataclass(frozen=True, slots=True)
class Template:
    """A changed text without its literals."""

    pieces: tuple[str, ...]
    limit: Limit | None = None

    def fill(self, literals: Sequence[str]) -> str:
        """The changed text with the literals of another one."""
        values = list(literals)
        if self.limit is not None:
            values[self.limit.literal] = self.limit.of(values[self.limit.literal])
        out = [self.pieces[0]]
        for value, piece in zip(values, self.pieces[1:], strict=True):
            out += (value, piece)
        return "".join(out)


def apply(text: str, edits: Iterable[Edit]) -> tuple[str, list[tuple[int, int]]]:
    """The changed text, and where what was put in stands in it."""
    out: list[str] = []
    spans: list[tuple[int, int]] = []
    position = length = 0
    for edit in sorted(edits):
        if edit.start < position:
            raise ValueError("two changes at one place")
        kept = text[position : edit.start]
        out += (kept, edit.text)
        length += len(kept)
        spans.append((length, length + len(edit.text)))
        length += len(edit.text)
        position = edit.end
    return "".join([*out, text[position:]]), spans


def template(
    text: str,
    edits: Iterable[Edit],
    mask: Mask,
    comments: Iterable[tuple[int, int]],
    limit: Limit | None,
) -> Template | None:
    """The changed text for any literals; None when a change touches a literal."""
    starts = [end + 1 - len(value) for value, end in zip(mask.literals, mask.ends, strict=True)]
    holes = [Edit(start, end + 1, MASK) for start, end in zip(starts, mask.ends, strict=True)]
    gaps = [Edit(start, end, " ") for start, end in comments]
    try:
        changed, _ = apply(text, [*edits, *holes, *gaps])
    except ValueError:
        return None
    pieces = tuple(changed.split(MASK))
    return Template(pieces, limit) if len(pieces) == len(holes) + 1 else None
