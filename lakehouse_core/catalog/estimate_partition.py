"""What a file's partition says about its columns: each transform is a pair of bounds.

A file of day 19000 holds timestamps from the first to the last microsecond of that day; one of
`truncate[3]` "abc" texts from "abc" to what follows all of them. Of a bucket only equality can be
asked: the value's own bucket is computed as Iceberg does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc
from pyiceberg.transforms import parse_transform
from pyiceberg.types import LongType, StringType

from lakehouse_core.catalog.estimate_axis import axis_of_values
from lakehouse_core.catalog.estimate_literal import range_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from lakehouse_core.catalog.estimate_axis import Axis
    from lakehouse_core.catalog.metadata import TableMetadata
    from lakehouse_core.sql.literal import Constant

    BucketTest = Callable[[Sequence[Constant]], NDArray[np.bool_] | None]

_EPOCH_DAY = date(1970, 1, 1)
_DAY_US, _HOUR_US = 86_400_000_000, 3_600_000_000
_CALENDAR = ("year", "month", "day", "hour")
_TEXTS = ("string",)
_WHOLE = ("int", "long")


@dataclass(frozen=True, slots=True)
class PartitionTelling:
    """What partitions say, by column in lower case."""

    axes: Mapping[str, tuple[Axis, ...]]
    buckets: Mapping[str, tuple[BucketTest, ...]]

    def of_files(self, number: NDArray[np.int64]) -> PartitionTelling:
        """The same of files, where this is of partitions.

        Args:
            number: of each file its partition here.
        """
        all_told = np.ones(len(number), np.bool_)

        def spread(test: BucketTest) -> BucketTest:
            def may_hold(wanted: Sequence[Constant]) -> NDArray[np.bool_] | None:
                found = test(wanted)
                return None if found is None else found[number]

            return may_hold

        return PartitionTelling(
            {
                name: tuple(one.spread(number, all_told) for one in axes)
                for name, axes in self.axes.items()
            },
            {name: tuple(map(spread, tests)) for name, tests in self.buckets.items()},
        )


def partition_telling(
    metadata: TableMetadata, keys: pa.ChunkedArray, spec_ids: NDArray[np.int64]
) -> PartitionTelling:
    """Bounds of columns from the partition values of files.

    Args:
        metadata: of the table.
        keys: `partition_key` texts, one per file.
        spec_ids: the partition spec of each file.
    """
    axes: dict[str, tuple[Axis, ...]] = {}
    buckets: dict[str, tuple[Any, ...]] = {}
    encoded = keys.combine_chunks().dictionary_encode()
    texts, number = encoded.dictionary.to_pylist(), pc.cast(encoded.indices, "int64").to_numpy()
    fields = {one.field_id: one for one in metadata.fields if one.is_column}
    for spec_id, transforms in metadata.partition_transforms.items():
        of_spec = spec_ids == spec_id
        if not of_spec.any():
            continue
        sources = metadata.partition_sources.get(spec_id, ())
        used = np.unique(number[of_spec])
        tuples = {int(one): _values(texts[one]) for one in used}
        for place, (transform, source_id) in enumerate(zip(transforms, sources, strict=False)):
            source = fields.get(source_id)
            if source is None:
                continue
            values = {one: parts[place] for one, parts in tuples.items() if place < len(parts)}
            column = source.name.lower()
            if transform.startswith("bucket["):
                told = _bucket_test(transform, source.type, values, number, of_spec)
                buckets[column] = (*buckets.get(column, ()), told)
                continue
            axis = _axis(transform, source.type, values, number, of_spec)
            if axis is not None:
                axes[column] = (*axes.get(column, ()), axis)
    return PartitionTelling(axes, buckets)


def _values(text: str) -> list[Any]:
    """The values in a partition key; none when it holds what JSON cannot say (NaN)."""
    try:
        found = json.loads(text, strict=False, parse_float=Decimal)
    except ValueError:
        return []
    return list(found)


def _axis(
    transform: str,
    type_name: str,
    values: Mapping[int, Any],
    number: NDArray[np.int64],
    of_spec: NDArray[np.bool_],
) -> Axis | None:
    """The axis over distinct partitions, spread over their files."""
    is_known = transform in ("identity", *_CALENDAR) or transform.startswith("truncate[")
    limits = {one: _limits(transform, type_name, value) for one, value in values.items()}
    is_told = any(limit is not None for limit in limits.values()) or None in values.values()
    if not is_known or not is_told:
        return None
    count = int(number.max()) + 1
    lower: list[Any] = [None] * count
    upper: list[Any] = [None] * count
    is_null, is_value = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    for one, limit in limits.items():
        if limit is not None:
            lower[one], upper[one] = limit
        is_null[one] = values[one] is None
        is_value[one] = values[one] is not None
    distinct = axis_of_values(
        type_name,
        lower,
        upper,
        all_null=is_null,
        no_null=is_value,
        is_exact=transform == "identity",
    )
    return distinct.spread(number, of_spec)


def _limits(transform: str, type_name: str, value: Any) -> tuple[Any, Any] | None:
    """The least and the greatest value of a column in a partition, as axes have values."""
    if value is None or isinstance(value, list | dict):
        return None
    if transform == "identity":
        return _identity(type_name, value)
    if transform.startswith("truncate["):
        return _truncated(int(transform[len("truncate[") : -1]), type_name, value)
    if transform not in _CALENDAR or not isinstance(value, int):
        return None
    return _period(transform, type_name, value)


def _identity(type_name: str, value: Any) -> tuple[Any, Any] | None:
    if isinstance(value, bool):
        return bytes([value]), bytes([value])
    is_number = isinstance(value, int)
    if type_name in _WHOLE and is_number:
        return value, value
    # Days, microseconds and the like are numbers already.
    if is_number and type_name.partition("_")[0] in ("date", "timestamp", "timestamptz"):
        return value, value
    if isinstance(value, str) and type_name in _TEXTS:
        return value.encode(), value.encode()
    is_numeric = type_name in ("float", "double") or type_name.startswith("decimal")
    if is_numeric and isinstance(value, int | Decimal):
        return range_of(Decimal(value), type_name)
    return None


def _truncated(width: int, type_name: str, value: Any) -> tuple[Any, Any] | None:
    if type_name in _WHOLE and isinstance(value, int):
        return value, value + width - 1
    if type_name in _TEXTS and isinstance(value, str):
        start = value.encode()
        # A text that was cut goes on with anything, a shorter one is the value itself.
        return start, start if len(value) < width else start + b"\xff"
    return None


def _period(transform: str, type_name: str, value: int) -> tuple[int, int] | None:
    """First and last value of a year, month, day or hour, counted from 1970."""
    base = type_name.removesuffix("_ns")
    if transform == "hour":
        start, end = value * _HOUR_US, (value + 1) * _HOUR_US
    else:
        try:
            days = [_first_day(transform, one) for one in (value, value + 1)]
        except (ValueError, OverflowError):
            return None
        if base == "date":
            return days[0], days[1] - 1
        start, end = (day * _DAY_US for day in days)
    if not base.startswith("timestamp"):
        return None
    scale = 1_000 if type_name.endswith("_ns") else 1
    return start * scale, end * scale - 1


def _first_day(transform: str, value: int) -> int:
    if transform == "day":
        return value
    months = value * 12 if transform == "year" else value
    year, month = divmod(months, 12)
    return (date(1970 + year, month + 1, 1) - _EPOCH_DAY).days


def _bucket_test(
    transform: str,
    type_name: str,
    values: Mapping[int, Any],
    number: NDArray[np.int64],
    of_spec: NDArray[np.bool_],
) -> Callable[[Sequence[Constant]], NDArray[np.bool_] | None]:
    bucket_of = np.full(int(number.max()) + 1, -1, np.int64)
    for one, value in values.items():
        bucket_of[one] = -1 if value is None else int(value)
    bucket = bucket_of[number]

    def may_hold(wanted: Sequence[Constant]) -> NDArray[np.bool_] | None:
        hashes = [_bucket(transform, type_name, one) for one in wanted if one is not None]
        if None in hashes:
            return None
        found: NDArray[np.bool_] = np.isin(bucket, np.array(hashes, np.int64)) | ~of_spec
        return found

    return may_hold


def _bucket(transform: str, type_name: str, value: Constant) -> int | None:
    """The bucket of a literal; None where its value as Iceberg hashes it is not certain."""
    hashed: int | str | None = None
    if type_name in _TEXTS and isinstance(value, str):
        hashed = value
    elif type_name in _WHOLE and isinstance(value, Decimal):
        hashed = int(value) if value == value.to_integral_value() else None
    elif type_name == "date" and isinstance(value, date) and not isinstance(value, datetime):
        hashed = (value - _EPOCH_DAY).days
    elif type_name == "timestamptz" and isinstance(value, datetime) and value.tzinfo is not None:
        found = range_of(value.astimezone(UTC), type_name)
        hashed = found[0] if found else None
    if hashed is None:
        return None
    # Iceberg hashes int, date and timestamps as long.
    kind = StringType() if isinstance(hashed, str) else LongType()
    bucket = parse_transform(transform).transform(kind)(hashed)
    return None if bucket is None else int(bucket)
