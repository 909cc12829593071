"""Golden pairs: what a statement's template is, and what it uses."""

from __future__ import annotations

import pytest

from lakehouse_core.sql import Inspector
from tests.unit.sql.golden import Case, cases

FINGERPRINTS = cases("fingerprint.sql")
USAGES = cases("usage.sql")


@pytest.mark.parametrize("case", FINGERPRINTS, ids=lambda case: case.name)
def test_template_is_the_golden_one(case: Case) -> None:
    found = Inspector().fingerprint(case.sql, case.dialect)
    assert found.template == case.template
    assert ([f"error: {found.error}"] if found.error else []) == case.expected


def test_different_golden_templates_have_different_ids() -> None:
    inspector = Inspector()
    ids = {inspector.fingerprint(case.sql, case.dialect).template_id for case in FINGERPRINTS}
    assert len(ids) == len({case.template for case in FINGERPRINTS})


@pytest.mark.parametrize("case", USAGES, ids=lambda case: case.name)
def test_usage_is_the_golden_one(case: Case) -> None:
    found = Inspector().inspect(case.sql, case.dialect)
    roles: dict[tuple[str, str], list[str]] = {}
    for use in found.columns:
        roles.setdefault((use.table, use.column), []).append(use.role)
    shown = [f"{table or '?'} {column}: {', '.join(r)}" for (table, column), r in roles.items()]
    assert found.error is None
    assert [f"tables: {', '.join(found.tables)}".strip(), *shown] == case.expected


@pytest.mark.parametrize("case", [*FINGERPRINTS, *USAGES], ids=lambda case: case.name)
def test_second_look_through_the_hot_path_gives_the_same(case: Case) -> None:
    inspector = Inspector()
    first = inspector.inspect(case.sql, case.dialect)
    assert inspector.inspect(case.sql, case.dialect) == first
