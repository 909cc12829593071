"""`lakehelm demo`: the demo lakehouse and the people who work with it."""

from __future__ import annotations

import json as json_module
import signal
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.cli.output import ConfigFile, JsonFlag, Output, QuietFlag, load
from lakehouse_core.domain.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse_core.config import Config
    from lakehouse_core.demo.runner import Target

# What two cores bear with three engines on them, and a compaction beside it, before queues grow.
READS_PER_SECOND = 0.5

app = typer.Typer(no_args_is_help=True, help="Build the demo lakehouse; run a workload on it.")


@app.command()
def build(
    scale: Annotated[
        float | None, typer.Option(help="TPC-H scale factor; 0.1 is about 100 MB.", min=0.001)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same rows.")] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Build the demo lakehouse with Spark, unless it is there already."""
    from lakehouse_core.config.environment import read_machine  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.runtime.artifacts import SPARK_JARS, ensure  # noqa: PLC0415 as above
    from lakehouse_core.runtime.demo_lake import (  # noqa: PLC0415 as above
        build_demo_lake,
        demo_lake_command,
    )
    from lakehouse_core.runtime.java import find_javas, java_for_spark  # noqa: PLC0415 as above
    from lakehouse_core.runtime.report import PlainReporter, SilentReporter  # noqa: PLC0415 same

    out = Output(json=json, quiet=quiet)
    reporter = SilentReporter() if out.is_quiet else PlainReporter(out.say)
    settings = load(config).config
    given = {k: v for k, v in {"scale": scale, "seed": seed}.items() if v is not None}
    settings = settings.model_copy(update={"demo": settings.demo.model_copy(update=given)})
    machine = read_machine()
    java = java_for_spark(find_javas(machine))
    ensure(machine, SPARK_JARS, reporter)
    command = demo_lake_command(settings, machine, java)
    log = settings.home / "logs" / "demo-lake.log"
    build_demo_lake(command, machine.variables, log, reporter)
    out.record(_built(settings), title="Demo lake")


@app.command()
def workload(  # noqa: PLR0913, PLR0917 one option each
    minutes: Annotated[float | None, typer.Option(help="How long.", min=0.01)] = None,
    forever: Annotated[bool, typer.Option("--forever", help="Until it is stopped.")] = False,
    rate: Annotated[
        float, typer.Option(help="Reading statements per second, over all engines.", min=0.01)
    ] = READS_PER_SECOND,
    engines: Annotated[
        str | None,
        typer.Option(
            help="Engines to use, by commas, and nothing else. "
            "[default: all enabled, and the gateway's SQL endpoint]"
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same statements.")] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Run dashboards, analysts and pipelines on the engines and the SQL endpoint, for real."""
    from lakehouse_core.bootstrap import open_engine  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.demo.endpoint import NAME as ENDPOINT  # noqa: PLC0415 as above
    from lakehouse_core.demo.plan import PlanSettings, plan  # noqa: PLC0415 as above
    from lakehouse_core.demo.runner import Workload  # noqa: PLC0415 as above
    from lakehouse_core.domain.clock import utc_now  # noqa: PLC0415 as above

    if (minutes is None) != forever:
        raise typer.BadParameter("give either --minutes N or --forever")
    out = Output(json=json, quiet=quiet)
    settings = load(config).config
    anchor = datetime.fromisoformat(_built(settings)["anchor"])
    names = engines.split(",") if engines else _enabled(settings)
    adapters = {name.strip(): open_engine(settings, name.strip()) for name in names}
    endpoint = {} if engines else _endpoint(settings, out)
    run = Workload({**adapters, **endpoint}, out.say)
    steps = plan(
        PlanSettings(
            engines={name: adapter.capabilities for name, adapter in adapters.items()},
            seed=settings.demo.seed if seed is None else seed,
            rate_per_second=rate,
            anchor=anchor,
            clock=utc_now,
            endpoint=ENDPOINT if endpoint else None,
        )
    )
    out.say(f"Running {', '.join((*adapters, *endpoint))}; Ctrl-C stops it")
    with _on_signals(run.stop):
        tallies = run.run(steps, None if minutes is None else minutes * 60)
    out.rows(tallies, title="Workload")


@contextmanager
def _on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the run in an orderly way."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stop()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _enabled(settings: Config) -> list[str]:
    from lakehouse_core.config.models import HistoryOnlyEngine  # noqa: PLC0415 keeps --help fast

    return [
        name
        for name, engine in settings.engines.items()
        if engine.enabled and not isinstance(engine, HistoryOnlyEngine)
    ]


def _endpoint(settings: Config, out: Output) -> dict[str, Target]:
    """The gateway's SQL endpoint under its name, when people can use it; else says why not."""
    from lakehouse_core.demo.endpoint import NAME, open_endpoint  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.domain.clock import utc_now  # noqa: PLC0415 as above

    found = open_endpoint(settings.gateway.sql, utc_now)
    if isinstance(found, str):
        out.say(f"Without the SQL endpoint, everybody asks the engines directly: {found}")
        return {}
    return {NAME: found}


def _built(settings: Config) -> dict[str, Any]:
    """What was built, from the marker of the lake."""
    from lakehouse_core.runtime.demo_lake import marker_path  # noqa: PLC0415 keeps --help fast

    try:
        marker = json_module.loads(marker_path(settings).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError) as error:
        raise NotFoundError(
            f"There is no demo lake in {settings.home}: build it with `lakehelm demo build`"
        ) from error
    return dict(marker)
