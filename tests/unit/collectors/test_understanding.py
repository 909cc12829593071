from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collectors.understanding import MAX_MESSAGE, Observed, Understanding
from lakehouse_core.domain.query import StatementKind
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
