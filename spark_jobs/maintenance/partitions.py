"""Partitions as conditions on files: a rewrite is limited to some, or keeps off others.

A partition is told as field name → value, in the form Iceberg writes single values to JSON (`day`
as "2026-11-16", `hour`, `month` and `year` as numbers since 1970 or as text such as "2026-11").
Conditions are made of the very transforms of the spec, so that they decide file by file.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from spark_jobs.maintenance.outcome import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from spark_jobs.maintenance.table import LakeTable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def condition(
    table: LakeTable,
    *,
    where: str | None = None,
    only: Iterable[Mapping[str, Any]] | None = None,
    never: Iterable[Mapping[str, Any]] = (),
) -> Any:
    """An Iceberg expression that holds for the files that may be rewritten.

    Raises:
        RefusedError: a partition is told by a field the table does not have.
    """
    java = table.iceberg.expressions.Expressions
    both, negated = getattr(java, "and"), getattr(java, "not")
    result = java.alwaysTrue()
    if where is not None:
        result = both(result, _parsed(table, where))
    if only is not None:
        result = both(result, _any_of(table, only))
    forbidden = list(never)
    if forbidden:
        result = both(result, negated(_any_of(table, forbidden)))
    return result


def _parsed(table: LakeTable, where: str) -> Any:
    converter = table.jvm.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
    resolved = converter.collectResolvedSparkExpression(
        table.spark._jsparkSession, table.full_name, where
    )
    return converter.convertToIcebergExpression(resolved)


def _any_of(table: LakeTable, partitions: Iterable[Mapping[str, Any]]) -> Any:
    java = table.iceberg.expressions.Expressions
    either = getattr(java, "or")
    result = java.alwaysFalse()
    for partition in partitions:
        result = either(result, _one(table, partition))
    return result


def _one(table: LakeTable, partition: Mapping[str, Any]) -> Any:
    java = table.iceberg.expressions.Expressions
    fields = {one["name"]: one for one in table.metadata().spec["fields"]}
    unknown = sorted(set(partition) - set(fields))
    if unknown:
        raise RefusedError(
            f"Partition {dict(partition)} of {table.name} cannot be told apart: the table is not "
            f"partitioned by {', '.join(unknown)}"
        )
    result = java.alwaysTrue()
    for name, value in partition.items():
        transform = fields[name]["transform"]
        if transform == "void":
            continue
        term = _term(table, transform, fields[name]["source-id"])
        same = java.isNull(term) if value is None else java.equal(term, _literal(transform, value))
        result = getattr(java, "and")(result, same)
    return result


def _term(table: LakeTable, transform: str, source_id: int) -> Any:
    java = table.iceberg.expressions.Expressions
    column = table.java.schema().findColumnName(source_id)
    kind, _, width = transform.rstrip("]").partition("[")
    makers: dict[str, Any] = {
        "identity": java.ref,
        "year": java.year,
        "month": java.month,
        "day": java.day,
        "hour": java.hour,
    }
    if kind in makers:
        return makers[kind](column)
    if kind == "bucket":
        return java.bucket(column, int(width))
    if kind == "truncate":
        return java.truncate(column, int(width))
    raise RefusedError(f"Partitions of {table.name} by {transform} cannot be told apart")


def _literal(transform: str, value: Any) -> Any:
    """A value as Iceberg's literals take it; numbers of years, months and hours stay numbers.

    >>> _literal("month", "1970-03"), _literal("hour", "1970-01-02-01"), _literal("day", 1)
    (2, 25, '1970-01-02')
    """
    if transform == "day" and isinstance(value, int):
        return date.fromordinal(EPOCH.toordinal() + value).isoformat()
    if not isinstance(value, str) or transform not in {"year", "month", "hour"}:
        return value
    if value.lstrip("-").isdecimal() and transform != "year":
        return int(value)
    parts = [int(part) for part in value.replace("T", "-").replace(":", "-").split("-")[:4]]
    if transform == "year":
        return parts[0] - 1970
    if transform == "month":
        return (parts[0] - 1970) * 12 + parts[1] - 1
    moment = datetime(parts[0], parts[1], parts[2], parts[3], tzinfo=UTC)
    return int((moment - EPOCH).total_seconds()) // 3600
