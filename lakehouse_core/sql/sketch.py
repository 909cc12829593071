"""A bounded sketch of the literals a column is compared with, kept as rows that need no reading.

A sketch has a fixed number of cells, and of two values for a cell the one with the greater revision
stays. That is a maximum, so rows may come in any order and any number of times, from any number of
collectors, and the sketch is the same; a store that upserts by key and revision keeps it, and two
sketches are joined by writing the rows of one after those of the other.

- `sample`, BUCKETS cells: a value falls into a bucket by its hash and stays there while its rank,
  another part of the hash, is the greatest. So the sample takes each distinct value once, whatever
  its frequency; frequencies are counted from the events (pipeline).
- `min`, `max`, one cell each: to ten digits or six characters, beyond which values count as equal.
- `last`, one cell: the day of the last use.
"""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Literal

from lakehouse_core.sql.literal import extremes, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lakehouse_core.sql.records import Predicate

Part = Literal["sample", "min", "max", "last"]

BUCKETS = 64
_RANK_BITS, _LOW_BITS = 46, 16
_RANKS, _LOWS = 1 << _RANK_BITS, 1 << _LOW_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralCell:
    """One cell of a sketch; a row of `column_literal`.

    Attributes:
        part: which part of the sketch.
        bucket: the bucket of a sample, 0 otherwise.
        revision: of two rows of a cell the greater one stays.
        literals: the values of one predicate in canonical form; one value for `min` and `max`.
        last_used_on: day of the last use of these values (`sample`) or of any (`last`).
        others: see `Predicate`; the sketch is that of (template_id … literal_kind).
    """

    template_id: str
    table_name: str
    column_name: str
    role: str
    operator: str
    literal_kind: str
    part: Part
    bucket: int = 0
    revision: int
    literals: tuple[str | None, ...] | None = None
    literal_count: int | None = None
    is_complete: bool | None = None
    function: str | None = None
    is_negated: bool | None = None
    is_conjunct: bool | None = None
    last_used_on: date | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What the store tells cells apart by."""
        return (
            self.template_id,
            self.table_name,
            self.column_name,
            self.role,
            self.operator,
            self.literal_kind,
            self.part,
            self.bucket,
        )


def cells(
    template_id: str, predicates: Iterable[Predicate], used_on: date
) -> Iterator[LiteralCell]:
    """The cells that the predicates of one query put values into."""
    for predicate in predicates:
        if predicate.table and predicate.column:
            yield from _cells(template_id, predicate, used_on)


def merged(found: Iterable[LiteralCell]) -> list[LiteralCell]:
    """Each cell once, with the row that stays."""
    kept: dict[tuple[object, ...], LiteralCell] = {}
    for cell in found:
        known = kept.get(cell.key)
        if known is None or cell.revision >= known.revision:
            kept[cell.key] = cell
    return list(kept.values())


def estimated_distinct(revisions: Sequence[int]) -> float:
    """About how many distinct values a sample stands for, from the revisions of its buckets."""
    empty = BUCKETS - len(revisions)
    if empty > BUCKETS // 4:
        return BUCKETS * math.log(BUCKETS / empty)
    # Of n ranks in a bucket the greatest leaves 1 / (n + 1) above it, on average.
    above = [1 - (revision >> _LOW_BITS) / _RANKS for revision in revisions] + [1.0] * empty
    return BUCKETS * (len(above) / sum(above) - 1)


def _cells(template_id: str, predicate: Predicate, used_on: date) -> Iterator[LiteralCell]:
    values = predicate.values
    kind = kind_of(values)
    day = max(0, used_on.toordinal() - date(1970, 1, 1).toordinal()) % _LOWS

    def cell(part: Part, revision: int, bucket: int = 0, **more: object) -> LiteralCell:
        return LiteralCell(
            template_id=template_id,
            table_name=predicate.table,
            column_name=predicate.column,
            role=predicate.role,
            operator=predicate.operator,
            literal_kind=kind,
            part=part,
            bucket=bucket,
            revision=revision,
            **more,  # type: ignore[arg-type] # the fields below, each of its type
        )

    yield cell("last", day, last_used_on=used_on)
    if kind in ("unknown", "null"):
        return
    bucket, rank = _hash(predicate)
    yield cell(
        "sample",
        rank << _LOW_BITS | day,
        bucket,
        literals=tuple(value.text for value in values),
        literal_count=predicate.count,
        is_complete=predicate.is_complete,
        function=predicate.function,
        is_negated=predicate.is_negated,
        is_conjunct=predicate.is_conjunct,
        last_used_on=used_on,
    )
    smallest, largest = extremes(values)
    if smallest is not None and largest is not None:
        low, high = _order(kind, smallest), _order(kind, largest)
        yield cell("min", _RANKS - 1 - low << _LOW_BITS | _tie(smallest), literals=(smallest,))
        yield cell("max", high << _LOW_BITS | _tie(largest), literals=(largest,))


def _hash(predicate: Predicate) -> tuple[int, int]:
    """Bucket and rank of a predicate's values."""
    content = repr(
        (
            [(value.kind, value.text) for value in predicate.values],
            predicate.count,
            predicate.function,
            predicate.is_negated,
            predicate.is_conjunct,
        )
    )
    digest = hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest, "big")
    return number % BUCKETS, (number >> 8) % _RANKS


def _tie(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=2).digest()
    return int.from_bytes(digest, "big")


def _order(kind: str, text: str) -> int:
    """A number below _RANKS that grows with the value, as far as its digits go."""
    if kind == "number":
        (bits,) = struct.unpack(">Q", struct.pack(">d", float(text)))
        # Negative numbers grow backwards in their bits; the sign bit is set for them.
        ordered = bits ^ (0xFFFF_FFFF_FFFF_FFFF if bits >> 63 else 1 << 63)
        return int(ordered >> (64 - _RANK_BITS))
    if kind in ("date", "timestamp"):
        at = datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=UTC)
        elapsed = at - datetime(1, 1, 1, tzinfo=UTC)
        return elapsed.days * 86_400 * 64 + elapsed.seconds * 64 + elapsed.microseconds // 15_625
    encoded = text.encode("utf-8", "surrogatepass")[:6].ljust(6, b"\x00")
    return int.from_bytes(encoded, "big") >> (48 - _RANK_BITS)
