"""What a maintenance run is asked to do: the plan file that whoever starts it writes.

    {"run_id": "…", "catalog": "lake", "master": "local[2]", "conf": {…}, "stop_file": null,
     "actions": [{"action_id": "…", "operation_id": "…", "lease_token": 7,
                  "lease_file": "….json", "plan": {…},
                  "guards": {"protected_partitions": [], "keep_snapshot_ids": [],
                             "older_than": null, "min_snapshots": 1, "max_attempts": 4},
                  "verify": {"partitions": 8, "max_bytes": 1073741824}}]}

`plan` is a `lakehouse_core.domain.maintenance.Plan`. With `remote` (Spark Connect) instead of
`master` there is no JVM at hand, and only Iceberg's own procedures are called.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.maintenance import Plan, plan_from_json
from lakehouse_core.domain.table import TableName
from spark_jobs.plan_file import PlanError, read_plan_file

if TYPE_CHECKING:
    from pathlib import Path

PROCEDURES = frozenset(
    {
        "compact_files",
        "expire_snapshots",
        "remove_orphan_files",
        "rewrite_data_files",
        "rewrite_manifests",
        "rewrite_position_delete_files",
        "set_sort_order",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """What the action must leave alone, as it is known right before it runs.

    Attributes:
        protected_partitions: partition field → value; no file of these is rewritten.
        keep_snapshot_ids: read by somebody; never expired.
        older_than: nothing younger is expired or taken for an orphan.
        min_snapshots: kept on every branch.
        max_attempts: tries of a commit that meets other writers.
    """

    protected_partitions: tuple[dict[str, Any], ...] = ()
    keep_snapshot_ids: frozenset[int] = frozenset()
    older_than: datetime | None = None
    min_snapshots: int = 1
    max_attempts: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """How much of what was rewritten is read again: at most so many partitions and bytes."""

    partitions: int = 8
    max_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """One action of a run.

    Attributes:
        lease_token: of the lease it works under; in the summary of every snapshot.
        lease_file: tells the lease of the table that is in force; None: nobody else is there.
        proves: snapshots that are compared with their parents, instead of carrying out the plan:
            an earlier job has committed them, and died or failed before it could compare.
    """

    action_id: str
    operation_id: str
    lease_token: int
    plan: Plan
    guards: Guards = Guards()
    verify: Verify = Verify()
    lease_file: str | None = None
    proves: tuple[int, ...] = ()

    @property
    def table(self) -> TableName:
        """The table it is about."""
        return TableName.parse(self.plan.table_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """One run: actions one after another in one session.

    Attributes:
        run_id: names the run in the report.
        catalog: the Iceberg catalog of all tables.
        actions: in order.
        conf: Spark settings.
        master: Spark master of a session of our own.
        remote: a Spark Connect server to use instead.
        stop_file: when it appears, the run ends as soon as the table is whole.
    """

    run_id: str
    catalog: str
    actions: tuple[ActionRequest, ...]
    conf: dict[str, str] = field(default_factory=dict)
    master: str = "local[2]"
    remote: str | None = None
    stop_file: str | None = None


def read_plan(path: Path) -> RunPlan:
    """The plan from its file.

    Raises:
        PlanError: it is not there, or not a plan.
    """
    return read_plan_file(path, parse_plan)


def parse_plan(raw: dict[str, Any]) -> RunPlan:
    """The plan from its JSON object.

    Raises:
        PlanError: a part is missing, unknown or does not fit.
    """
    given = {name: value for name, value in raw.items() if value is not None}
    try:
        actions = tuple(_action(one) for one in given.pop("actions"))
        run = RunPlan(**given, actions=actions)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PlanError(f"The plan does not fit: {error!r}") from error
    for action in run.actions:
        if action.table.catalog != run.catalog:
            raise PlanError(f"{action.plan.table_id} is not in catalog {run.catalog}")
        for stage in action.plan.stages:
            if stage.procedure not in PROCEDURES:
                raise PlanError(f"Nobody knows a procedure {stage.procedure!r}")
    return run


def _action(raw: dict[str, Any]) -> ActionRequest:
    given = dict(raw)
    plan = plan_from_json(given.pop("plan"))
    guards = _guards(given.pop("guards", {}))
    verify = Verify(**given.pop("verify", {}))
    proves = tuple(map(int, given.pop("proves", ())))
    request = ActionRequest(**given, plan=plan, guards=guards, verify=verify, proves=proves)
    TableName.parse(plan.table_id)
    return request


def _guards(raw: dict[str, Any]) -> Guards:
    older = raw.get("older_than")
    moment = None if older is None else datetime.fromisoformat(older)
    if moment is not None and moment.tzinfo is None:
        raise ValueError(f"older_than {older} has no zone")
    return Guards(
        **raw
        | {
            "protected_partitions": tuple(raw.get("protected_partitions", ())),
            "keep_snapshot_ids": frozenset(map(int, raw.get("keep_snapshot_ids", ()))),
            "older_than": moment,
        }
    )
