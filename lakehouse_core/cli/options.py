"""Options and arguments that several commands have: what they are called, and what help says.

Those of every command (`--json`, `--quiet`, `--config`) are in `output`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from lakehouse_core.views.window import EXAMPLES

WindowOption = Annotated[str, typer.Option("--window", help=f"The time to look at: {EXAMPLES}.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many.")]
OffsetOption = Annotated[int, typer.Option("--offset", min=0, help="Leave out so many.")]

EngineOption = Annotated[str | None, typer.Option("--engine", help="Only this engine.")]
UserOption = Annotated[str | None, typer.Option("--user", help="Only this user.")]
TableOption = Annotated[str | None, typer.Option("--table", help="Only this table.")]
TemplateOption = Annotated[str | None, typer.Option("--template", help="Only this template.")]
WorkloadOption = Annotated[str | None, typer.Option("--workload", help="Only this workload.")]
TeamOption = Annotated[str | None, typer.Option("--team", help="Only this team.")]
CenterOption = Annotated[str | None, typer.Option("--cost-center", help="Only this cost center.")]

ByOption = Annotated[
    str,
    typer.Option(
        "--by",
        help="One or two of: engine, workload, team, cost_center, user, table, template, source, "
        "statement, kind, meter, resource, basis.",
    ),
]
CurrencyOption = Annotated[
    str | None, typer.Option("--currency", help="Default: the one most was spent in.")
]

TableArgument = Annotated[str, typer.Argument(help="A table, e.g. lake.demo.events.")]
TableEnd = Annotated[str, typer.Argument(help="e.g. lake.demo.events; its end is enough.")]


def dimensions(by: str) -> tuple[str, ...]:
    """What `--by` names."""
    return tuple(name.strip() for name in by.split(",") if name.strip())
