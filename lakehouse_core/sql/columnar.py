"""Whole columns of SQL texts at once, Arrow in and Arrow out: what Spark executors call.

    found = inspect_texts(batch)              # batch: the columns of INPUT, e.g. of distinct texts
    found.texts, found.usage, found.predicates

    frame.mapInArrow(inspect_batches, …)      # one row per text, usage and predicates nested in it

Both say the same; `inspect_batches` has one schema (NESTED) because mapInArrow allows one. Explode
`usage` and `predicates` to get the rows of the flat tables.

A row never stops its batch: a text that is not understood has `error` and `reason` set and still a
stable template. Nothing here keeps state but the inspector's memory of the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_core.domain.table import split_name
from lakehouse_core.domain.text import well_formed
from lakehouse_core.sql.analysis import PARSER_FAILURES, failed, squeezed
from lakehouse_core.sql.inspector import default_inspector
from lakehouse_core.sql.literal import extremes, kind_of
from lakehouse_core.sql.records import Inspection, UnparsedReason
from lakehouse_core.sql.spelling import UPPER_CASE_DIALECTS, lake_column, lake_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lakehouse_core.sql.inspector import Inspector
    from lakehouse_core.sql.records import Predicate
    from lakehouse_core.sql.schema import Schema

_TEXT = pa.string()

INPUT = pa.schema(
    [
        pa.field("text_id", _TEXT),
        pa.field("sql_text", _TEXT),  # binary, too: what is no UTF-8 gets replacement characters
        pa.field("dialect", _TEXT),
        pa.field("default_catalog", _TEXT),
        pa.field("default_namespace", pa.list_(_TEXT)),  # or a text with dots: "sales.eu"
    ]
)

USAGE_ITEM = pa.struct(
    [
        pa.field("table_name", _TEXT),
        pa.field("column_name", _TEXT),
        pa.field("role", _TEXT),
    ]
)

# See records.Predicate for what each field means.
PREDICATE_ITEM = pa.struct(
    [
        pa.field("table_name", _TEXT),
        pa.field("column_name", _TEXT),
        pa.field("role", _TEXT),
        pa.field("operator", _TEXT),
        pa.field("function", _TEXT),
        pa.field("is_negated", pa.bool_()),
        pa.field("is_conjunct", pa.bool_()),
        pa.field("or_group", pa.int32()),
        pa.field("literal_kind", _TEXT),  # of the values but nulls; "mixed" when they differ
        pa.field("literals", pa.list_(_TEXT)),
        pa.field("min_literal", _TEXT),
        pa.field("max_literal", _TEXT),
        pa.field("has_null", pa.bool_()),
        pa.field("literal_count", pa.int64()),
        pa.field("is_complete", pa.bool_()),
    ]
)

TEXTS = pa.schema(
    [
        pa.field("text_id", _TEXT),
        pa.field("template_id", _TEXT),
        pa.field("template", _TEXT),
        pa.field("statement_kind", _TEXT),
        pa.field("tables", pa.list_(_TEXT)),
        pa.field("error", _TEXT),
        pa.field("reason", _TEXT),
    ]
)

NESTED = pa.schema(
    [
        *TEXTS,
        pa.field("unresolved", pa.list_(_TEXT)),  # columns that no known table explains
        pa.field("usage", pa.list_(USAGE_ITEM)),
        pa.field("predicates", pa.list_(PREDICATE_ITEM)),
    ]
)

_OWNER = (pa.field("text_id", _TEXT), pa.field("template_id", _TEXT))
USAGE = pa.schema([*_OWNER, *USAGE_ITEM])
PREDICATES = pa.schema([*_OWNER, *PREDICATE_ITEM])


@dataclass(frozen=True, slots=True)
class InspectedTexts:
    """The answer of `inspect_texts`.

    Attributes:
        texts: one row per text, in the order of the batch (TEXTS).
        usage: one row per text, column and role (USAGE); what could not be resolved is left out.
        predicates: one row per text and condition, with its literals (PREDICATES).
    """

    texts: pa.Table
    usage: pa.Table
    predicates: pa.Table


def inspect_texts(batch: pa.RecordBatch | pa.Table) -> InspectedTexts:
    """Template, usage and predicates of every text of a batch.

    Raises:
        KeyError: the batch lacks `text_id`, `sql_text` or `dialect`.
    """
    nested = _nested(batch, default_inspector(), {}, None)
    return InspectedTexts(
        nested.select(TEXTS.names),
        _flat(nested, "usage", USAGE),
        _flat(nested, "predicates", PREDICATES),
    )


def inspect_batches(
    batches: Iterator[pa.RecordBatch],
    databases: Mapping[str, str] | None = None,
    columns: Schema | None = None,
) -> Iterator[pa.RecordBatch]:
    """The same for Spark's mapInArrow: one row per text, of the schema NESTED.

    Args:
        batches: texts.
        databases: our catalogs by the names of databases that are linked to them, for engines that
            fold names to upper case.
        columns: of the lake's tables, as far as known; they decide what the text leaves open.
    """
    inspector = default_inspector()
    for batch in batches:
        yield from _nested(batch, inspector, databases or {}, columns).to_batches()


def _nested(
    batch: pa.RecordBatch | pa.Table,
    inspector: Inspector,
    databases: Mapping[str, str],
    columns: Schema | None,
) -> pa.Table:
    texts = batch.column("sql_text").cast(pa.large_binary()).to_pylist()
    dialects = batch.column("dialect").cast(_TEXT).to_pylist()
    catalogs = _optional(batch, "default_catalog")
    namespaces = _optional(batch, "default_namespace")
    look = partial(inspector.inspect, schema=columns, literals=True)
    rows = [_row(*given, look) for given in zip(texts, dialects, catalogs, namespaces, strict=True)]
    for row, dialect in zip(rows, dialects, strict=True):
        if dialect in UPPER_CASE_DIALECTS:
            _spell(row, databases)
    found: dict[str, Any] = {"text_id": batch.column("text_id").cast(_TEXT)}
    for field in NESTED:
        if field.name != "text_id":
            found[field.name] = pa.array([row[field.name] for row in rows], field.type)
    return pa.table(found, schema=NESTED)


def _optional(batch: pa.RecordBatch | pa.Table, name: str) -> list[Any]:
    is_there = name in batch.schema.names
    return batch.column(name).to_pylist() if is_there else [None] * batch.num_rows


def _row(
    raw: bytes | None,
    dialect: str | None,
    catalog: str | None,
    namespace: list[str] | str | None,
    look: Callable[..., Inspection],
) -> dict[str, Any]:
    text = (raw or b"").decode("utf-8", "replace")
    try:
        found = look(
            text,
            dialect or "",
            default_catalog=catalog,
            default_namespace=_namespace(namespace),
        )
    except PARSER_FAILURES as error:
        found = _failure(text, error)
    return {
        "template_id": found.template_id,
        "template": well_formed(found.template),
        "statement_kind": found.kind.value,
        "tables": found.tables,
        "error": found.error and well_formed(found.error),
        "reason": found.reason,
        "unresolved": sorted({use.column for use in found.columns if not use.table}),
        "usage": [(use.table, use.column, use.role) for use in found.columns if use.table],
        "predicates": [_predicate(each) for each in found.predicates or () if each.table],
    }


def _spell(row: dict[str, Any], databases: Mapping[str, str]) -> None:
    """Put the lake's names into a row of an engine that folds names to upper case."""
    row["tables"] = tuple(lake_table(name, databases) for name in row["tables"])
    row["usage"] = [
        (lake_table(table, databases), lake_column(column), role)
        for table, column, role in row["usage"]
    ]
    row["predicates"] = [
        (lake_table(table, databases), lake_column(column), *rest)
        for table, column, *rest in row["predicates"]
    ]


