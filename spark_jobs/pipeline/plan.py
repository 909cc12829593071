"""What the pipeline is asked to do: the plan file that whoever starts it writes.

    {"run_id": "…", "catalog": "lake", "namespace": "ops", "conf": {…}, "master": "local[2]",
     "exports": [{"id": "…", "exported_at": "…",
                  "tables": {"query_event": {"files": ["….parquet"], "rows": 12, "days": ["…"]}}}],
     "after": null, "cursor": {…}, "care": {"compact": ["sql_text"], "expire": []}}

With `remote` (Spark Connect) instead of `master`, `conf` is limited to what a session may set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from spark_jobs.plan_file import PlanError, read_plan_file

if TYPE_CHECKING:
    from pathlib import Path

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The rows of one store table in an export.

    Attributes:
        files: Parquet files.
        rows: how many they hold.
        days: the days (UTC) that the rows are about, by the time they are partitioned by.
    """

    files: tuple[str, ...]
    rows: int
    days: tuple[date, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Rows of the store that were written out together, once.

    Attributes:
        id: ordered by time: a later export has a greater id.
        exported_at: when the store was read.
        tables: store table → its rows.
    """

    id: str
    exported_at: datetime
    tables: dict[str, Part]


@dataclass(frozen=True, slots=True, kw_only=True)
class Care:
    """Which of its own tables the run tidies up; whoever plans sees their metadata at no cost.

    Attributes:
        compact: tables whose small files are put together.
        expire: tables that lose old snapshots.
        min_files: a partition with fewer small files is left alone.
        most_groups: file groups rewritten in one run, per table; the others come next time.
        keep_snapshots: always kept.
        keep_hours: snapshots younger than this are kept.
    """

    compact: tuple[str, ...] = ()
    expire: tuple[str, ...] = ()
    min_files: int = 8
    most_groups: int = 8
    keep_snapshots: int = 10
    keep_hours: float = 24.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run.

    Attributes:
        run_id: names the run in snapshots and in the report.
        catalog: the Iceberg catalog to write to.
        namespace: where the tables are.
        exports: what waits in the landing folder, oldest first.
        after: the last export that gold and the store have; what came later is done (again).
        cursor: where the next export goes on; kept with the state, not read here.
        conf: Spark settings.
        databases: our catalogs by the names of databases that are linked to them.
        columns: of the lake's tables, as far as collected: decides what texts leave open.
        master: Spark master of a session of our own.
        remote: a Spark Connect server to use instead.
        commit_attempts: tries of one commit that meets other writers.
        care: see `Care`.
    """

    run_id: str
    catalog: str
    namespace: str
    exports: tuple[Export, ...] = ()
    after: str | None = None
    cursor: dict[str, Any] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)
    databases: dict[str, str] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    master: str = "local[2]"
    remote: str | None = None
    commit_attempts: int = 6
    care: Care = Care()

    def table(self, name: str) -> str:
        """The full name of one of our tables."""
        return f"{self.catalog}.{self.namespace}.{name}"


def read_plan(path: Path) -> Plan:
    """The plan from its file.

    Raises:
        PlanError: it is not there, or not a plan.
    """
    return read_plan_file(path, parse_plan)


def parse_plan(raw: dict[str, Any]) -> Plan:
    """The plan from its JSON object.

    Raises:
        PlanError: a part is missing, unknown or does not fit.
    """
    given = dict(raw)
    try:
        exports = tuple(sorted(map(_export, given.pop("exports", ())), key=lambda one: one.id))
        care = Care(**given.pop("care", {}))
        plan = Plan(**given, exports=exports, care=care)
    except (KeyError, TypeError, ValueError) as error:
        raise PlanError(f"The plan does not fit: {error}") from error
    for name in (plan.catalog, plan.namespace):
        # Names become part of statements; nothing else in a plan does.
        if not _NAME.fullmatch(name):
            raise PlanError(f"{name!r} is not a plain lower-case name of a catalog or namespace")
    return plan


def _export(raw: dict[str, Any]) -> Export:
    return Export(
        id=str(raw["id"]),
        exported_at=datetime.fromisoformat(raw["exported_at"]),
        tables={name: _part(part) for name, part in raw["tables"].items()},
    )


def _part(raw: dict[str, Any]) -> Part:
    return Part(
        files=tuple(raw["files"]),
        rows=int(raw["rows"]),
        days=tuple(date.fromisoformat(day) for day in raw["days"]),
    )
