"""Where commands print, and how."""

from __future__ import annotations

import json

import pytest

from lakehouse_core.cli.output import ExitCode, Output, exit_code
from lakehouse_core.domain.errors import (
    ConfigError,
    EngineUnavailableError,
    LakehouseError,
    NotInstalledError,
    QueryFailedError,
    SourceUnavailableError,
    StoreCorruptError,
    StoreUnavailableError,
)
from tests.factories import engine_probe


def test_json_puts_data_on_standard_output_and_talk_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = Output(json=True)
    out.say("looking")
    out.rows([engine_probe()], columns=("engine_id",))
    captured = capsys.readouterr()
    assert captured.err == "looking\n"
    assert json.loads(captured.out)[0]["version"] == "1.5.5"


def test_table_shows_chosen_columns_in_order_and_unknown_as_such(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Output().rows([engine_probe(detail=None)], columns=("observed", "detail"), title="Engines")
    lines = capsys.readouterr().out.splitlines()
    assert "Engines" in lines[0]
    assert [cell.strip() for cell in lines[2].split("┃")[1:3]] == ["observed", "detail"]
    assert [cell.strip() for cell in lines[4].split("│")[1:3]] == ["healthy", "-"]


def test_long_values_are_not_cut_when_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    Output().record({"sql": "SELECT " + "x" * 150})
    assert "x" * 150 in capsys.readouterr().out


def test_a_field_asked_for_in_one_line_is_cut_in_the_table_and_whole_in_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [{"id": "a", "sql": "SELECT 1, " * 100}]
    Output().rows(rows, one_line=("sql",))
    table = capsys.readouterr().out
    assert "…" in table
    assert len([line for line in table.splitlines() if "SELECT" in line]) == 1
    Output(json=True).rows(rows, one_line=("sql",))
    assert json.loads(capsys.readouterr().out) == rows


def test_a_long_field_in_one_line_leaves_the_others_their_room(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = {"engine": "duckdb", "runs": 1234, "template": "SELECT " + "x, " * 300}
    Output().rows([row], one_line=("template",))
    shown = capsys.readouterr().out
    assert "duckdb" in shown
    assert "1234" in shown
    assert "…" in shown


def test_markup_in_values_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    Output().rows([{"sql": "SELECT a[1] /* [bold]no[/bold] */"}])
    assert "SELECT a[1] /* [bold]no[/bold] */" in capsys.readouterr().out


def test_nothing_to_show_is_said_and_is_an_empty_list_in_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Output().rows([], title="Queries")
    assert capsys.readouterr().err == "Queries: nothing to show\n"
    Output(json=True).rows([])
    assert json.loads(capsys.readouterr().out) == []


def test_quiet_hushes_talk_but_not_warnings_and_data(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(quiet=True)
    out.say("looking")
    out.warn("one engine is away")
    out.line({"a": 1})
    captured = capsys.readouterr()
    assert captured.err == "lakehelm: one engine is away\n"
    assert captured.out == '{"a": 1}\n'


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError, ExitCode.USAGE),
        (StoreUnavailableError, ExitCode.UNREACHABLE),
        (SourceUnavailableError, ExitCode.UNREACHABLE),
        (EngineUnavailableError, ExitCode.UNREACHABLE),
        (NotInstalledError, ExitCode.UNREACHABLE),
        (QueryFailedError, ExitCode.FAILURE),
        (StoreCorruptError, ExitCode.FAILURE),
    ],
)
def test_error_ends_with_the_code_of_its_kind(error: type[LakehouseError], code: ExitCode) -> None:
    assert exit_code(error("it failed")) is code
