"""`lakehelm audit`: whether the record of who decided and did what is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from lakehouse_core.cli.output import (
    ConfigFile,
    ExitCode,
    JsonFlag,
    Output,
    QuietFlag,
    after_group,
    load,
)

if TYPE_CHECKING:
    from lakehouse_core.maintenance.audit import ChainVerdict

app = typer.Typer(no_args_is_help=True, help="The record of who decided and did what.")


@app.callback()
def audit(
    ctx: typer.Context, json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None
) -> None:
    """The record of who decided and did what."""
    ctx.obj = (json, quiet, config)


@app.command("verify")
def audit_verify(
    ctx: typer.Context, json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None
) -> None:
    """Check every row of the audit chain. Exit code 1 when one was changed, removed or cut off."""
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.recommendations import verify_audit  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    settings = load(file).config
    with open_store(settings) as store:
        verdict = verify_audit(store, settings.store.path)
    _tell(out, verdict)


def _tell(out: Output, verdict: ChainVerdict) -> None:
    if out.is_json:
        out.record(verdict)
    elif verdict.is_intact:
        out.say(f"The audit chain is whole: {verdict.entries:,} rows")
    else:
        out.warn(f"The audit chain is broken. {verdict.problem}")
    if not verdict.is_intact:
        raise typer.Exit(ExitCode.FAILURE)
