"""The command as a whole: its commands, its global options, its ends."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer

from lakehouse_core.cli.main import ENTRIES, Entry, load_command
from lakehouse_core.cli.output import ConfigFile, JsonFlag, Output, load
from lakehouse_core.domain.errors import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.cli.conftest import Run

main_module = importlib.import_module("lakehouse_core.cli.main")  # the package exports main()
HEAVY = (
    "duckdb",
    "pandas",
    "pyarrow",
    "pyiceberg",
    "pyspark",
    "sqlglot",
    "streamlit",
)


def leaves(entry: Entry) -> Iterator[tuple[str, Any]]:
    """What can be called, with its words: `store check`."""
    waiting = [(entry.name, load_command(entry))]
    while waiting:
        name, command = waiting.pop()
        below = getattr(command, "commands", {})
        if not below or command.invoke_without_command:
            yield name, command
        waiting += [(f"{name} {word}", one) for word, one in below.items()]


def test_help_names_every_command(run: Run) -> None:
    ended = run("--help")
    assert ended.code == 0
    assert [entry.name for entry in ENTRIES if entry.name not in ended.out] == []


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from lakehouse_core.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_command_loads_and_explains_itself(run: Run, entry: Entry) -> None:
    assert load_command(entry).name == entry.name
    ended = run(entry.name, "--help")
    assert ended.code == 0
    assert f"lakehelm {entry.name}" in ended.out


def test_every_command_can_print_json() -> None:
    """Also those whose answer is a word: what calls them reads one format."""
    commands = {name: command for entry in ENTRIES for name, command in leaves(entry)}
    assert len(commands) > 50
    assert [
        name
        for name, command in commands.items()
        if not any("--json" in option.opts for option in command.params)
    ] == []


def test_a_command_stands_where_people_look_for_it() -> None:
    panels = {entry.name: entry.panel for entry in ENTRIES}
    assert {panels[name] for name in ("recommend", "maintain", "layout", "audit")} == {"Care"}
    assert {panels[name] for name in ("cost", "export")} == {"Spend"}


def test_version_is_printed(run: Run) -> None:
    ended = run("--version")
    assert (ended.code, ended.out.split()[0]) == (0, "lakehelm")


def test_misspelt_command_is_a_usage_error_with_the_nearest_name(run: Run) -> None:
    ended = run("confg")
    assert ended.code == 2
    assert "config" in ended.err
    assert ended.out == ""


def test_unknown_option_is_a_usage_error(run: Run) -> None:
    assert run("config", "show", "--nope").code == 2


@pytest.fixture
def with_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mount commands that end in the ways a command can end."""

    def trouble(kind: str, json: JsonFlag = False, config: ConfigFile = None) -> None:
        if kind == "unreachable":
            raise StoreUnavailableError("the store's owner does not answer on 127.0.0.1:9494")
        if kind == "bug":
            raise RuntimeError("this is a bug")
        if kind == "partial":
            raise typer.Exit(4)
        if kind == "interrupted":
            raise KeyboardInterrupt
        Output(json=json).record({"profile": load(config).config.profile})

    monkeypatch.setattr(main_module, "trouble", trouble, raising=False)
    entry = Entry("trouble", "main", "trouble", "Make trouble.", "Run")
    monkeypatch.setattr(main_module, "ENTRIES", (*ENTRIES, entry))


@pytest.mark.usefixtures("with_command")
@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("unreachable", 3, "lakehelm: the store's owner does not answer on 127.0.0.1:9494\n"),
        ("bug", 1, "lakehelm: internal error: RuntimeError: this is a bug (--debug shows where)\n"),
        ("partial", 4, ""),
        ("interrupted", 130, ""),
    ],
)
def test_command_ends_with_its_code_and_one_line(
    run: Run, kind: str, code: int, message: str
) -> None:
    ended = run("trouble", kind)
    assert (ended.code, ended.out, ended.err) == (code, "", message)


@pytest.mark.usefixtures("with_command")
@pytest.mark.parametrize("args", [("--debug", "trouble", "bug"), ("trouble", "bug", "--debug")])
def test_debug_shows_where_it_happened(run: Run, args: tuple[str, ...]) -> None:
    ended = run(*args)
    assert ended.code == 1
    assert "Traceback" in ended.err
    assert "in trouble" in ended.err


@pytest.mark.usefixtures("with_command")
def test_options_may_stand_before_or_after_the_command(run: Run, good_config: str) -> None:
    after = run("trouble", "none", "--json", "--config", good_config)
    before = run("--json", "--config", good_config, "trouble", "none")
    assert after.data == before.data == {"profile": "demo"}
