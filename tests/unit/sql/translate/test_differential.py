"""What is called translated runs, and gives the same rows by whichever way it came.

Here DuckDB runs all of it: there and back through another dialect. The same statements on real
Trino and Spark servers: tests/integration/lake/test_translation.py.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.duck import connect
from lakehouse_core.sql.translate import Outcome, translate
from tests.unit.sql import tpc
from tests.unit.sql.translate.corpus import STATEMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

pytestmark = pytest.mark.slow

DIALECTS = ("trino", "spark", "duckdb")


@pytest.fixture(scope="module")
def tpch() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(extensions=("tpch",)) as connection:
        connection.execute("CALL dbgen(sf = 0.005)")
        yield connection


def rows(connection: duckdb.DuckDBPyConnection, sql: str) -> Counter:
    return Counter(map(repr, connection.execute(sql).fetchall()))


def test_there_and_back_gives_the_same_rows(tpch: duckdb.DuckDBPyConnection) -> None:
    statements = [*STATEMENTS, *(("duckdb", text) for text in tpc.texts("tpch"))]
    sure = 0
    for source, sql in statements:
        here = translate(sql, source, "duckdb")
        if here.outcome not in (Outcome.IDENTICAL, Outcome.TRANSLATED):
            continue
        expected = rows(tpch, here.sql)
        for other in DIALECTS:
            there = translate(sql, source, other)
            if there.outcome is not Outcome.TRANSLATED:
                continue
            back = translate(there.sql, other, "duckdb")
            assert back.outcome is not Outcome.FAILED, (sql, there.sql, back.reason)
            assert rows(tpch, back.sql) == expected, (sql, there.sql, back.sql)
            sure += 1
    assert sure > 80, sure  # else the test shows nothing


def test_most_of_tpch_is_translated_for_sure() -> None:
    texts = tpc.texts("tpch")
    for target in ("trino", "spark"):
        sure = [t for t in texts if translate(t, "duckdb", target).outcome is Outcome.TRANSLATED]
        assert len(sure) >= 14, (target, len(sure))
