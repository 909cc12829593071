from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collectors.understanding import MAX_MESSAGE, Observed, Understanding
from lakehouse_core.domain.query import StatementKind
from lakehouse_core.sql.schema import Schema
from tests.factories import query_event

if TYPE_CHECKING:
    import pyarrow as pa


def observed(sql: str | None, dialect: str = "trino", **more: Any) -> Observed:
    event = query_event(sql_text=sql, dialect=dialect, statement_kind=None, **more)
    return Observed(event, "lake", ("demo",))


def rows(table: pa.Table) -> list[dict[str, Any]]:
    return [dict(row) for row in table.to_pylist()]


def test_a_batch_has_each_template_once_with_the_columns_it_uses() -> None:
    events = [observed(f"SELECT v FROM t WHERE id = {n}") for n in range(5)]  # noqa: S608 not run
    events.append(observed("SELECT count(*) FROM other.u GROUP BY k"))
    found = Understanding().rows(events)
    assert found["query_event"].num_rows == 6
    assert found["query_template"].num_rows == 2
    usage = {(u["table_name"], u["column_name"], u["role"]) for u in rows(found["column_usage"])}
    assert usage == {
        ("lake.demo.t", "v", "project"),
        ("lake.demo.t", "id", "filter_eq"),
        ("lake.other.u", "k", "group"),
    }
    templates = {row["template_id"] for row in rows(found["query_template"])}
    assert {row["template_id"] for row in rows(found["query_event"])} == templates


def test_literals_fall_into_sketches() -> None:
    events = [observed(f"SELECT v FROM t WHERE id = {n}") for n in (10, 9, 30)]  # noqa: S608 not run
    found = rows(Understanding().rows(events)["column_literal"])
    ends = {row["part"]: row["literals"] for row in found if row["part"] != "sample"}
    assert (ends["min"], ends["max"]) == (["9"], ["30"])
    sampled = {row["literals"][0] for row in found if row["part"] == "sample"}
    assert sampled <= {"9", "10", "30"}
    assert {(row["table_name"], row["column_name"], row["operator"]) for row in found} == {
        ("lake.demo.t", "id", "=")
    }


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM t WHERE password = 'hunter2' AND a = 'plain'",
        "SELECT 1 FROM t WHERE a = 'plain' AND 'hunter2' = user_token",
        "SELECT 1 FROM t WHERE lower(t.secret) NOT IN ('x', 'hunter2') AND a = 'plain'",
        "SELECT 1 FROM t WHERE api_key BETWEEN 'a' AND 'hunter2' AND a = 'plain'",
        "UPDATE t SET passwd = 'hunter2', b = 'plain' WHERE c = 1",
        "SELECT 1 FROM t WHERE url = 'jdbc:x://u:hunter2@h' AND a = 'plain'",
    ],
)
def test_secrets_are_in_no_row(sql: str) -> None:
    found = Understanding().rows([observed(sql)])
    shown = " ".join(str(table.to_pylist()) for table in found.values())
    assert "hunter2" not in shown
    assert "plain" in shown


def test_keys_are_no_secrets() -> None:
    found = Understanding().rows([observed("SELECT 1 FROM t WHERE customer_key = 4711")])
    assert "4711" in str(found["query_event"].column("sql_text").to_pylist())


def test_the_kind_an_engine_reported_stands() -> None:
    event = query_event(sql_text="SELECT 1", statement_kind=StatementKind.CALL)
    assert Understanding().event(Observed(event)).statement_kind is StatementKind.CALL


def test_a_text_that_does_not_parse_is_kept_and_shown_as_such() -> None:
    found = Understanding().rows([observed("SELEC 1 FRM")])
    (event,) = rows(found["query_event"])
    (template,) = rows(found["query_template"])
    assert event["sql_text"] == "SELEC 1 FRM"
    assert event["template_id"] == template["template_id"]
    assert template["parse_error"]
    assert template["parse_reason"] == "syntax"
    assert "column_usage" not in found


def test_an_event_without_text_stays_without_template() -> None:
    found = Understanding().rows([observed(None)])
    (event,) = rows(found["query_event"])
    assert event["template_id"] is None
    assert "query_template" not in found


