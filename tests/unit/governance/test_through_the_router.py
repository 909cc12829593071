"""Every front end asks the router: what it denies no engine sees, whatever way it came."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.routing.build import make_plan, make_ports
from lakehouse_core.routing.request import Request
from lakehouse_core.routing.router import Router
from tests.unit.routing.conftest import Fleet
from tests.unit.sql.guard.corpora import hostile, written

if TYPE_CHECKING:
    from lakehouse_core.config import Config

# Hostile to engines of that dialect only; a translated text has lost it.
IN_ONE_DIALECT = (
    "settings put into the text before it is parsed",
    "nested comments",
    "comments that some run",
    "a comment that goes on",
    "characters nobody sees",
)
pytestmark = pytest.mark.slow

DIALECTS = ("trino", "spark", "duckdb", "postgres")


@pytest.fixture
def router(demo_config: Config) -> Router:
    return Router(make_plan(demo_config), make_ports(demo_config, Fleet()))


def test_hostile_statements_are_denied_before_an_engine_sees_them(router: Router) -> None:
    kinds: Counter[str] = Counter()
    for one in hostile()[::3]:
        if one.dialect in DIALECTS and one.why not in IN_ONE_DIALECT:
            request = Request(sql=one.sql, dialect=one.dialect, user="ana", protocol="trinoHttp")
            decision = router.decide(request)
            assert decision.denial is not None, (one.dialect, one.sql)
            kinds[decision.denial.kind] += 1
    assert kinds["guard"] > 100, kinds


def test_harmless_statements_are_not_denied_by_the_guard(router: Router) -> None:
    sent = 0
    for one in written():
        if one.dialect in ("trino", "spark", "duckdb"):  # what the demo's engines speak
            decision = router.decide(Request(sql=one.sql, dialect=one.dialect, user="ana"))
            assert decision.denial is None or decision.denial.kind != "guard", decision.denial
            sent += decision.denial is None
    assert sent > 50
