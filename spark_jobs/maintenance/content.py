"""A content hash that does not depend on order or files: equal rows, equal hash.

xxhash64 alone is not enough: it skips NULL, takes -0.0 for 0.0, and refuses maps. So NULLs are
marked, zeros keep their sign, and a map becomes its entries in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 the name everybody knows it by
from pyspark.sql import types as T  # noqa: N812 as above

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, slots=True)
class Content:
    """What rows add up to."""

    rows: int
    hash: str


def content_of(frame: DataFrame, columns: Collection[str] | None = None) -> Content:
    """Read all rows of a frame once, or some of its columns only."""
    chosen = [one for one in frame.schema if columns is None or one.name in columns]
    first = F.xxhash64(*(_hashable(F.col(_quoted(one.name)), one.dataType) for one in chosen))
    frame = frame.select(first.alias("a"))
    found = frame.agg(
        F.count(F.lit(1)).alias("rows"),
        F.sum(F.col("a").cast("decimal(38,0)")).alias("total"),
        F.bit_xor(F.xxhash64(F.col("a"), F.lit(1))).alias("mixed"),
    ).first()
    if found is None:
        raise AssertionError("an aggregate over everything has one row")
    return Content(int(found["rows"]), f"{found['total']}/{found['mixed']}")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _hashable(column: Column, kind: T.DataType) -> Column:
    """The value in a form whose hash tells everything apart; a structure with a mark for NULL."""
    return F.struct(column.isNull().alias("absent"), _plain(column, kind).alias("value"))


def _plain(column: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.FloatType | T.DoubleType):
        # The angle of -0.0 is -π and that of 0.0 is π; every other value speaks for itself.
        sign = F.when(column == 0, F.atan2(column.cast("double"), F.lit(-1.0)))
        return F.struct(column.alias("number"), sign.alias("sign"))
    if isinstance(kind, T.StructType):
        parts = [_hashable(column.getField(one.name), one.dataType) for one in kind]
        return F.struct(*(part.alias(f"c{n}") for n, part in enumerate(parts)))
    if isinstance(kind, T.ArrayType):
        element = kind.elementType
        return F.transform(column, lambda one: _hashable(one, element))
    if isinstance(kind, T.MapType):
        key, value = kind.keyType, kind.valueType
        entries = F.transform(
            F.map_entries(column),
            lambda one: F.struct(
                _hashable(one.getField("key"), key).alias("k"),
                _hashable(one.getField("value"), value).alias("v"),
            ),
        )
        return F.array_sort(entries)
    if isinstance(kind, T.VariantType):
        return F.to_json(column)
    return column
