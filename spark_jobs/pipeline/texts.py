"""Texts: each distinct statement is parsed once, ever, not once per event.

Three tables come out. `sql_text` has one row per distinct (text, dialect, defaults), with its
template and the literals of its conditions. Texts of one template under one dialect and one set of
defaults use the same tables and columns: such a *shape* has one row in `query_template` and its
columns in `column_usage`. A text is known once it is in `sql_text`, which is written last; the
other two take only shapes they lack, so a killed run is simply done again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 the name everybody knows it by

from lakehouse_core.sql import columnar
from spark_jobs.pipeline.lake import Layout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame
    from pyspark.sql import types as T  # noqa: N812 as above

    from spark_jobs.pipeline.lake import Lake
    from spark_jobs.pipeline.progress import Stage

SQL_TEXT, TEMPLATE, USAGE = "sql_text", "query_template", "column_usage"
IDENTITY = ("sql_text", "dialect", "default_catalog", "default_namespace")
_SEPARATOR = "\x1f"
_ID_LENGTH = 32  # hexadecimal digits: 128 bits

_ANSWER = pa.schema([*columnar.NESTED, *(pa.field(name, pa.string()) for name in IDENTITY)])
_OF_SHAPE = ("template", "tables", "usage")


def text_id() -> Column:
    """The id of an event's text under its dialect and defaults; NULL when it has none."""
    parts = [F.coalesce(F.col(name), F.lit("")) for name in IDENTITY]
    digest = F.substring(F.sha2(F.concat_ws(_SEPARATOR, *parts), 256), 1, _ID_LENGTH)
    is_readable = (F.col("sql_text") != "") & F.col("dialect").isNotNull()
    return F.when(is_readable, digest)


def shape_id() -> Column:
    """The id of a template under its dialect and defaults."""
    parts = [F.coalesce(F.col(name), F.lit("")) for name in ("template_id", *IDENTITY[1:])]
    return F.substring(F.sha2(F.concat_ws(_SEPARATOR, *parts), 256), 1, _ID_LENGTH)


def learn(lake: Lake, events: DataFrame, stage: Stage) -> None:
    """Parse the texts of these events that nobody has parsed, and write down what they say."""
    candidates = events.where(F.col("text_id").isNotNull()).select("text_id", *IDENTITY)
    if lake.exists(SQL_TEXT):
        known = lake.read(SQL_TEXT).select("text_id")
        candidates = candidates.join(known, "text_id", "left_anti")
    fresh = candidates.dropDuplicates(["text_id"])
    parsed = fresh.mapInArrow(_inspect, _schema()).withColumn("shape_id", shape_id()).persist()
    try:
        ((texts, unparsed),) = parsed.agg(F.count("*"), F.count("error")).collect()
        stage.rows_in, stage.facts["unparsed"] = int(texts), int(unparsed)
        if stage.rows_in or not lake.exists(SQL_TEXT):
            _write(lake, parsed, stage)
    finally:
        parsed.unpersist()


def _write(lake: Lake, parsed: DataFrame, stage: Stage) -> None:
    shapes = parsed.where(F.col("usage").isNotNull()).dropDuplicates(["shape_id"])
    usage = shapes.select("shape_id", "template_id", F.inline("usage"))
    template = shapes.select(
        *("shape_id", "template_id", "dialect", "default_catalog", "default_namespace"),
        *("template", "statement_kind", "tables", "error", "reason"),
    )
    _append_new(lake, USAGE, usage)
    _append_new(lake, TEMPLATE, template)
    texts = parsed.select(
        *("text_id", "template_id", "shape_id", *IDENTITY, "statement_kind", "error", "reason"),
        "predicates",
    )
    lake.prepare(Layout(SQL_TEXT), texts)
    lake.commits.run(lake.full_name(SQL_TEXT), lambda: _append_texts(lake, texts))
    stage.rows_out = stage.rows_in
    stage.tables = [USAGE, TEMPLATE, SQL_TEXT]


def _append_new(lake: Lake, name: str, rows: DataFrame) -> None:
    lake.prepare(Layout(name), rows)

    def write() -> None:
        known = lake.read(name).select("shape_id").distinct()
        lake.append(name, rows.join(F.broadcast(known), "shape_id", "left_anti").coalesce(1))

    lake.commits.run(lake.full_name(name), write)


def _append_texts(lake: Lake, texts: DataFrame) -> None:
    known = lake.read(SQL_TEXT).select("text_id")
    lake.append(SQL_TEXT, texts.join(known, "text_id", "left_anti"))


def _schema() -> T.StructType:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 driver only

    return from_arrow_schema(_ANSWER)


def _inspect(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """Runs in executors: what a batch of texts says; what a shape shares once per batch."""
    for batch in batches:
        if batch.num_rows:
            answer = pa.Table.from_batches(columnar.inspect_batches(iter([batch])))
            yield from _compact(answer, pa.Table.from_batches([batch])).to_batches()


def _compact(answer: pa.Table, given: pa.Table) -> pa.Table:
    columns = {name: answer.column(name) for name in columnar.NESTED.names}
    columns |= {name: given.column(name).cast(pa.string()) for name in IDENTITY}
    rows = _rows_that_are_first([columns[name] for name in ("template_id", *IDENTITY[1:])])
    columns |= {name: columns[name].take(rows) for name in _OF_SHAPE}
    return pa.table(columns, schema=_ANSWER)


def _rows_that_are_first(key: list[pa.ChunkedArray]) -> pa.Array:
    """The number of each row, NULL for one whose key an earlier row has."""
    numbers = pa.array(range(len(key[0])), pa.int64())
    names = [f"key_{index}" for index in range(len(key))]
    table = pa.table([*key, numbers], [*names, "row"])
    firsts = table.group_by(names).aggregate([("row", "min")]).column("row_min")
    return pc.if_else(pc.is_in(numbers, value_set=firsts.combine_chunks()), numbers, None)
