"""The demo's people at the SQL endpoint: who they are, what becomes of it, and when it is away."""

from __future__ import annotations

from contextlib import closing
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.config.gateway import SqlConfig
from lakehouse_core.demo.endpoint import NAME, SqlEndpoint, open_endpoint
from lakehouse_core.demo.personas import PERSONAS, Role
from lakehouse_core.demo.plan import Step
from lakehouse_core.demo.runner import Tally, Workload
from lakehouse_core.demo.statements import DASHBOARDS, DIALECT, QUESTIONS, Draw
from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.domain.errors import EngineUnavailableError, QueryFailedError
from lakehouse_core.engines.base import Statement
from lakehouse_core.sql.retarget import retarget
from lakehouse_core.sql.translate import Outcome, translate
from lakehouse_core.views.statements import Connection
from tests.factories import NOW, free_port
from tests.unit.views.server import serving

if TYPE_CHECKING:
    from lakehouse_core.demo.statements import Template

ASKED = Statement(
    sql="SELECT 1", user="ana", source="jupyter", tags=("team:growth", "question:large-orders")
)


def answer(method: str, path: str, url: str) -> tuple[int, Any]:
    """Two pages of a result; what it is and how it is to a probe."""
    if path == "/v1/info":
        return 200, {"starting": False}
    page = {"id": "q1", "stats": {"state": "RUNNING"}, "columns": [{"name": "n", "type": "bigint"}]}
    if method == "POST":
        return 200, {**page, "nextUri": f"{url}/v1/statement/q1/1"}
    return 200, {**page, "data": [[1]], "stats": {"state": "FINISHED"}}


def wrong(method: str, path: str, url: str) -> tuple[int, Any]:
    if path == "/v1/info":
        return 503, {}
    error = {"errorName": "COLUMN_NOT_FOUND", "message": "no such column"}
    return 200, {"id": "q1", "stats": {"state": "FAILED"}, "error": error}


def at(url: str) -> SqlEndpoint:
    return SqlEndpoint(Connection(url=url, user="somebody"), lambda: NOW)


def step(statement: Statement = ASKED) -> Step:
    return Step(after_seconds=0.0, engine_id=NAME, role=Role.ANALYST, statement=statement)


def test_a_statement_says_who_asks_with_which_tool_and_tags() -> None:
    with serving(answer) as server, closing(at(server.url)) as endpoint:
        endpoint.execute(ASKED)

    posted = [headers for method, _, headers in server.asked if method == "POST"]
    assert [h["X-Trino-User"] for h in posted] == ["ana"]
    assert [h["X-Trino-Source"] for h in posted] == ["jupyter"]
    assert [h["X-Trino-Client-Tags"] for h in posted] == ["team:growth,question:large-orders"]
    assert [path for method, path, _ in server.asked if method == "GET"] == ["/v1/statement/q1/1"]


def test_a_statement_that_is_refused_failed() -> None:
    with serving(wrong) as server, pytest.raises(QueryFailedError, match="no such column"):
        at(server.url).execute(ASKED)


def test_nobody_there_is_away_and_not_failed() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(EngineUnavailableError, match=url):
        at(url).execute(ASKED)
    assert at(url).probe().observed is ObservedState.UNHEALTHY


def test_a_run_counts_the_endpoint_beside_the_engines_and_skips_it_while_it_is_away() -> None:
    with serving(answer) as server:
        (tally,) = Workload({NAME: at(server.url)}, lambda _: None).run([step()], None)
    assert tally == Tally(NAME, finished=1)

    said: list[str] = []
    away = at(f"http://127.0.0.1:{free_port()}")
    (tally,) = Workload({NAME: away}, said.append).run([step()], None)
    assert tally == Tally(NAME, skipped_away=1, is_away=True)
    assert said[0].startswith("SQL endpoint is away, going on without it: ")
    assert said[-1].endswith("SQL endpoint 0 ok, 1 skipped, away (away)")


def test_the_endpoint_is_used_when_it_answers() -> None:
    with serving(answer) as server:
        port = int(server.url.rpartition(":")[2])
        assert isinstance(open_endpoint(SqlConfig(port=port), lambda: NOW), SqlEndpoint)


def test_an_endpoint_nobody_can_use_is_left_out_and_told(tmp_path: Any) -> None:
    def why(**given: Any) -> object:
        return open_endpoint(SqlConfig(**given), lambda: NOW)

    port = free_port()
    assert why(enabled=False) == "gateway.sql.enabled is false"
    assert "passwords" in str(why(users=tmp_path / "users"))
    assert f"nobody answers at http://127.0.0.1:{port}" in str(why(port=port))
    with serving(wrong) as server:
        assert "HTTP 503" in str(why(port=int(server.url.rpartition(":")[2])))


def test_analysts_and_a_dashboard_use_it_and_no_pipeline() -> None:
    roles = {persona.role for persona in PERSONAS if persona.is_routed}
    assert roles == {Role.ANALYST, Role.BI}
    assert all(p.is_routed for p in PERSONAS if p.role is Role.ANALYST)


@pytest.mark.parametrize("template", [*DASHBOARDS, *QUESTIONS], ids=lambda t: t.name)
def test_any_engine_may_be_given_any_template(template: Template) -> None:
    """What is doubtful in another dialect would stay on one engine, and nothing be compared."""
    values = template.values(Draw(Random(7), NOW))  # noqa: S311 repeatable draws
    sql = retarget(template.sql, values, source=DIALECT, target=DIALECT)
    for dialect in ("duckdb", "spark"):
        told = translate(sql, DIALECT, dialect)
        assert (told.outcome, told.reason) == (Outcome.TRANSLATED, ""), dialect
