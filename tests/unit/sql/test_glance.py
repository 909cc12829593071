"""A glance tells the template, the kind and the tables that a full inspection tells."""

from __future__ import annotations

import pytest

from lakehouse_core.sql import Inspector

TEXTS = [
    "SELECT a FROM t WHERE b = 5",
    "WITH x AS (SELECT * FROM s.t) SELECT * FROM x JOIN c.s.u USING (id)",
    "INSERT INTO s.t SELECT * FROM u WHERE a IN (1, 2, 3)",
    "SELECT 1",
    "SELECT FROM WHERE (",
    "",
    "SELECT 'unclosed",
]
SESSIONS = [{}, {"default_catalog": "lake", "default_namespace": ("demo",)}]


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("text", TEXTS)
def test_it_agrees_with_an_inspection_the_first_time_and_every_other(
    text: str, session: dict[str, object]
) -> None:
    inspector = Inspector()
    full = Inspector().inspect(text, "trino", **session)
    for number in (5, 6, 6):
        seen = inspector.glance(text.replace("5", str(number)), "trino", **session)
        assert (seen.template_id, seen.kind, seen.tables, seen.error) == (
            *(full.template_id, full.kind, full.tables),
            full.error,
        )
        assert seen.columns == ()


def test_sessions_are_told_apart() -> None:
    inspector = Inspector()
    first = inspector.glance("SELECT 1 FROM t", "trino", default_namespace=("a",))
    second = inspector.glance("SELECT 1 FROM t", "trino", default_namespace=("b",))
    assert (first.tables, second.tables) == (("a.t",), ("b.t",))


def test_a_dialect_nobody_knows_is_an_error_in_words() -> None:
    assert "unknown dialect" in (Inspector().glance("SELECT 1", "klingon").error or "")
