"""The one way commands print: data on standard output, talk on standard error.

def engines(json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None) -> None:
    out = Output(json=json, quiet=quiet)
    out.say("3 engines")           # standard error, hushed by --quiet
    out.rows(view.engines(), title="Engines")
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.cli.encoding import to_json, to_plain
from lakehouse_core.domain.errors import (
    ConfigError,
    FilterError,
    LakehouseError,
    NotInstalledError,
    Transient,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from lakehouse_core.config import Loaded

NOTHING = "-"  # how a table shows a value that nobody knows; never 0
_LEAST_WIDTH, _MOST_WIDTH = 20, 40  # of a column beside others
_WIDTH_WITHOUT_TERMINAL = 200

JsonFlag = Annotated[bool, typer.Option("--json", help="Print data as JSON on standard output.")]
QuietFlag = Annotated[bool, typer.Option("--quiet", "-q", help="Print data and errors only.")]
Actor = Annotated[
    str | None, typer.Option("--as", help="Who decides. [default: the name you are logged in with]")
]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; it is kept.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="Configuration file. [default: $LAKEHELM_CONFIG or ./config/lakehelm.yaml]",
        show_default=False,
    ),
]


class ExitCode(IntEnum):
    """What a command's end means to a script."""

    OK = 0
    FAILURE = 1  # it failed, or it found what it was asked to look for
    USAGE = 2  # the command line or the configuration is wrong
    UNREACHABLE = 3  # we do not run, or what it depends on does not answer or is not installed
    PARTIAL = 4  # some of it worked


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """Options given before the command: `lakehelm --json --config x.yaml engines`."""

    json: bool = False
    quiet: bool = False
    config: Path | None = None


# One command line per context; a ContextVar so that tests cannot leak into each other.
GLOBAL_OPTIONS: ContextVar[GlobalOptions] = ContextVar("lakehelm_options")


class Output:
    """Prints for one command."""

    def __init__(self, *, json: bool = False, quiet: bool = False) -> None:
        given = GLOBAL_OPTIONS.get(GlobalOptions())
        self.is_json = json or given.json
        self.is_quiet = quiet or given.quiet

    def say(self, text: str) -> None:
        """Tell the user something; hushed by `--quiet`."""
        if not self.is_quiet:
            typer.echo(text, err=True)

    def warn(self, text: str) -> None:
        """Tell the user something that must not be missed; not hushed."""
        typer.echo(f"lakehelm: {text}", err=True)

    def rows(
        self,
        rows: Any,
        *,
        columns: Sequence[str] | None = None,
        one_line: Sequence[str] = (),
        title: str | None = None,
    ) -> None:
        """Print records (dataclasses, mappings or a `pyarrow.Table`).

        Args:
            rows: the records.
            columns: which fields the table shows, in this order; JSON always has all of them.
            one_line: fields the table cuts to what fits into one line.
            title: heading of the table.
        """
        plain = to_plain(rows)
        if self.is_json:
            typer.echo(to_json(plain))
            return
        names = list(columns) if columns else _names(plain)
        if not plain:
            self.say(f"{title or 'Result'}: nothing to show")
            return
        self._table(names, ([row.get(name) for name in names] for row in plain), title, one_line)

    def record(self, record: Any, *, title: str | None = None) -> None:
        """Print one record: a JSON object, or a table of its fields."""
        plain = to_plain(record)
        if self.is_json:
            typer.echo(to_json(plain))
            return
        self._table(["field", "value"], ([k, v] for k, v in plain.items()), title)

    def line(self, record: Any) -> None:
        """Print one record as one line of JSON, for commands that stream."""
        typer.echo(to_json(record, indent=None))

    def text(self, text: str) -> None:
        """Print a text that is itself the data."""
        typer.echo(text, nl=not text.endswith("\n"))

    def _table(
        self,
        names: Sequence[str],
        rows: Iterable[Sequence[object]],
        title: str | None,
        one_line: Sequence[str] = (),
    ) -> None:
        from rich.table import Table  # noqa: PLC0415 keeps --help fast
        from rich.text import Text  # noqa: PLC0415 as above

        table = Table(title=title, title_justify="left", header_style="bold")
        cells = [list(row) for row in rows]
        room = _room(names, cells, one_line)
        for index, name in enumerate(names):
            is_number = all(_is_number(row[index]) for row in cells)
            is_cut = name in one_line
            table.add_column(
                name.replace("_", " "),
                justify="right" if is_number else "left",
                overflow="ellipsis" if is_cut else "fold",
                no_wrap=is_cut,
                max_width=room if is_cut else None,
            )
        for row in cells:
            table.add_row(*(Text(_cell(value)) for value in row))
        _console().print(table)


def _room(names: Sequence[str], cells: Sequence[Sequence[object]], cut: Sequence[str]) -> int:
    """How wide a column that is cut may be: Rich would take all of its room from the others."""
    others = [
        max(len(name), *(len(_cell(row[index])) for row in cells))
        for index, name in enumerate(names)
        if name not in cut
    ]
    taken = sum(min(width, _MOST_WIDTH) for width in others) + 3 * len(names) + 1
    number = max(1, len(names) - len(others))
    return max(_LEAST_WIDTH, (_console().width - taken) // number)


def load(config: Path | None = None) -> Loaded:
    """Load the configuration for a command, from its own `--config` or the one before it."""
    from lakehouse_core.config import load_config  # noqa: PLC0415 keeps --help fast

    return load_config(config or GLOBAL_OPTIONS.get(GlobalOptions()).config)


def after_group(
    ctx: typer.Context, json: bool, quiet: bool, config: Path | None
) -> tuple[Output, Path | None]:
    """The options of a command of a group: those given behind the group's name count as well.

    `lakehelm tables --json show NAME` means the same as `lakehelm tables show NAME --json`; the
    group's callback has left its options in `ctx.obj`.
    """
    above_json, above_quiet, above_config = ctx.obj or (False, False, None)
    return Output(json=json or above_json, quiet=quiet or above_quiet), config or above_config


def exit_code(error: LakehouseError) -> ExitCode:
    """The exit code an error of ours stands for."""
    if isinstance(error, ConfigError | FilterError):
        return ExitCode.USAGE
    if isinstance(error, Transient | NotInstalledError):
        return ExitCode.UNREACHABLE
    return ExitCode.FAILURE


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415 keeps --help fast

    return Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL)


def _names(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: object) -> str:
    if value is None or value == []:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1_000 else f"{value:.0f}"
    if isinstance(value, list):
        return ", ".join(_cell(item) for item in value)
    return to_json(value, indent=None) if isinstance(value, dict) else str(value)
