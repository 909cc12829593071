"""`lakehelm store`: is it sound, copy it, put a copy back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lakehouse_core.cli.output import ConfigFile, ExitCode, JsonFlag, Output, QuietFlag, load
from lakehouse_core.config.units import format_bytes_unit
from lakehouse_core.store import backup as care

app = typer.Typer(no_args_is_help=True, help="Check, back up and restore the telemetry store.")


@app.command()
def check(json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None) -> None:
    """Read the whole store once, through its owner when it runs (exit code 1 when it is sick)."""
    out = Output(json=json, quiet=quiet)
    found = care.check(load(config).config)
    if out.is_json:
        out.record(found)
    else:
        rows = [{"table": name, "rows": count} for name, count in found.rows.items()]
        if rows:
            out.rows(rows, title=str(found.path))
        out.say(
            f"{found.path}: {found.state}, schema version {found.schema_version or 'unknown'}, "
            f"{format_bytes_unit(found.bytes)}, {found.spool_batches} batches to replay, "
            f"newest backup: {found.newest_backup or 'none'}"
        )
        for problem in found.problems:
            out.warn(problem)
    if not found.ok:
        raise typer.Exit(ExitCode.FAILURE)


@app.command()
def backup(json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None) -> None:
    """Copy the store as it is at one moment; the owner may run meanwhile. Prints the new file."""
    out = Output(json=json, quiet=quiet)
    made = care.backup(load(config).config)
    if out.is_json:
        out.record({"path": made, "bytes": made.stat().st_size})
    else:
        out.text(str(made))


@app.command()
def restore(
    path: Annotated[Path, typer.Argument(help="The backup to put in place of the store.")],
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Replace the store by a backup; stop the owner first. The replaced file is kept beside it."""
    out = Output(json=json, quiet=quiet)
    done = care.restore(load(config).config, path)
    if out.is_json:
        out.record(done)
    out.say(f"restored {done.restored_from} (schema version {done.schema_version})")
    if done.replaced:
        out.say(f"the replaced store is kept as {done.replaced}")
