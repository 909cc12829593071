"""One statement for several engines."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from lakehouse_core.sql.retarget import retarget


def test_parameters_become_literals_of_the_target_dialect() -> None:
    sql = "SELECT * FROM t WHERE a = :a AND b < :b AND c > :c AND d IN (:d, :e) AND f = :f"
    values = {
        "a": "O'Brien; DROP TABLE t --",
        "b": date(2026, 1, 2),
        "c": datetime(2026, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001 as statements carry them
        "d": 7,
        "e": Decimal("1.50"),
        "f": None,
    }

    assert retarget(sql, values, source="trino", target="spark") == (
        "SELECT * FROM t WHERE a = 'O\\'Brien; DROP TABLE t --' "
        "AND b < CAST('2026-01-02' AS DATE) "
        "AND c > CAST('2026-01-02 03:04:05.000006' AS TIMESTAMP) "
        "AND d IN (7, 1.50) AND f = NULL"
    )


def test_a_parameter_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        retarget("SELECT :missing", {}, source="trino", target="duckdb")