def test_secrets_leave_text_message_and_template() -> None:
    sql = "CREATE SECRET s (TYPE s3, KEY_ID 'id', SECRET 'c4n4ry')"
    found = Understanding().rows(
        [observed(sql, "duckdb", error_message="bad secret c4n4ry", translated_sql=sql)]
    )
    assert "c4n4ry" not in str([rows(table) for table in found.values()])


def test_a_message_is_bounded() -> None:
    event = Understanding().event(observed("SELECT 1", error_message="x" * 100_000))
    assert len(event.error_message or "") == MAX_MESSAGE


def test_nothing_gives_nothing() -> None:
    assert Understanding().rows([]) == {}


def test_the_memory_of_texts_is_bounded_and_changes_no_answer() -> None:
    small = Understanding(cached_texts=2)
    texts = [f"SELECT a{n} FROM t" for n in range(5)] * 2  # noqa: S608 not run
    first = [small.event(observed(text)).template_id for text in texts]
    assert first[:5] == first[5:]
    assert len(set(first)) == 5


def under(schema: str, sql: str) -> Observed:
    return Observed(query_event(sql_text=sql, dialect="trino"), "lake", (schema,))


def used(found: dict[str, pa.Table]) -> set[tuple[str, str, str]]:
    return {
        (u["default_namespace"], u["table_name"], u["column_name"])
        for u in rows(found["column_usage"])
    }


def test_one_text_under_two_schemas_uses_two_tables() -> None:
    text = "SELECT v FROM t"
    found = Understanding().rows([under("a", text), under("b", text), under("a", text)])
    assert found["query_template"].num_rows == 1
    assert used(found) == {("a", "lake.a.t", "v"), ("b", "lake.b.t", "v")}
    tables = [(t["default_namespace"], t["table_name"]) for t in rows(found["template_table"])]
    assert tables == [("a", "lake.a.t"), ("b", "lake.b.t")]


def test_a_table_without_a_named_column_is_a_table_of_its_template() -> None:
    found = Understanding().rows([under("a", "SELECT count(*) FROM t")])
    assert [t["table_name"] for t in rows(found["template_table"])] == ["lake.a.t"]


JOIN = "SELECT name, sum(amount) FROM users, orders WHERE id = user_id AND status = 'x' GROUP BY 1"


def test_the_lakes_columns_say_which_table_a_column_belongs_to() -> None:
    columns = Schema(
        {
            "lake.a.users": ("id", "name"),
            "lake.a.orders": ("user_id", "amount", "status"),
            "lake.b.users": ("id", "name", "status"),
        }
    )
    found = Understanding(lambda: columns).rows([under("a", JOIN)])
    assert used(found) == {
        ("a", "lake.a.users", "id"),
        ("a", "lake.a.users", "name"),
        ("a", "lake.a.orders", "user_id"),
        ("a", "lake.a.orders", "amount"),
        ("a", "lake.a.orders", "status"),
    }


def test_columns_that_nobody_can_place_are_listed_not_dropped() -> None:
    found = Understanding().rows([under("a", JOIN)])
    assert used(found) == {
        ("a", "", name) for name in ("id", "user_id", "name", "amount", "status")
    }


def test_columns_learned_later_are_used_for_a_text_seen_before() -> None:
    known: list[Schema | None] = [None]
    understanding = Understanding(lambda: known[0])
    understanding.rows([under("a", JOIN)])
    known[0] = Schema({"lake.a.users": ("id", "name"), "lake.a.orders": ("user_id", "amount")})
    assert ("a", "lake.a.users", "name") in used(understanding.rows([under("a", JOIN)]))


@pytest.mark.slow
def test_the_memory_of_texts_is_bounded_in_bytes() -> None:
    small = Understanding(cached_bytes=2**20)
    for number in range(60):
        values = ", ".join(f"({number}, 'value {n}')" for n in range(2_000))
        small.event(observed(f"INSERT INTO t VALUES {values}"))  # noqa: S608 not run
    assert 0 < small.remembered_bytes <= 2**20


def test_a_text_too_large_to_remember_gives_the_same_rows() -> None:
    text = "SELECT v FROM t WHERE s = '" + "x" * 300_000 + "'"
    small = Understanding(cached_bytes=2**20)
    assert small.rows([observed(text)])["query_event"].num_rows == 1
    assert small.remembered_bytes == 0
    assert (
        small.event(observed(text)).template_id == Understanding().event(observed(text)).template_id
    )
