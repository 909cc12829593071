"""`lakehelm config validate|show|schema`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


def test_validate_says_that_all_is_well(run: Run, good_config: str) -> None:
    ended = run("config", "validate", "--config", good_config)
    assert (ended.code, ended.out) == (0, "")
    assert "valid (profile demo, engines: duckdb)" in ended.err


def test_validate_tells_every_problem_without_a_traceback(run: Run, bad_config: str) -> None:
    ended = run("config", "validate", "--config", bad_config)
    assert ended.code == 2
    assert f"{bad_config}:4: ui.prot = 1: unknown key; did you mean port?" in ended.err
    assert 'logging.level = "loud"' in ended.err
    assert "Traceback" not in ended.err


def test_validate_tells_problems_as_data(run: Run, bad_config: str) -> None:
    ended = run("config", "validate", "--json", "--config", bad_config)
    assert ended.code == 2
    assert ended.data["valid"] is False
    assert [p["key"] for p in ended.data["problems"]] == ["ui.prot", "logging.level"]
    assert ended.data["problems"][0]["nearest"] == "port"


def test_validate_of_a_good_file_as_data(run: Run, good_config: str) -> None:
    ended = run("config", "validate", "--json", "--config", good_config)
    assert (ended.code, ended.data["valid"]) == (0, True)


def test_every_command_refuses_a_bad_file_with_code_2(run: Run, bad_config: str) -> None:
    ended = run("config", "show", "--config", bad_config)
    assert (ended.code, ended.out) == (2, "")


def test_show_gives_value_and_origin(
    run: Run, good_config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHELM__UI__PORT", "8600")
    rows = {r["key"]: r for r in run("config", "show", "--json", "--config", good_config).data}
    assert (rows["ui.port"]["value"], rows["ui.port"]["origin"]) == (8600, "LAKEHELM__UI__PORT")
    assert rows["engines.duckdb.catalog"]["origin"] == f"{good_config}:3"
    assert rows["gateway.admin_port"]["origin"] == "default"


def test_show_narrows_to_a_section(run: Run, good_config: str) -> None:
    data = run("config", "show", "ui", "--json", "--config", good_config).data
    assert [row["key"] for row in data] == ["ui.host", "ui.port"]


def test_show_of_an_unknown_section_is_a_usage_error(run: Run, good_config: str) -> None:
    assert run("config", "show", "nope", "--config", good_config).code == 2


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_show_never_prints_a_secret(
    run: Run,
    good_config: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: tuple[str, ...],
) -> None:
    monkeypatch.setenv("WRITER", "hunter2")
    (tmp_path / "reader").write_text("hunter2")
    monkeypatch.setenv("LAKEHELM__STORE__WRITER_TOKEN", "env:WRITER")
    monkeypatch.setenv("LAKEHELM__STORE__READER_TOKEN", f"file:{tmp_path}/reader")
    ended = run("config", "show", "store", "--config", good_config, *form)
    assert "env:WRITER" in ended.out
    assert "hunter2" not in ended.out + ended.err


def test_schema_is_the_checked_in_one(run: Run, repository: Path) -> None:
    ended = run("config", "schema")
    assert json.loads(ended.out) == json.loads((repository / "config/schema.json").read_text())
