from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.spark.statement import parse_statement, request_field
from lakehouse_core.sql import inspect

COMMAND = """sql_command {
  input {
    common {
      plan_id: 0
    }
    sql {
      query: "%s"
    }
  }
}
"""
RELATION = """common {
  plan_id: 7
}
sql {
  query: "%s"
}
"""
SHOWN = """common {
  plan_id: 20
}
show_string {
  input {
    %s {
%s    }
  }
  num_rows: 20
}
"""
LOCAL = r"""common {
  plan_id: 25
}
local_relation {
  data: "\377\377[truncated(size=416)]"
  schema: "{\"fields\":[]}"
}
"""


def escaped(text: str) -> str:
    """As protobuf's text format writes a string."""
    named = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}
    return "".join(
        named.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
        for byte in text.encode()
    )


@given(st.text(max_size=80))
def test_the_sql_text_comes_out_as_it_was_written(sql: str) -> None:
    command, relation = (
        parse_statement(COMMAND % escaped(sql)),
        parse_statement(RELATION % escaped(sql)),
    )
    assert command.sql == relation.sql == sql
    assert command.is_command
    assert not relation.is_command


def test_rows_the_client_sent_itself_read_no_table() -> None:
    found = parse_statement(LOCAL)
    assert found.is_tableless
    assert not found.is_command
    assert found.sql is None


def test_showing_the_result_of_a_command_reads_no_table_but_showing_a_query_does() -> None:
    assert parse_statement(SHOWN % ("local_relation", '      data: "x"\n')).is_tableless
    shown = parse_statement(SHOWN % ("sql", '      query: "SELECT 1"\n'))
    assert not shown.is_tableless
    assert shown.sql == "SELECT 1"


def test_a_write_of_local_rows_is_a_command() -> None:
    found = parse_statement(
        'write_operation_v2 {\n  input {\n    local_relation {\n      data: "x"\n    }\n  }\n'
        '  table_name: "lake.demo.t"\n}\n'
    )
    assert found.is_command


def test_several_sql_texts_in_one_plan_make_no_single_text() -> None:
    found = parse_statement(
        'join {\n left {\n sql {\n query: "A"\n}\n}\n right {\n sql {\n query: "B"\n}\n}\n}\n'
    )
    assert found.sql is None
    assert not found.is_tableless


def test_text_inside_a_string_is_not_taken_for_structure() -> None:
    sql = 'SELECT "} sql { query: 1" -- local_relation {'
    assert parse_statement(RELATION % escaped(sql)).sql == sql


def test_the_form_of_spark_3_is_read_too() -> None:
    assert parse_statement('sql_command {\n  sql: "SELECT 1"\n}\n').sql == "SELECT 1"


@given(st.text(max_size=60))
def test_any_text_is_survived(text: str) -> None:
    parse_statement(text)


def test_a_text_that_is_cut_off_is_understood_as_far_as_it_goes() -> None:
    whole = COMMAND % "SELECT 1 FROM t"
    for length in range(len(whole)):
        parse_statement(whole[:length])


def test_the_client_names_itself_at_the_top_level_only() -> None:
    request = 'plan {\n  client_type: "inner"\n}\nclient_type: "etl spark/4.1.4"\n'
    assert request_field(request, "client_type") == "etl spark/4.1.4"
    assert request_field("plan {\n}\n", "client_type") is None


@pytest.mark.parametrize("text", ["", "plan", "{", "}"])
def test_nothing_is_nothing(text: str) -> None:
    assert parse_statement(text).sql is None


@pytest.mark.parametrize(
    "start",
    [
        "SELECT a FROM lake.demo.t WHERE b = c",
        "SELECT a FROM lake.demo.t -- and then",
        "SELECT a FROM lake.demo.t /* and then",
        "SELECT a FROM lake.demo.t WHERE b = 'x",
        "SELECT a FROM lake.demo.t WHERE b IN (1, 2",
    ],
)
def test_a_text_that_spark_cut_is_never_taken_for_a_whole_statement(start: str) -> None:
    logged = f"{start}[truncated(size=5,000,000)]"
    sql = parse_statement(RELATION % escaped(logged)).sql
    assert sql == f"{start}\n[cut by Spark: of 5000000 characters"
    assert inspect(sql, "spark").error


def test_a_long_text_that_spark_did_not_cut_is_there_in_full() -> None:
    sql = f"SELECT v FROM lake.demo.t WHERE id IN ({', '.join(map(str, range(9_000)))})"  # noqa: S608 not run
    assert 40_000 < len(sql) < 65_535
    assert parse_statement(RELATION % escaped(sql)).sql == sql
