"""The console's client against a server that is away, wrong, slow, or leads elsewhere."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from lakehouse_core.config.gateway import GatewayConfig, SqlConfig
from lakehouse_core.views.gateway import GatewayAdmin, GatewayAwayError
from lakehouse_core.views.statements import Connection, Limits, Run, connection_to
from tests.factories import free_port
from tests.unit.views.server import serving

COLUMN = {"name": "n", "type": "bigint"}


def page(url: str, following: str | None, *rows: list[Any], **more: Any) -> tuple[int, Any]:
    said = {"id": "q1", "stats": {"state": "RUNNING"}, "columns": [COLUMN], "data": list(rows)}
    return 200, said | ({"nextUri": url + following} if following else {}) | more


def test_pages_are_followed_to_the_end_and_say_who_asks() -> None:
    def answer(method: str, path: str, url: str) -> tuple[int, Any]:
        return page(url, "/v1/next", [1]) if method == "POST" else page(url, None, [2])

    with serving(answer) as server:
        way = Connection(url=server.url, user="ana", password="s3cret", headers={"X-Group": "g"})
        seen = Run(way, "SELECT n").start().wait(60)
    assert (seen.state, seen.rows, seen.more) == ("finished", ((1,), (2,)), None)
    for _, _, headers in server.asked:
        assert headers["X-Trino-User"] == "ana"
        assert headers["X-Group"] == "g"
        assert headers["Authorization"].startswith("Basic ")
    assert "s3cret" not in repr(way)


def test_enough_rows_end_the_statement_on_the_engine_too() -> None:
    with serving(lambda _, __, url: page(url, "/v1/next", [1], [2])) as server:
        run = Run(Connection(url=server.url, user="ana"), "SELECT n", Limits(rows=3)).start()
        seen = run.wait(60)
        assert (len(seen.rows), seen.state) == (3, "finished")
        assert "first 3 rows" in (seen.more or "")
    assert server.asked[-1][0] == "DELETE"


def test_a_statement_cancelled_before_its_first_page_is_stopped_on_the_engine() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    def answer(method: str, path: str, url: str) -> tuple[int, Any]:
        if method == "POST":
            begun.set()
            cancelled.wait(60)
        return page(url, "/v1/next")

    with serving(answer) as server:
        run = Run(Connection(url=server.url, user="ana"), "SELECT n").start()
        assert begun.wait(60)
        run.cancel()
        cancelled.set()
        assert run.wait(60).state == "cancelled"
    assert [method for method, _, _ in server.asked] == ["POST", "DELETE"]


@pytest.mark.parametrize(
    ("limits", "name"), [(Limits(seconds=0), "TIME_LIMIT"), (Limits(bytes=1), None)]
)
def test_time_and_bytes_have_limits(limits: Limits, name: str | None) -> None:
    with serving(lambda _, __, url: page(url, "/v1/next")) as server:
        seen = Run(Connection(url=server.url, user="ana"), "SELECT n", limits).start().wait(60)
    assert (seen.problem.name if seen.problem else None) == name
    assert seen.is_over


def test_a_password_goes_to_no_other_server() -> None:
    with (
        serving(lambda _, __, url: page(url, None)) as other,
        serving(lambda _, __, ___: page(other.url, "/v1/next")) as server,
    ):
        way = Connection(url=server.url, user="ana", password="s3cret")
        seen = Run(way, "SELECT n").start().wait(60)
        assert seen.problem is not None
        assert "another server" in seen.problem.message
        assert other.asked == []


def test_an_error_keeps_its_place_and_a_refusal_its_words() -> None:
    error = {
        "errorName": "SYNTAX_ERROR",
        "message": "line 1:3: no",
        "errorLocation": {"lineNumber": 1, "columnNumber": 3},
    }
    answers: dict[str, tuple[int, Any]] = {
        "SYNTAX_ERROR": page("", None, error=error),
        "NOT_AUTHENTICATED": (401, b"User or password is wrong"),
        "GATEWAY_ANSWER": (200, b"<html>"),
    }
    for name, given in answers.items():
        with serving(lambda _, __, ___, given=given: given) as server:
            seen = Run(Connection(url=server.url, user="ana"), "SE").start().wait(60)
        assert seen.problem is not None
        assert (seen.state, seen.problem.name) == ("failed", name)


def test_a_gateway_that_is_away_is_told_with_the_command() -> None:
    port = free_port()
    seen = Run(Connection(url=f"http://127.0.0.1:{port}", user="ana"), "SELECT 1").start().wait(60)
    assert seen.problem is not None
    assert "lakehelm up" in seen.problem.message
    with pytest.raises(GatewayAwayError, match="lakehelm up"):
        GatewayAdmin(GatewayConfig(admin_port=port)).rules()


def test_something_else_on_the_admin_port_is_told() -> None:
    for answer, said in (((200, b"hello"), "no gateway of ours"), ((404, {}), "takes no SQL")):
        with serving(lambda _, __, ___, answer=answer: answer) as server:
            admin = GatewayAdmin(GatewayConfig(admin_port=server.server.server_port))
            with pytest.raises(GatewayAwayError, match=said):
                admin.rules()


def test_a_gateway_on_every_address_is_reached_on_this_machine() -> None:
    sql = SqlConfig(port=8095).model_copy(update={"host": "0.0.0.0"})  # noqa: S104 not listened on
    assert connection_to(sql, user="ana").url == "http://127.0.0.1:8095"