def _failure(text: str, error: BaseException) -> Inspection:
    message = f"the analysis failed with {type(error).__name__}: {squeezed(str(error))[:200]}"
    fingerprint = failed(squeezed(text)[:1_000], message, UnparsedReason.PARSER_FAILED)
    return Inspection(
        fingerprint.template_id,
        fingerprint.template,
        fingerprint.kind,
        error=message,
        reason=fingerprint.reason,
    )


def _namespace(given: list[str] | str | None) -> tuple[str, ...]:
    if not given:
        return ()
    return split_name(given) if isinstance(given, str) else tuple(given)


def _predicate(each: Predicate) -> tuple[Any, ...]:
    smallest, largest = extremes(each.values)
    return (
        each.table,
        each.column,
        each.role,
        each.operator,
        each.function,
        each.is_negated,
        each.is_conjunct,
        each.or_group,
        kind_of(each.values),
        [value.text for value in each.values],
        smallest,
        largest,
        any(value.kind == "null" for value in each.values),
        each.count,
        each.is_complete,
    )


def _flat(nested: pa.Table, column: str, schema: pa.Schema) -> pa.Table:
    """The rows of a nested column, each with the ids of its text."""
    lists = nested.column(column).combine_chunks()
    owners = nested.select(["text_id", "template_id"]).take(pc.list_parent_indices(lists))
    items = pc.list_flatten(lists)
    arrays = [*owners.columns, *(pc.struct_field(items, field.name) for field in items.type)]
    return pa.Table.from_arrays(arrays, schema=schema)
