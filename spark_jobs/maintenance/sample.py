"""How much of a rewrite is read again and hashed: whole partitions, some columns, or nothing.

Whoever reads the report sees which: a check that was not made is told as such.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spark_jobs.maintenance.plan import Verify

GIB = 1 << 30
# Bytes of a value, about; what is not named here has a length of its own.
WIDTHS = {"boolean": 1, "int": 4, "long": 8, "float": 4, "double": 8, "date": 4, "time": 8}
WIDTHS |= {"timestamp": 8, "timestamptz": 8, "timestamp_ns": 8, "timestamptz_ns": 8, "uuid": 16}
OTHER_WIDTH = 32


@dataclass(frozen=True, slots=True)
class Sample:
    """What is hashed.

    Attributes:
        partitions: which, by their key.
        columns: these only; None: all.
        name: of the check.
    """

    partitions: tuple[str, ...]
    columns: tuple[str, ...] | None
    name: str


def choose(
    sizes: Mapping[str, int], schema: Sequence[Mapping[str, Any]], limits: Verify, seed: str
) -> Sample:
    """As many partitions as may be read; of one that is too large the columns that may.

    Args:
        sizes: bytes to read of each partition, on both sides.
        schema: the table's columns, as Iceberg describes them.
        limits: how much may be read.
        seed: which ones are taken when not all can be.
    """
    luck = random.Random(seed)  # noqa: S311 a sample, not a secret
    order = sorted(sizes)
    luck.shuffle(order)
    taken: list[str] = []
    size = 0
    for one in order:
        if len(taken) < limits.partitions and size + sizes[one] <= limits.max_bytes:
            taken.append(one)
            size += sizes[one]
    if taken:
        name = f"content_hash of {len(taken)} of {len(sizes)} partitions"
        return Sample(tuple(taken), None, name)
    return _columns(sizes, schema, limits, luck)


def _columns(
    sizes: Mapping[str, int],
    schema: Sequence[Mapping[str, Any]],
    limits: Verify,
    luck: random.Random,
) -> Sample:
    if not sizes or limits.partitions < 1:
        return Sample((), (), "content_hash: not hashed")
    smallest = min(sizes, key=lambda one: (sizes[one], one))
    widths = {str(one["name"]): _width(one["type"]) for one in schema}
    per_width = sizes[smallest] / max(1, sum(widths.values()))
    names = list(widths)
    luck.shuffle(names)
    chosen: list[str] = []
    size = 0.0
    for name in names:
        if size + widths[name] * per_width <= limits.max_bytes:
            chosen.append(name)
            size += widths[name] * per_width
    if not chosen:
        return Sample((), (), "content_hash: not hashed")
    what = f"content_hash of {len(chosen)} of {len(names)} columns in 1 of {len(sizes)} partitions"
    return Sample((smallest,), tuple(chosen), what)


def why_not(sizes: Mapping[str, int], limits: Verify) -> str:
    """Why nothing was hashed, for the report."""
    least = min(sizes.values(), default=0)
    return (
        f"not hashed: the smallest of {len(sizes)} partitions is {least / GIB:.1f} GiB to read, "
        f"{limits.max_bytes / GIB:.1f} GiB may be"
    )


def _width(kind: Any) -> int:
    return WIDTHS.get(kind, OTHER_WIDTH) if isinstance(kind, str) else OTHER_WIDTH
