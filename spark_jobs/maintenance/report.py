"""What a run tells: progress lines, and a JSON report that is whole after every action."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_jobs.maintenance.outcome import Outcome


@dataclass(slots=True, kw_only=True)
class Check:
    """One comparison: what should be, what is."""

    name: str
    expected: Any
    found: Any
    ok: bool


@dataclass(slots=True, kw_only=True)
class StageReport:
    """One step of an action: how long it took and what is worth telling."""

    name: str
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class ActionReport:
    """One action.

    Attributes:
        action_id: as in the plan.
        outcome: how it ended.
        error: what went wrong, or why it was refused.
        base_snapshot_id: the table's snapshot when the action began.
        result_snapshot_id: the last snapshot that the action made.
        commits: all snapshots it made, oldest first.
        compared: those of them whose rows were compared with the rows before, whatever was found.
        rolled_back: the table was taken back to what it was before.
        checks: the comparisons made afterwards.
        figures: `before` and `after`: data_files, total_bytes, delete_files, …
        stages: in order.
    """

    action_id: str
    outcome: Outcome = "failed"
    error: str | None = None
    base_snapshot_id: int | None = None
    result_snapshot_id: int | None = None
    commits: list[int] = field(default_factory=list)
    compared: list[int] = field(default_factory=list)
    rolled_back: bool = False
    checks: list[Check] = field(default_factory=list)
    figures: dict[str, dict[str, float]] = field(
        default_factory=lambda: {"before": {}, "after": {}}
    )
    stages: list[StageReport] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """The whole run; what it tells at once goes to standard output."""

    run_id: str
    path: Path
    total: int
    outcome: str = "failed"
    error: str | None = None
    actions: list[ActionReport] = field(default_factory=list)
    done: int = 0

    def write(self) -> None:
        """Leave the report; it appears whole or not at all, also when the power goes."""
        document = {
            "run_id": self.run_id,
            "outcome": self.outcome,
            "error": self.error,
            "actions": [asdict(action) for action in self.actions],
        }
        partial = self.path.with_name(f"{self.path.name}.partial")
        with partial.open("w", encoding="utf-8") as target:
            json.dump(document, target, indent=2, default=str)
            target.write("\n")
            target.flush()
            os.fsync(target.fileno())
        partial.replace(self.path)

    def say(self, what: str) -> None:
        """Tell what begins now."""
        print(f"progress {self.done}/{self.total} {what}", flush=True)

    @contextmanager
    def step(self, action: ActionReport, name: str) -> Iterator[StageReport]:
        """Tell and time one step of an action."""
        self.say(f"{action.action_id} {name}")
        stage, started = StageReport(name=name), time.monotonic()
        action.stages.append(stage)
        try:
            yield stage
        finally:
            stage.seconds = round(time.monotonic() - started, 3)
            self.done = min(self.done + 1, self.total)
