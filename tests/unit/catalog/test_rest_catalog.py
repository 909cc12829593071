"""The REST catalog's client: pages, ETags, tokens, and servers that are slow, busy or broken."""

from __future__ import annotations

import socket
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from lakehouse_core.catalog import open_catalog
from lakehouse_core.catalog.rest import RestLake
from lakehouse_core.catalog.rest_http import ATTEMPTS, RestHttp
from lakehouse_core.config.catalogs import RestCatalog
from lakehouse_core.domain.errors import (
    CatalogError,
    CatalogRefusedError,
    CatalogUnavailableError,
    MetadataUnreadableError,
    TableGoneError,
)
from lakehouse_core.domain.table import TableName
from tests.unit.catalog.rest_stand_in import Reply, RestStandIn, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Fault = Callable[[str, dict[str, str]], Reply | None]

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[RestStandIn]:
    server = RestStandIn()
    yield server
    server.close()


class Waits:
    """Time that passes without being waited for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def open_lake(server: RestStandIn, waits: Waits) -> Iterator[Callable[..., RestLake]]:
    opened: list[RestLake] = []

    def open_one(**settings: Any) -> RestLake:
        config = RestCatalog(type="rest", **{"uri": server.uri, **settings})
        lake = RestLake("lake", config, RestHttp(config, wait=waits, luck=lambda: 0.5))
        opened.append(lake)
        return lake

    yield open_one
    for lake in opened:
        lake.close()


@pytest.fixture
def lake(open_lake: Callable[..., RestLake]) -> RestLake:
    return open_lake()


def name_of(name: str = "t", *namespace: str) -> TableName:
    return TableName("lake", namespace or ("demo",), name)


def at_table(reply: Reply, name: str = "t") -> Fault:
    return lambda path, _: reply if path.endswith(f"/tables/{name}") else None


def times(count: int, reply: Reply) -> Fault:
    """The reply to the first questions for tables."""
    left = [count]

    def fault(path: str, _: dict[str, str]) -> Reply | None:
        if "/tables" not in path or not left[0]:
            return None
        left[0] -= 1
        return reply

    return fault


def test_all_pages_of_namespaces_and_tables_are_read(server: RestStandIn, lake: RestLake) -> None:
    server.page_size = 3
    wanted = {}
    for space in range(7):
        for number in range(10):
            server.add((f"n{space}",), f"t{number}", f"file:/{space}/{number}")
            wanted[name_of(f"t{number}", f"n{space}")] = f"file:/{space}/{number}"
    assert lake.namespaces() == [(f"n{space}",) for space in range(7)]
    assert lake.tables() == wanted
    assert lake.tables(("n3",)) == {t: where for t, where in wanted.items() if "n3" in t.namespace}


def test_a_server_that_turns_in_a_circle_is_told(server: RestStandIn, lake: RestLake) -> None:
    page = {"namespaces": [["a"]], "next-page-token": "same"}
    server.fault = lambda path, _: Reply(200, page) if path.endswith("/namespaces") else None
    with pytest.raises(CatalogError, match="again and again"):
        lake.namespaces()


def test_nested_namespaces_are_found_also_where_parents_are_ignored(
    server: RestStandIn, lake: RestLake
) -> None:
    server.add(("a", "b.c", "d"), "deep")
    assert lake.namespaces() == [("a",), ("a", "b.c"), ("a", "b.c", "d")]
    assert list(lake.tables()) == [name_of("deep", "a", "b.c", "d")]
    flat = {"namespaces": [["a"], ["b"]]}
    server.fault = lambda path, _: Reply(200, flat) if path.endswith("/namespaces") else None
    assert lake.namespaces() == [("a",), ("b",)]


@pytest.mark.parametrize(
    "name", ["a b", "ünïcode 表", 'quo"te', "it's", "100%", "a+b", "a/b", "a.b", "a?b#c", "k=v&x"]
)
def test_odd_names_reach_the_server_as_they_are(
    server: RestStandIn, lake: RestLake, name: str
) -> None:
    server.add((name, "in ner"), name, "file:/odd")
    table = name_of(name, name, "in ner")
    assert lake.tables() == {table: "file:/odd"}
    assert lake.metadata_location(table) == "file:/odd"


def test_prefix_address_and_separator_of_the_servers_configuration_count(
    server: RestStandIn, open_lake: Callable[..., RestLake]
) -> None:
    server.add(("demo",), "t")
    server.overrides = {"prefix": "warehouses/main"}
    lake = open_lake(warehouse="main")
    assert lake.metadata_location(name_of()) == "file:/lake/v1.json"
    assert server.asked[-1] == "/v1/warehouses/main/namespaces/demo/tables/t"


def test_a_table_that_did_not_change_costs_an_empty_answer(
    server: RestStandIn, lake: RestLake
) -> None:
    for number in range(20):
        server.add(("demo",), f"t{number}", f"file:/{number}/v1")
    before = lake.tables()
    assert server.statuses[304] == 0
    server.tables[("demo",), "t7"] = "file:/7/v2"
    after = lake.tables()
    assert server.statuses[304] == 19
    assert {t for t in after if after[t] != before[t]} == {name_of("t7")}


def test_servers_without_etags_are_asked_in_full(server: RestStandIn, lake: RestLake) -> None:
    server.has_etags = False
    server.add(("demo",), "t")
    lake.tables()
    server.tables[("demo",), "t"] = "file:/lake/v2.json"
    assert lake.metadata_location(name_of()) == "file:/lake/v2.json"


def test_no_more_questions_at_a_time_than_allowed(
    server: RestStandIn, open_lake: Callable[..., RestLake]
) -> None:
    for number in range(60):
        server.add(("demo",), f"t{number}")
    server.fault = lambda _path, _headers: time.sleep(0.002)  # type: ignore[func-returns-value]
    assert len(open_lake(concurrency=3).tables()) == 60
    assert 1 < server.most_at_once <= 3


def test_a_table_dropped_between_listing_and_asking_is_left_out(
    server: RestStandIn, lake: RestLake
) -> None:
    server.add(("demo",), "t")
    server.add(("demo",), "gone")
    server.fault = at_table(problem(404, "NoSuchTableException"), "gone")
    survey = lake.survey()
    assert list(survey.tables) == [name_of()]
    assert not survey.unreadable
    with pytest.raises(TableGoneError, match=r"lake\.demo\.gone"):
        lake.metadata_location(name_of("gone"))


def test_a_namespace_that_nobody_made_has_no_tables(lake: RestLake) -> None:
    assert lake.tables(("ops",)) == {}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (problem(404, "NotFoundException", "File does not exist: v1.json"), "does not exist"),
        (problem(403, "ForbiddenException", "no grant"), "no grant"),
        (problem(500, "RuntimeIOException", "broken metadata"), "broken metadata"),
        (Reply(200, {"metadata": {}}), "no metadata location"),
        (Reply(200, "<html>"), "not JSON"),
    ],
)
def test_one_table_that_cannot_be_told_does_not_hide_the_others(
    server: RestStandIn, lake: RestLake, reply: Reply, reason: str
) -> None:
    for name in ("a", "t", "z"):
        server.add(("demo",), name)
    server.fault = at_table(reply)
    survey = lake.survey()
    assert list(survey.tables) == [name_of("a"), name_of("z")]
    assert reason in survey.unreadable[name_of()]
    with pytest.raises(CatalogError) as caught:
        lake.metadata_location(name_of())
    assert not isinstance(caught.value, TableGoneError)
    assert reason in str(caught.value)


def test_a_file_lost_behind_the_catalog_is_not_a_dropped_table(
    server: RestStandIn, lake: RestLake
) -> None:
    server.add(("demo",), "t")
    server.fault = at_table(problem(404, "NotFoundException", "lost"))
    with pytest.raises(MetadataUnreadableError, match="lost"):
        lake.metadata_location(name_of())


def test_a_server_that_fails_at_every_table_is_unavailable(
    server: RestStandIn, lake: RestLake
) -> None:
    server.add(("demo",), "a")
    server.add(("demo",), "b")
    server.fault = lambda path, _: problem(500, "X", "out of order") if "/tables/" in path else None
    with pytest.raises(CatalogUnavailableError, match="out of order"):
        lake.survey()


def test_a_namespace_closed_to_us_is_told_and_not_taken_for_empty(
    server: RestStandIn, lake: RestLake
) -> None:
    server.add(("open",), "t")
    server.add(("hr", "pay"), "salaries")
    server.fault = lambda path, _: (
        problem(403, "ForbiddenException") if "/hr" in path and path.endswith("tables") else None
    )
    survey = lake.survey()
    assert list(survey.tables) == [name_of("t", "open")]
    assert set(survey.closed) == {("hr",), ("hr", "pay")}
    assert survey.hides(("hr", "pay"))
    assert not survey.hides(("open",))


def test_a_busy_server_is_asked_again_after_the_time_it_names(
    server: RestStandIn, lake: RestLake, waits: Waits
) -> None:
    server.add(("demo",), "t")
    server.fault = times(2, problem(429, "TooManyRequests", Retry_After="7"))
    assert lake.metadata_location(name_of()) == "file:/lake/v1.json"
    assert [round(seconds) for seconds in waits.seconds][:1] == [7]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_server_that_stays_busy_is_unavailable(
    server: RestStandIn, lake: RestLake, waits: Waits, status: int
) -> None:
    server.add(("demo",), "t")
    server.fault = times(99, problem(status, "Busy", "come later"))
    with pytest.raises(CatalogUnavailableError, match="come later"):
        lake.metadata_location(name_of())
    assert server.statuses[status] == ATTEMPTS
    assert waits.seconds == sorted(waits.seconds)  # longer each time
    assert sum(waits.seconds) < 10


def test_a_refusal_is_not_repeated(server: RestStandIn, lake: RestLake) -> None:
    server.fault = lambda _path, _headers: problem(403, "ForbiddenException", "not you")
    with pytest.raises(CatalogRefusedError, match=r"403 \(not you\).*list namespaces"):
        lake.tables()
    assert server.statuses[403] == 1


def test_nobody_there(open_lake: Callable[..., RestLake]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        lake = open_lake(uri=f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(CatalogUnavailableError, match="does not answer"):
            lake.namespaces()
        with pytest.raises(CatalogUnavailableError, match="does not answer"):
            lake.iceberg()


def test_an_answer_that_does_not_come_in_time_is_given_up(
    server: RestStandIn, open_lake: Callable[..., RestLake]
) -> None:
    release = threading.Event()

    def hang(_path: str, _headers: dict[str, str]) -> None:
        release.wait(30)

    server.fault = hang
    lake = open_lake(timeout=timedelta(seconds=0.05))
    with pytest.raises(CatalogUnavailableError, match="does not answer"):
        lake.namespaces()
    release.set()


@pytest.mark.parametrize(
    "reply", [Reply(200, "<html>hello"), Reply(200, [1]), Reply(404, "nginx"), Reply(400, "x")]
)
def test_another_server_under_that_address_is_told(
    server: RestStandIn, lake: RestLake, reply: Reply
) -> None:
    server.fault = lambda _path, _headers: reply
    with pytest.raises(CatalogError, match=server.uri):
        lake.namespaces()


def test_a_token_is_read_again_when_it_is_refused(
    server: RestStandIn, open_lake: Callable[..., RestLake], tmp_path: Path
) -> None:
    server.add(("demo",), "t")
    file = tmp_path / "token"
    file.write_text("old")
    server.token = "old"
    lake = open_lake(token=SecretStr(f"file:{file}"))
    lake.tables()
    server.token = "renewed"
    with pytest.raises(CatalogRefusedError, match="does not know us") as caught:
        lake.tables()
    assert "old" not in str(caught.value)  # which the server repeats
    file.write_text("renewed")
    assert list(lake.tables()) == [name_of()]


def test_a_token_is_fetched_with_the_credential_and_again_when_it_expires(
    server: RestStandIn, open_lake: Callable[..., RestLake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATALOG_LOGIN", "me:s3cr3t:with:colons")
    server.add(("demo",), "t")
    server.token = "nobody's"
    lake = open_lake(
        credential=SecretStr("env:CATALOG_LOGIN"),
        oauth2_server_uri=f"{server.uri}/realm/token",
        scope="lake:read",
    )
    assert list(lake.tables()) == [name_of()]
    assert server.forms == [
        {
            "grant_type": ["client_credentials"],
            "client_id": ["me"],
            "client_secret": ["s3cr3t:with:colons"],
            "scope": ["lake:read"],
        }
    ]
    assert server.asked[0] == "/realm/token"
    server.token = "expired meanwhile"
    assert lake.metadata_location(name_of()) == "file:/lake/v1.json"
    assert len(server.forms) == 2


def test_a_refused_credential_is_told_without_it(
    server: RestStandIn, open_lake: Callable[..., RestLake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATALOG_LOGIN", "me:s3cr3t")
    server.fault = lambda _path, _headers: Reply(
        401, {"error": "invalid_client", "error_description": "not s3cr3t"}
    )
    lake = open_lake(credential=SecretStr("env:CATALOG_LOGIN"))
    with pytest.raises(CatalogRefusedError, match="invalid_client") as caught:
        lake.tables()
    assert "s3cr3t" not in str(caught.value)


def test_a_secret_that_is_not_there_is_named(open_lake: Callable[..., RestLake]) -> None:
    lake = open_lake(token=SecretStr("env:NO_SUCH_VARIABLE"))
    with pytest.raises(CatalogRefusedError, match="NO_SUCH_VARIABLE"):
        lake.namespaces()


def test_headers_of_the_configuration_are_sent(
    server: RestStandIn, open_lake: Callable[..., RestLake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REALM_KEY", "k1")
    seen: list[dict[str, str]] = []
    server.fault = lambda _path, headers: seen.append(headers)  # type: ignore[func-returns-value]
    open_lake(
        properties={"header.Polaris-Realm": "prod"},
        secret_properties={"header.X-Key": SecretStr("env:REALM_KEY")},
    ).namespaces()
    assert {(one["polaris-realm"], one["x-key"]) for one in seen} == {("prod", "k1")}


def test_a_catalog_may_be_closed_and_used_again(server: RestStandIn) -> None:
    server.add(("demo",), "t")
    lake = open_catalog("lake", RestCatalog(type="rest", uri=server.uri))
    for _ in range(2):
        assert list(lake.tables()) == [name_of()]
        lake.close()


@pytest.mark.slow
def test_many_tables_are_one_small_answer_each(
    server: RestStandIn, open_lake: Callable[..., RestLake]
) -> None:
    for number in range(2_000):
        server.add((f"n{number % 20}",), f"t{number}", f"file:/{number}")
    lake = open_lake()
    assert len(lake.tables()) == 2_000
    server.asked.clear()
    started = time.monotonic()
    assert len(lake.tables()) == 2_000
    assert server.statuses[304] == 2_000
    # Namespaces once, those below each, the tables of each, and each table.
    assert len(server.asked) == 1 + 20 + 20 + 2_000
    assert (time.monotonic() - started) / 2_000 < 0.02
