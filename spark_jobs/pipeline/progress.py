"""What a run tells: progress lines while it works, one JSON report at its end."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(slots=True, kw_only=True)
class Stage:
    """One step of a run: what went in, what came out, how long.

    Attributes:
        name: e.g. `bronze`, `gold.template_hour`.
        tables: those it wrote to.
        rows_in: rows it read; None when counting them would cost more than it tells.
        rows_out: rows it wrote; likewise.
        seconds: how long it took.
        facts: what else is worth telling.
    """

    name: str
    tables: list[str] = field(default_factory=list)
    rows_in: int | None = None
    rows_out: int | None = None
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Report:
    """The whole run.

    Attributes:
        run_id: as in the plan.
        outcome: `ok` or `failed`.
        through: the last export that is in gold; None when there is none.
        stages: in order.
        recomputed: gold table → the hours (ISO 8601, UTC) or days computed anew.
        retries: commits that were tried again because another writer was faster.
        error: what went wrong.
    """

    run_id: str
    outcome: str = "failed"
    through: str | None = None
    seconds: float = 0.0
    stages: list[Stage] = field(default_factory=list)
    recomputed: dict[str, list[str]] = field(default_factory=dict)
    retries: int = 0
    error: str | None = None

    def write(self, path: Path) -> None:
        """Leave the report; it appears whole or not at all."""
        partial = path.with_name(f"{path.name}.partial")
        partial.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        partial.replace(path)


@dataclass(slots=True)
class Progress:
    """Prints `progress <n>/<total> <stage>` as stages begin; the reader shows it or logs it."""

    report: Report
    total: int
    done: int = 0

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time one stage and keep its figures in the report."""
        print(f"progress {self.done}/{self.total} {name}", flush=True)
        stage, started = Stage(name=name), time.monotonic()
        self.report.stages.append(stage)
        try:
            yield stage
        finally:
            stage.seconds = round(time.monotonic() - started, 3)
        self.done += 1
