"""`lakehelm sql inspect`: a line in, a line out, whatever the line."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.cli.judging import Judge
from lakehouse_core.cli.sql import answers
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.sql import Inspector

if TYPE_CHECKING:
    from pathlib import Path

KEYS = ["template_id", "template", "kind", "tables", "columns", "error"]
COMMAND = [sys.executable, "-c", "from lakehouse_core.cli import main; main()", "sql", "inspect"]


def ask(*lines: object, dialect: str = "trino") -> list[dict[str, Any]]:
    raw = b"".join(
        (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
    )
    return list(answers(io.BytesIO(raw), Inspector(), dialect))


def test_statement_is_answered_with_exactly_the_agreed_keys() -> None:
    (answer,) = ask({"sql": "SELECT a FROM t WHERE b = 1", "dialect": "spark"})
    assert list(answer) == KEYS
    assert answer == {
        "template_id": answer["template_id"],
        "template": "SELECT a FROM t WHERE b = ?",
        "kind": "select",
        "tables": ["t"],
        "columns": [
            {"table": "t", "column": "a", "role": "project"},
            {"table": "t", "column": "b", "role": "filter_eq"},
        ],
        "error": None,
    }


def test_bad_line_is_answered_and_does_not_stop_the_rest() -> None:
    bad: list[object] = [
        b"not json",
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        [1, 2],
        "text",
        {"dialect": "trino"},
        {"sql": 5},
        {"sql": "SELECT 1", "dialect": 5},
        {"sql": "SELECT 1", "dialect": "oracel"},
        {"sql": "SELECT 1", "schema": ["t"]},
        {"sql": "SELECT 1", "default_namespace": "demo"},
        {"sql": "SELECT FROM WHERE"},
    ]
    found = ask(*bad, {"sql": "SELECT 1"})
    assert len(found) == len(bad) + 1
    assert all(list(answer) == KEYS for answer in found)
    assert all(answer["error"] for answer in found[:-1])
    assert found[-1]["error"] is None


def test_bytes_that_are_no_text_do_not_hide_the_statement() -> None:
    (answer,) = ask(b'{"sql": "SELECT a FROM t WHERE b = \'\xff\'"}')
    assert (answer["error"], answer["tables"]) == (None, ["t"])


def test_line_may_bring_session_and_schema() -> None:
    (answer,) = ask(
        {
            "sql": "SELECT x, y FROM a JOIN b ON a.id = b.id",
            "default_catalog": "lake",
            "default_namespace": ["demo"],
            "schema": {"lake.demo.a": ["id", "x"], "b": {"id": "INT", "y": "INT"}},
        }
    )
    assert answer["tables"] == ["lake.demo.a", "lake.demo.b"]
    assert {"table": "lake.demo.b", "column": "y", "role": "project"} in answer["columns"]


def test_dialect_of_a_line_without_one_is_the_given() -> None:
    (quoted,) = ask({"sql": 'SELECT a FROM t WHERE b = "x"'}, dialect="spark")
    assert quoted["template"] == "SELECT a FROM t WHERE b = ?"


@pytest.mark.slow
def test_command_answers_each_line_before_the_next_is_sent(repository: Path) -> None:
    with subprocess.Popen(
        COMMAND, cwd=repository, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for sql in ("SELECT 1", "SELECT '\ud83d\ude00'"):
            process.stdin.write(json.dumps({"sql": sql}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["template"] == "SELECT ?"
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(timeout=60) == 0


def test_literals_are_told_when_asked_for() -> None:
    (answer,) = ask({"sql": "SELECT a FROM t WHERE b >= 1.50", "literals": True})
    assert list(answer) == [*KEYS, "predicates"]
    (predicate,) = answer["predicates"]
    assert (predicate["column"], predicate["operator"]) == ("b", ">=")
    assert predicate["values"] == ({"kind": "number", "text": "1.5"},)


# --- translation and guard -----------------------------------------------------------------------


def judged(*lines: object, translate_to: str | None = None, role: str | None = None) -> list[Any]:
    judge = Judge.asked_for(translate_to, role, None)
    raw = b"".join(
        (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
    )
    return list(answers(io.BytesIO(raw), Inspector(), "trino", judge))


def test_translation_adds_its_keys() -> None:
    sure, doubtful, same, failed = judged(
        {"sql": "SELECT a FROM t ORDER BY a"},
        {"sql": "SELECT a / b FROM t"},
        {"sql": "SELECT a FROM t", "dialect": "spark"},
        {"sql": "SELECT FROM WHERE"},
        translate_to="spark",
    )
    assert list(sure) == [*KEYS, "translated", "translation_outcome", "reason"]
    assert sure["translated"] == "SELECT a FROM t ORDER BY a NULLS LAST"
    assert (sure["translation_outcome"], sure["reason"]) == ("translated", "")
    assert doubtful["translation_outcome"] == "doubtful"
    assert "division" in doubtful["reason"]
    assert same["translation_outcome"] == "identical"
    assert (failed["translated"], failed["translation_outcome"]) == (None, "failed")
    assert failed["reason"]


def test_types_of_a_line_take_doubts_away() -> None:
    (answer,) = judged(
        {"sql": "SELECT a / b FROM t", "schema": {"t": {"a": "DOUBLE", "b": "INT"}}},
        translate_to="duckdb",
    )
    assert answer["translation_outcome"] == "translated"


def test_guard_adds_its_keys() -> None:
    fine, bad = judged(
        {"sql": "SELECT a FROM lake.demo.t"}, {"sql": "DROP TABLE t"}, role="analyst"
    )
    assert list(fine) == [*KEYS, "allowed", "rule", "reason"]
    assert (fine["allowed"], fine["rule"], fine["reason"]) == (True, None, "")
    assert (bad["allowed"], bad["rule"]) == (False, "read_only")
    assert "DROP" in bad["reason"]


def test_guard_looks_at_the_translated_text() -> None:
    found = judged(
        {"sql": "SELECT a FROM t", "dialect": "duckdb"},
        {"sql": "SELECT * FROM read_csv('x')", "dialect": "duckdb"},
        {"sql": "not sql"},
        translate_to="trino",
        role="analyst",
    )
    assert [answer["allowed"] for answer in found] == [True, False, False]
    assert found[0]["translated"] == "SELECT a FROM t"


def test_bad_lines_are_answered_with_all_keys_when_judged() -> None:
    lines: list[object] = [
        b"not json",
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        [1, 2],
        {"sql": 5},
        {"sql": "SELECT 1", "dialect": "oracel"},
        {"sql": "\ud800"},
        {"sql": "SELECT " + "(" * 5_000},
        {"sql": "SELECT 1; DROP TABLE t"},
        {"sql": "x" * 3_000_000},
    ]
    found = judged(*lines, {"sql": "SELECT 1"}, translate_to="spark", role="analyst")
    assert len(found) == len(lines) + 1
    keys = [*KEYS, "translated", "translation_outcome", "allowed", "rule", "reason"]
    assert all(list(answer) == keys for answer in found)
    assert not any(answer["allowed"] for answer in found[:-1])
    assert all(answer["reason"] for answer in found[:-1])
    assert found[-1]["allowed"]


def test_role_or_dialect_that_does_not_exist_is_a_mistake_of_the_caller() -> None:
    for arguments in ({"translate_to": "oracel"}, {"role": "nobody"}):
        with pytest.raises(ConfigError, match=r"--translate-to|--guard"):
            judged({"sql": "SELECT 1"}, **arguments)
