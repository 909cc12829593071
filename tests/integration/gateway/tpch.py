"""TPC-H in the lake, and its queries in Trino's words."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from lakehouse_core import duck
from lakehouse_core.catalog import open_catalog

if TYPE_CHECKING:
    from lakehouse_core.config import Config

SCALE = 0.01
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")


def make_tpch(config: Config) -> None:
    """Write the tables as Iceberg tables, without any engine."""
    catalog = config.catalogs["lake"]
    with closing(open_catalog("lake", catalog)) as lake, closing(lake.iceberg()) as iceberg:
        iceberg.create_namespace_if_not_exists("tpch")
        with duck.connect(extensions=("tpch",)) as made:
            made.execute("CALL dbgen(sf = $scale)", {"scale": SCALE})
            for name in TABLES:
                rows = made.execute(f"FROM {name}").to_arrow_table()
                table = iceberg.create_table_if_not_exists(f"tpch.{name}", schema=rows.schema)
                table.append(rows)


def queries() -> dict[int, str]:
    """The twenty-two queries, as DuckDB has them and Trino reads them, too."""
    with duck.connect(extensions=("tpch",)) as made:
        found = made.execute("SELECT query_nr, query FROM tpch_queries() ORDER BY 1").fetchall()
    texts = {number: text.strip().rstrip(";") for number, text in found}
    # DuckDB groups by an alias, which Trino does not know.
    head, grouping, rest = texts[15].partition("GROUP BY")
    return texts | {15: head + grouping + rest.replace("supplier_no", "l_suppkey", 1)}
