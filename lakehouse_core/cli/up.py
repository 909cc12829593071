"""`lakehelm up`, `down` and `doctor`: run the product, stop it, check the machine for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakehouse_core.cli.output import (
    GLOBAL_OPTIONS,
    ConfigFile,
    ExitCode,
    GlobalOptions,
    JsonFlag,
    Output,
    QuietFlag,
    load,
)
from lakehouse_core.config.environment import read_machine
from lakehouse_core.config.loader import config_path
from lakehouse_core.domain.errors import ConfigError

if TYPE_CHECKING:
    from lakehouse_core.runtime.report import Reporter


def up(  # noqa: PLR0913, PLR0917 one option each
    profile: Annotated[
        str | None,
        typer.Option(help="Profile to run: config/NAME.yaml; `demo` is config/lakehelm.yaml."),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="Engine to leave out; may be given several times.")
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(help="Scale of the demo lake: 0.1 is about 100 MB of TPC-H.", min=0.001),
    ] = None,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Drop a demo lake of another scale and build it anew."),
    ] = False,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Start and supervise engines, agents, gateway and pages; Ctrl-C stops all of it.

    With --json one object is printed when everything is up: each process, its state and its URL.
    """
    from lakehouse_core.runtime.summary import summary  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.runtime.up import Started, UpOptions, run_up  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)

    def show(started: Started) -> None:
        if out.is_json:
            out.record({"seconds": started.seconds, "processes": started.processes})
        else:
            out.text(summary(started.config, started.processes, started.seconds))

    options = UpOptions(
        config=_profile_file(profile, config),
        without=tuple(without or ()),
        scale=scale,
        rebuild=rebuild,
    )
    try:
        run_up(options, read_machine().variables, _reporter(out), show)
    except KeyboardInterrupt:
        out.say("Stopped before anything was started")
        raise typer.Exit(130) from None


def down(json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None) -> None:
    """Stop what `lakehelm up` started for this configuration's home."""
    from lakehouse_core.runtime.up import stop_running  # noqa: PLC0415 keeps --help fast

    out = Output(json=json, quiet=quiet)
    home = load(config).config.home
    was_running = stop_running(home, _reporter(out))
    if out.is_json:
        out.record({"home": home, "stopped": was_running})
    out.say("Stopped" if was_running else f"Nothing runs on {home}")


def doctor(json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None) -> None:
    """Check Python, Java, downloads, ports, disk, catalog, engines and store; say what to fix."""
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.runtime.doctor import examine  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    given = config or GLOBAL_OPTIONS.get(GlobalOptions()).config
    checks = examine(config_path(given), read_machine(), open_store)
    out.rows(checks, columns=("status", "id", "found", "fix"), title="Doctor")
    if any(check.status == "fail" for check in checks):
        raise typer.Exit(ExitCode.FAILURE)


def _profile_file(profile: str | None, config: Path | None) -> Path | None:
    given = config or GLOBAL_OPTIONS.get(GlobalOptions()).config
    if profile is None:
        return given
    base = config_path(given)
    file = base if given or profile == "demo" else base.with_name(f"{profile}.yaml")
    if not file.exists() and file != base:
        raise ConfigError(f"--profile {profile}: there is no {file}")
    found = load(file).config.profile
    if found != profile:
        raise ConfigError(f"--profile {profile}: {file} is the profile {found}")
    return file


def _reporter(out: Output) -> Reporter:
    from lakehouse_core.runtime.report import (  # noqa: PLC0415 keeps --help fast
        PlainReporter,
        RichReporter,
        SilentReporter,
    )

    if out.is_quiet:
        return SilentReporter()
    if sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 only a terminal needs it

        return RichReporter(Console(stderr=True))
    return PlainReporter(out.say)
