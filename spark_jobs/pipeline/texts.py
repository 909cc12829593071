"""Texts: each distinct statement is parsed once, ever, not once per event.

`sql_text` has one row per distinct (text, dialect, defaults), with its template and the literals of
its conditions. Texts of one template under one dialect and one set of defaults use the same tables
and columns: such a *shape* has one row in `query_template` and its columns in `column_usage`, both
made from the texts that brought it, and only for shapes they lack, so a killed run is simply done
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 the name everybody knows it by

from lakehouse_core.sql import columnar
from lakehouse_core.sql.schema import Schema
from spark_jobs.pipeline.lake import Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import Column, DataFrame
    from pyspark.sql import types as T  # noqa: N812 as above

    from spark_jobs.pipeline.lake import Lake
    from spark_jobs.pipeline.progress import Stage

    Batches = Iterable[pa.RecordBatch]

SQL_TEXT, TEMPLATE, USAGE = "sql_text", "query_template", "column_usage"
IDENTITY = ("sql_text", "dialect", "default_catalog", "default_namespace")
_SEPARATOR = "\x1f"
_ID_LENGTH = 32  # hexadecimal digits: 128 bits

_ANSWER = pa.schema([*columnar.NESTED, *(pa.field(name, pa.string()) for name in IDENTITY)])
_OF_SHAPE = ("template", "tables", "usage")


def text_id(events: DataFrame) -> Column:
    """The id of an event's text under its dialect and defaults; NULL when it has none."""
    known = [name for name in IDENTITY if name in events.columns]  # an older store has no defaults
    parts = [F.coalesce(F.col(name), F.lit("")) for name in known]
    digest = F.substring(F.sha2(F.concat_ws(_SEPARATOR, *parts), 256), 1, _ID_LENGTH)
    is_readable = (F.col("sql_text") != "") & F.col("dialect").isNotNull()
    return F.when(is_readable, digest)


def shape_id() -> Column:
    """The id of a template under its dialect and defaults."""
    parts = [F.coalesce(F.col(name), F.lit("")) for name in ("template_id", *IDENTITY[1:])]
    return F.substring(F.sha2(F.concat_ws(_SEPARATOR, *parts), 256), 1, _ID_LENGTH)


def learn(lake: Lake, events: DataFrame, exports: tuple[str, ...], stage: Stage) -> None:
    """Parse the texts of these events that nobody has parsed, and write down what they say."""

    def parsed() -> DataFrame:
        inspect = _inspection(lake.plan.databases, lake.plan.columns)
        answers = _unknown(lake, events).mapInArrow(inspect, _schema())
        return answers.withColumns({"shape_id": shape_id(), "learned_from": F.lit(exports[-1])})

    lake.prepare(Layout(SQL_TEXT), parsed())
    # Asked anew at every attempt: a commit of unknown outcome may have made texts known.
    lake.commits.run(lake.full_name(SQL_TEXT), lambda: lake.append(SQL_TEXT, parsed()))
    _describe_shapes(lake, exports)
    stage.tables = [SQL_TEXT, TEMPLATE, USAGE]
    stage.rows_in, stage.facts = _learned(lake, exports)
    stage.rows_out = stage.rows_in


def _learned(lake: Lake, exports: tuple[str, ...]) -> tuple[int, dict[str, int]]:
    """How many texts these exports brought; how many do not parse, or leave columns open."""
    mine = lake.read(SQL_TEXT).where(F.col("learned_from").between(exports[0], exports[-1]))
    has_open = F.count_if(F.size("unresolved") > 0)
    ((texts, unparsed, unresolved),) = mine.agg(F.count("*"), F.count("error"), has_open).collect()
    return int(texts), {"unparsed": int(unparsed), "with_unresolved_columns": int(unresolved)}


def _unknown(lake: Lake, events: DataFrame) -> DataFrame:
    """Each text that is not in `sql_text`, once.

    The ids are counted before a text is touched: of each id one event is chosen by a number, which
    Spark aggregates without sorting, and only the chosen events give their text. They are spread
    anew, so that every core parses its share.
    """
    number = F.xxhash64("engine_id", "query_id", "export_id")
    readable = events.where(F.col("text_id").isNotNull())
    chosen = readable.groupBy("text_id").agg(F.min(number).alias("number"))
    if lake.exists(SQL_TEXT):
        chosen = chosen.join(lake.read(SQL_TEXT).select("text_id"), "text_id", "left_anti")
    mine = readable.withColumn("number", number).select("text_id", "number", *IDENTITY)
    texts = mine.join(chosen, ["text_id", "number"], "left_semi").drop("number")
    return texts.repartition("text_id")


def _describe_shapes(lake: Lake, exports: tuple[str, ...]) -> None:
    """Write down tables and columns of the shapes that these exports brought."""
    mine = lake.read(SQL_TEXT).where(F.col("learned_from").between(exports[0], exports[-1]))
    shapes = mine.where(F.col("usage").isNotNull()).dropDuplicates(["shape_id"])
    _append_new(lake, USAGE, shapes.select("shape_id", "template_id", F.inline("usage")))
    columns = ("shape_id", "template_id", *IDENTITY[1:], "template", "statement_kind", "tables")
    _append_new(lake, TEMPLATE, shapes.select(*columns, "error", "reason"))


def _append_new(lake: Lake, name: str, rows: DataFrame) -> None:
    lake.prepare(Layout(name), rows)

    def write() -> None:
        known = lake.read(name).select("shape_id").distinct()
        lake.append(name, rows.join(F.broadcast(known), "shape_id", "left_anti").coalesce(1))

    lake.commits.run(lake.full_name(name), write)


def _schema() -> T.StructType:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 driver only

    return from_arrow_schema(_ANSWER)


def _inspection(
    databases: dict[str, str], columns: dict[str, list[str]]
) -> Callable[[Batches], Batches]:
    """Runs in executors: what a batch of texts says; what a shape shares once per batch."""

    def inspect(batches: Batches) -> Batches:
        known = Schema(columns) if columns else None
        for batch in batches:
            if batch.num_rows:
                answers = columnar.inspect_batches(iter([batch]), databases, known)
                given = pa.Table.from_batches([batch])
                yield from _compact(pa.Table.from_batches(answers), given).to_batches()

    return inspect


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
