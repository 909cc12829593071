"""`lakehelm pipeline run|status`: carry telemetry into the lake now; how far it is."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from lakehouse_core.cli.output import ConfigFile, JsonFlag, Output, QuietFlag, load

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.pipeline.service import PipelineReport
    from lakehouse_core.runtime.jobs import Progress
    from lakehouse_core.store.port import TelemetryStore

app = typer.Typer(no_args_is_help=True, help="Query history as Iceberg tables, and figures of it.")

_STAGE_COLUMNS = ("name", "rows_in", "rows_out", "seconds", "tables")


@app.command("run")
def run(json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None) -> None:
    """Export what is new, run the Spark job, load gold; progress on standard error.

    Exit code 0: done, or nothing new; 1: a stage failed; 3: another run is under way, or something
    it needs is missing.
    """
    from agents.logs import log_to_stderr  # noqa: PLC0415 keeps --help fast
    from agents.once import writing_store  # noqa: PLC0415 as above

    log_to_stderr()
    out = Output(json=json, quiet=quiet)
    settings = load(config).config
    with writing_store(settings) as store:
        report = _run(settings, store, out)
    record = asdict(report)
    if out.is_json:
        out.record(record)
        return
    if report.outcome == "nothing_new":
        out.say(
            f"Nothing new since {report.exported_at or 'ever'} ({report.seconds * 1000:.0f} ms)"
        )
        return
    out.rows(record["stages"], columns=_STAGE_COLUMNS, title=f"Pipeline run {report.run_id}")
    out.say(f"{report.rows} rows in {len(report.exports)} exports, {report.seconds:.0f} s")


@app.command("status")
def status(json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None) -> None:
    """How far the pipeline is: what waits, what gold holds, its tables."""
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.pipeline.landing import Landing  # noqa: PLC0415 as above
    from lakehouse_core.pipeline.state import read_state  # noqa: PLC0415 as above
    from lakehouse_core.views.processed import read_processed  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    settings = load(config).config
    state = read_state(settings)
    with open_store(settings) as store:
        processed = read_processed(store)
    waiting = [
        one
        for one in Landing(settings.pipeline.landing).exports()
        if state.through is None or one.id > state.through
    ]
    record = {
        "enabled": settings.pipeline.enabled,
        "every_seconds": settings.pipeline.every,
        "through": state.through,
        "exported_at": processed.exported_at,
        "loaded_at": processed.loaded_at,
        "waiting_exports": len(waiting),
        "waiting_rows": sum(one.rows for one in waiting),
    }
    tables = [_table(settings, name, table) for name, table in sorted(state.tables.items())]
    if out.is_json:
        out.record(record | {"tables": tables})
        return
    out.record(record, title="Pipeline")
    out.rows(tables, title=f"Tables in {settings.pipeline.catalog}.{settings.pipeline.namespace}")


def _run(settings: Config, store: TelemetryStore, out: Output) -> PipelineReport:
    from agents.runs import Result, record_run  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.config.environment import read_machine  # noqa: PLC0415 as above
    from lakehouse_core.domain.clock import utc_now  # noqa: PLC0415 as above
    from lakehouse_core.domain.errors import LakehouseError  # noqa: PLC0415 as above
    from lakehouse_core.pipeline.service import Surroundings, run_pipeline  # noqa: PLC0415 as above

    def tell(progress: Progress) -> None:
        out.say(f"{progress.done}/{progress.total} {progress.what}")

    around = Surroundings(machine=read_machine(), clock=utc_now, on_progress=tell)
    reports: list[PipelineReport] = []
    errors: list[LakehouseError] = []

    def work() -> Result:
        try:
            reports.append(run_pipeline(settings, store, around))
        except LakehouseError as error:
            errors.append(error)
            raise
        return Result(rows=reports[0].rows)

    record = record_run(store, utc_now, "pipeline", work)
    if reports:
        return reports[0]
    raise errors[0] if errors else LakehouseError(record.error or "the pipeline failed")


def _table(settings: Config, name: str, table: Any) -> dict[str, Any]:
    summary = table.current.summary if table.current else {}
    return {
        "table": f"{settings.pipeline.catalog}.{settings.pipeline.namespace}.{name}",
        "rows": _number(summary.get("total-records")),
        "data_files": _number(summary.get("total-data-files")),
        "delete_files": _number(summary.get("total-delete-files")),
        "bytes": _number(summary.get("total-files-size")),
        "snapshots": len(table.snapshots),
        "snapshot_id": table.current.snapshot_id if table.current else None,
    }


def _number(text: str | None) -> int | None:
    return int(text) if text is not None else None
