"""Names of engines that fold to upper case, in the lake's spelling."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakehouse_core.sql.columnar import inspect_batches
from lakehouse_core.sql.spelling import lake_table, linked_databases


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("ICEBERG_DB.DEMO.T", "lake.demo.t"),
        ("ICEBERG_DB.DEMO.Mixed", "lake.demo.Mixed"),
        ("OTHER.DEMO.T", "other.demo.t"),
        ("ICEBERG_DB.T", "iceberg_db.t"),  # a schema may bear the name, too
        ('ICEBERG_DB.DEMO."A.B"', 'lake.demo."a.b"'),
        ("T", "t"),
        ('"open.t', '"open.t'),
    ],
)
def test_folded_names(name: str, spelt: str) -> None:
    assert lake_table(name, linked_databases("lake", "ICEBERG_DB")) == spelt


@pytest.mark.parametrize("written", ["ICEBERG_DB", "iceberg_db", None])
def test_the_database_may_be_written_in_any_case_or_bear_the_catalogs_name(
    written: str | None,
) -> None:
    told = "ICEBERG_DB" if written else "LAKE"
    assert lake_table(f"{told}.DEMO.T", linked_databases("lake", written)) == "lake.demo.t"


def understood(sql: str, dialect: str, catalog: str, schema: str) -> dict[str, Any]:
    texts = pa.table(
        {
            "text_id": ["1"],
            "sql_text": [sql],
            "dialect": [dialect],
            "default_catalog": [catalog],
            "default_namespace": [[schema]],
        }
    )
    databases = linked_databases("lake", "ICEBERG_DB")
    (row,) = pa.Table.from_batches(inspect_batches(iter(texts.to_batches()), databases)).to_pylist()
    return {name: row[name] for name in ("template_id", "tables", "usage", "predicates")}


@pytest.mark.parametrize(
    ("snowflake", "trino"),
    [
        ("SELECT V FROM T WHERE ID = 7", "SELECT v FROM t WHERE id = 7"),
        ("select v from demo.t where id = 7", "SELECT v FROM demo.t WHERE id = 7"),
        ("select t.v from t join u on t.id = u.id", "select t.v from t join u on t.id = u.id"),
    ],
)
def test_snowflakes_statements_use_the_same_tables_as_trinos(snowflake: str, trino: str) -> None:
    told = understood(snowflake, "snowflake", "ICEBERG_DB", "DEMO")
    assert told == understood(trino, "trino", "lake", "demo")
    assert all(table.startswith("lake.demo.") for table in told["tables"])


def test_a_full_name_names_the_linked_database() -> None:
    sql = "SELECT V FROM ICEBERG_DB.DEMO.T"
    assert understood(sql, "snowflake", "OTHER", "PUBLIC")["tables"] == ["lake.demo.t"]


def test_other_dialects_keep_what_they_say() -> None:
    told = understood('SELECT "V" FROM "DEMO"."T"', "spark", "ICEBERG_DB", "demo")
    assert told["tables"] == ["ICEBERG_DB.demo.t"]
