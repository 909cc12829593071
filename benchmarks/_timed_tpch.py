"""Real timings: TPC-H with varied literals on DuckDB in settings that differ like engines do.

Native tables on all threads; native tables on one thread without some optimisers; Parquet files on
one thread. Each statement runs twice on each, the better time counts.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

from lakehouse_core.duck import connect

if TYPE_CHECKING:
    from pathlib import Path

    from duckdb import DuckDBPyConnection

SCALE = 0.02
VARIANTS = 9
TEST_VARIANTS = 3
UNSEEN = (3, 7, 13, 18)  # queries whose template the training part does not have
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


def varied(sql: str, rng: np.random.Generator) -> str:
    """The statement with its dates moved by up to two years and its numbers by up to a fifth."""
    out, position = [], 0
    for token in Dialect.get_or_raise("duckdb").tokenize(sql):
        text = None
        if token.token_type == TokenType.STRING and _DATE.match(token.text):
            text = f"'{np.datetime64(token.text) + int(rng.integers(-700, 700))}'"
        elif token.token_type == TokenType.NUMBER and token.text.isdecimal():
            number = int(token.text)
            text = str(int(number * rng.uniform(0.8, 1.2))) if number >= 10 else None
        if text is not None:
            out += [sql[position : token.start], text]
            position = token.end + 1
    return "".join(out) + sql[position:]


def engines(folder: Path) -> dict[str, DuckDBPyConnection]:
    """Connections by name."""
    native, plain, files = (connect(extensions=("tpch",)) for _ in range(3))
    for connection in (native, plain):
        connection.execute(f"CALL dbgen(sf = {SCALE})")
    for table in TABLES:
        path = folder / f"{table}.parquet"
        native.execute(f"COPY {table} TO '{path}'")
        files.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{path}')")  # noqa: S608 ours
    plain.execute("SET disabled_optimizers = 'build_side_probe_side,join_filter_pushdown,top_n'")
    plain.execute("SET threads = 1")
    files.execute("SET threads = 1")
    return {"native": native, "simple": plain, "parquet": files}


def workload(folder: Path, seed: int = 0) -> tuple[pa.Table, pa.Table]:
    """Queries and their timings, really run."""
    rng = np.random.default_rng(seed)
    opened = engines(folder)
    texts = opened["native"].execute("SELECT query_nr, query FROM tpch_queries()").fetchall()
    queries: list[dict[str, Any]] = []
    timings: list[dict[str, Any]] = []
    for variant in range(VARIANTS):
        for number, text in texts:
            is_test = variant >= VARIANTS - TEST_VARIANTS
            if number in UNSEEN and not is_test:
                continue
            query_id = f"q{number}-{variant}"
            sql = varied(text, rng)
            split = "test" if is_test else "train"
            queries.append({"query_id": query_id, "sql": sql, "dialect": "duckdb", "split": split})
            timings += [
                {"query_id": query_id, "engine": name, "seconds": _seconds(connection, sql)}
                for name, connection in opened.items()
            ]
    for connection in opened.values():
        connection.close()
    return pa.Table.from_pylist(queries), pa.Table.from_pylist(timings)


def _seconds(connection: DuckDBPyConnection, sql: str) -> float:
    found = []
    for _ in range(2):
        started = time.perf_counter()
        connection.execute(sql).fetchall()
        found.append(time.perf_counter() - started)
    return min(found)
