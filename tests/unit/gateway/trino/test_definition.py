"""SHOW CREATE TABLE, told from a table's metadata."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.catalog.metadata import read_metadata
from lakehouse_core.gateway.trino.definition import definition

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.catalog.metadata import TableMetadata

NAME = ("lake", "demo", "order")
STRUCT = {"type": "struct", "fields": [{"id": 6, "name": "c", "type": "int", "required": False}]}
FIELDS = [
    {"id": 1, "name": "id", "type": "long", "required": True},
    {"id": 2, "name": "at", "type": "timestamptz", "required": False, "doc": "when it's over"},
    {"id": 3, "name": "Group By", "type": "string", "required": False},
    {"id": 4, "name": "price", "type": "decimal(9, 2)", "required": False},
    {"id": 5, "name": "s", "type": STRUCT, "required": False},
]
PARTED = [
    {"source-id": 2, "field-id": 1000, "name": "at_day", "transform": "day"},
    {"source-id": 3, "field-id": 1001, "name": "g", "transform": "identity"},
    {"source-id": 1, "field-id": 1002, "name": "b", "transform": "bucket[16]"},
    {"source-id": 6, "field-id": 1003, "name": "c", "transform": "truncate[10]"},
]
SORTED = [
    {"source-id": 3, "transform": "identity", "direction": "desc", "null-order": "nulls-last"},
    {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"},
]
WHOLE = """CREATE TABLE lake.demo."order" (
   id bigint NOT NULL,
   at timestamp(6) with time zone COMMENT 'when it''s over',
   "Group By" varchar,
   price decimal(9,2),
   s row(c integer)
)
COMMENT 'it''s a table'
WITH (
   format = 'ORC',
   format_version = 2,
   location = 's3://b/t',
   partitioning = ARRAY['day(at)','"Group By"','bucket(id, 16)','truncate("s.c", 10)'],
   sorted_by = ARRAY['"Group By" DESC NULLS LAST','id ASC NULLS FIRST']
)"""


@pytest.fixture
def document() -> dict[str, Any]:
    return {
        "format-version": 2,
        "table-uuid": "u",
        "location": "s3://b/t",
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": FIELDS}],
        "default-spec-id": 1,
        "partition-specs": [{"spec-id": 0, "fields": []}, {"spec-id": 1, "fields": PARTED}],
        "default-sort-order-id": 1,
        "sort-orders": [{"order-id": 0, "fields": []}, {"order-id": 1, "fields": SORTED}],
        "properties": {"write.format.default": "orc", "comment": "it's a table"},
    }


def read(folder: Path, document: dict[str, Any]) -> TableMetadata:
    path = folder / "t.metadata.json"
    path.write_text(json.dumps(document))
    return read_metadata(str(path))


def test_a_table_is_told_as_trino_tells_it(tmp_path: Path, document: dict[str, Any]) -> None:
    shown = [field["name"] for field in FIELDS]
    assert definition(NAME, read(tmp_path, document), shown) == WHOLE


def test_nothing_is_told_that_is_made_of_a_hidden_column(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    told = definition(NAME, read(tmp_path, document), ["id", "price"])
    assert "partitioning = ARRAY['bucket(id, 16)']" in told
    for hidden in ("at", "Group", "s.c", "sorted_by", "integer"):
        assert hidden not in told.replace("format", "").replace("location", ""), hidden


def test_a_plain_table_has_no_layout(tmp_path: Path, document: dict[str, Any]) -> None:
    for key in ("default-spec-id", "default-sort-order-id", "properties"):
        del document[key]
    told = definition(NAME, read(tmp_path, document), ["id"])
    assert told.endswith(
        "WITH (\n   format = 'PARQUET',\n   format_version = 2,\n   location = 's3://b/t'\n)"
    )


def test_an_order_that_trino_has_no_words_for_is_left_out(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    order = [{**SORTED[1], "transform": "bucket[4]"}]
    document["sort-orders"] = [{"order-id": 1, "fields": order}]
    assert "sorted_by" not in definition(NAME, read(tmp_path, document), ["id"])
