"""`lakehelm config`: is it right, what does it say, what may it say."""

from __future__ import annotations

from typing import Annotated

import typer

from lakehouse_core.cli.output import ConfigFile, ExitCode, JsonFlag, Output, QuietFlag, load
from lakehouse_core.config.problems import InvalidConfigError
from lakehouse_core.config.schema import json_schema
from lakehouse_core.config.show import settings

app = typer.Typer(no_args_is_help=True, help="Check and show the configuration.")


@app.command()
def validate(json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None) -> None:
    """Check the configuration; every problem is told at once (exit code 2 when there is one)."""
    out = Output(json=json, quiet=quiet)
    try:
        loaded = load(config)
    except InvalidConfigError as error:
        if not out.is_json:
            raise
        out.record({"valid": False, "file": error.file, "problems": error.problems})
        raise typer.Exit(ExitCode.USAGE) from error
    if out.is_json:
        out.record({"valid": True, "file": loaded.path, "problems": []})
    engines = ", ".join(loaded.config.engines) or "none"
    out.say(f"{loaded.path}: valid (profile {loaded.config.profile}, engines: {engines})")


@app.command()
def show(
    section: Annotated[
        str | None, typer.Argument(help="Only keys that start with this, e.g. engines.trino.")
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Show the merged configuration: each value and where it came from; secrets are masked."""
    out = Output(json=json, quiet=quiet)
    loaded = load(config)
    rows = [s for s in settings(loaded) if _is_below(s.key, section)]
    if not rows:
        out.warn(f"no key starts with {section}; see `lakehelm config show`")
        raise typer.Exit(ExitCode.USAGE)
    out.rows(rows, columns=("key", "value", "origin"), title=str(loaded.path))


@app.command()
def schema(json: JsonFlag = False) -> None:
    """Print the JSON schema of the configuration file (checked in as config/schema.json)."""
    del json  # it never prints anything else
    Output().text(json_schema())


def _is_below(key: str, section: str | None) -> bool:
    return section is None or key == section or key.startswith((f"{section}.", f"{section}["))
