"""The block of text that ends a start: where everything is, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.runtime.plan import GATEWAY, UI
from lakehouse_core.runtime.processes import State
from lakehouse_core.runtime.spark import spark_engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.config.models import Config
    from lakehouse_core.runtime.rundir import ProcessStatus


def summary(config: Config, processes: Sequence[ProcessStatus], took_seconds: float) -> str:
    """URLs of what runs, reasons for what does not, how to stop."""
    lines = ["", f"Lakehelm is up ({took_seconds:.0f} s)"]
    for process in sorted(processes, key=lambda p: p.name != UI):
        label = {UI: "pages"}.get(process.name, process.name)
        if process.state == State.READY.value and process.url:
            lines.append(f"  {label:<10}{process.url}{_note(config, process.name)}")
        elif process.state != State.READY.value:
            lines.append(f"  {label:<10}{process.state}: {process.detail or 'see its log'}")
    lines += [
        f"  {'logs':<10}{config.home / 'logs'}",
        "Ctrl-C stops it; from elsewhere: lakehelm down",
        "",
    ]
    return "\n".join(lines)


def _note(config: Config, name: str) -> str:
    spark = spark_engine(config)
    if spark is not None and spark[0] == name:
        return f"  (Spark Connect: sc://{spark[1].host}:{spark[1].port})"
    if name != GATEWAY:
        return ""
    sql = config.gateway.sql
    where = f"\n  {'SQL':<10}{sql.url}  (any Trino client)" if sql.enabled else ""
    if sql.enabled and sql.postgres_port is not None:
        place = f"-h {sql.host} -p {sql.postgres_port} {next(iter(config.catalogs))}"
        where += f"\n  {'':<10}psql {place}  (any PostgreSQL client)"
    return f"  (/livez /readyz /metrics){where}"
