"""Statements in numbers, and what they would read, for whoever decides."""

from __future__ import annotations

import numpy as np
import pytest

from lakehouse_core.catalog.estimate import FileBounds
from lakehouse_core.catalog.estimate_axis import axis_of_values
from lakehouse_core.catalog.estimate_tables import BoundsMemory, TableBounds
from lakehouse_core.domain.query import StatementKind, TemplateId
from lakehouse_core.routing.features import FeatureSpace, ScanFacts
from lakehouse_core.routing.features_scan import LakeScanEstimator
from lakehouse_core.routing.request import Request, ScanEstimate, StatementFacts
from lakehouse_core.sql import Inspector

INSPECTOR = Inspector()
JOINED = """
SELECT r.name, count(DISTINCT o.id), row_number() OVER (ORDER BY r.name)
FROM lake.demo.orders o LEFT JOIN lake.demo.regions r ON o.region = r.id
WHERE o.day BETWEEN DATE '2026-01-01' AND DATE '2026-03-01' AND o.note LIKE '%x%'
GROUP BY r.name ORDER BY 2 DESC LIMIT 10
"""


def test_a_tree_is_counted_without_a_schema() -> None:
    shape = INSPECTOR.shape(JOINED, "trino")
    assert shape.template is not None
    counts = {
        name: shape.template.count(name)
        for name in ("tables", "joins", "outer_joins", "windows", "patterns", "limits", "groups")
    }
    assert counts == dict.fromkeys(("tables",), 2) | dict.fromkeys(list(counts)[1:], 1)
    assert shape.template.tables == ("lake.demo.orders", "lake.demo.regions")
    assert "rownumber" in "".join(shape.template.functions).replace("_", "")


def test_literals_tell_how_much_is_asked_for() -> None:
    def span(first: str, last: str) -> tuple[float, ...]:
        text = f"SELECT a FROM t WHERE d >= DATE '{first}' AND d < DATE '{last}'"  # noqa: S608 made up
        return INSPECTOR.shape(text, "trino").literals

    day, year = span("2026-01-01", "2026-01-02"), span("2025-01-01", "2026-01-01")
    assert day[3] < year[3]


def test_the_second_text_of_a_template_is_told_alike() -> None:
    first, second = (
        Inspector().shape(f"SELECT a FROM t WHERE x = {value}", "trino")  # noqa: S608 made up
        for value in (5, 7)
    )
    assert first.template == second.template
    assert first.template_id == second.template_id


@pytest.mark.parametrize(("sql", "dialect"), [("SELEC a FRO", "trino"), ("SELECT 1", "klingon")])
def test_what_is_not_understood_still_has_a_vector(sql: str, dialect: str) -> None:
    shape = INSPECTOR.shape(sql, dialect)
    space = FeatureSpace.learned([shape.template])
    vector = space.vector(shape, ScanFacts(bytes=1e6))
    assert len(vector) == len(space.names)
    assert np.isfinite(vector).all()


def test_words_have_a_place_when_they_tell_templates_apart() -> None:
    texts = [
        "SELECT a FROM t JOIN u USING (k)",
        "SELECT b FROM t JOIN v USING (k)",
        "SELECT c FROM u",
    ]
    shapes = [INSPECTOR.shape(text, "duckdb") for text in texts]
    space = FeatureSpace.learned([shape.template for shape in shapes])
    assert set(space.words) == {"table:t", "table:u"}
    place = space.names.index("table:u")
    assert [space.vector(shape)[place] for shape in shapes] == [1, 0, 1]


# --- the router's estimator ----------------------------------------------------------------------


def estimate(sql: str, *tables: str) -> ScanEstimate:
    day = axis_of_values("long", [0, 10, 20], [9, 19, 29])
    data = FileBounds(np.array([100, 200, 400]), np.array([1, 1, 1]), {"day": (day,)})
    memory = BoundsMemory()
    names = ("day", "k")
    memory.keep("lake.demo.t", TableBounds(1, "m.json", data, names, frozenset({"day"})))
    facts = StatementFacts(TemplateId("x"), StatementKind.SELECT, tables)
    request = Request(sql=sql, dialect="trino", catalog="lake", schema="demo")
    return LakeScanEstimator(memory, Inspector()).estimate(request, facts)


def test_files_and_bytes_of_a_statement() -> None:
    found = estimate("SELECT * FROM t WHERE day >= 10", "lake.demo.t")
    assert (found.files, found.bytes) == (2, 600)
    assert found.basis == "bounds of 3 files"


def test_a_table_read_twice_counts_twice() -> None:
    sql = "SELECT * FROM t a JOIN t b ON a.k = b.k WHERE a.day < 10"
    assert estimate(sql, "lake.demo.t").bytes == 100 + 700


def test_a_table_that_is_not_in_memory_is_not_guessed() -> None:
    found = estimate("SELECT * FROM t JOIN u USING (k)", "lake.demo.t", "lake.demo.u")
    assert found.files is None
    assert "lake.demo.u" in found.basis


def test_the_past_is_not_estimated() -> None:
    found = estimate("SELECT * FROM t FOR VERSION AS OF 3", "lake.demo.t")
    assert found.bytes is None
    assert "once was" in found.basis
