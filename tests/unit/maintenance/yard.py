"""Real tables, a real store and a clock to turn; a job that rewrites with pyiceberg, no JVM.

The job stands in for spark_jobs/maintain.py: it takes the same plan, makes real commits with our
ids in their summaries and leaves the same report; `Fate` says where it dies or what it claims.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse_core.catalog import open_catalog
from lakehouse_core.catalog.metadata import read_metadata
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.maintenance import Action, Kind, State
from lakehouse_core.domain.table import LakeTable, TableName
from lakehouse_core.maintenance.execute import Maintainer, Surroundings
from lakehouse_core.maintenance.look import Lookout
from lakehouse_core.maintenance.plan import build_plan, plan_hash
from lakehouse_core.maintenance.states import Ledger
from lakehouse_core.runtime.jobs import JobEnd
from tests.factories import action, unique

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from lakehouse_core.catalog.metadata import TableMetadata
    from lakehouse_core.config.models import Config
    from lakehouse_core.maintenance.job import RunFolder
    from lakehouse_core.store.owner import OwnerStore

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("region", pa.string())])


class Killed(BaseException):
    """As if the process had been killed: nothing after it runs, not even what catches errors."""


@dataclass
class Clock:
    """A clock that tests turn; it starts at the real time, which commits carry."""

    offset: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def turn(self, **by: float) -> None:
        self.offset += timedelta(**by)


@dataclass
class Fate:
    """What happens to the job.

    Attributes:
        dies: where: "before", "after_commit", "after_report"; None: it lives.
        kills_agents: the starter dies with it.
        claims: parts of the report that replace the true ones.
        proof: as `dies`, of a job that only compares: "before" or "after_report".
        finds: what such a job says of the rows instead of the truth.
    """

    dies: str | None = None
    kills_agents: bool = False
    claims: dict[str, Any] = field(default_factory=dict)
    before_commit: Callable[[], None] = lambda: None
    proof: str | None = None
    finds: dict[str, Any] = field(default_factory=dict)


@dataclass
class Yard:
    config: Config
    store: OwnerStore
    clock: Clock = field(default_factory=Clock)
    fate: Fate = field(default_factory=Fate)
    jobs: list[list[str]] = field(default_factory=list)
    plans: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings = self.config.catalogs["lake"]
        settings.path.parent.mkdir(parents=True, exist_ok=True)
        settings.warehouse.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(self.store, self.clock)
        self.maintainer = self.new_maintainer()

    def new_maintainer(self, **config: Any) -> Maintainer:
        """As after a restart of the agents process."""
        around = Surroundings(machine=read_machine(), clock=self.clock, spark=self._job)
        return Maintainer(self.config.model_copy(update=config), self.store, around)

    def create(self, files: int = 2, **properties: str) -> str:
        """A table with so many small files; returns its id."""
        namespace = unique("yard").replace("-", "_")
        with self._catalog() as catalog:
            catalog.create_namespace(namespace)
            catalog.create_table(f"{namespace}.t", schema=SCHEMA, properties=properties)
        table_id = f"lake.{namespace}.t"
        for number in range(files):
            self.append(table_id, number)
        return table_id

    def append(self, table_id: str, number: int, **summary: str) -> int:
        """Commit one row; returns the snapshot."""
        with self._catalog() as catalog:
            table = _load(catalog, table_id)
            rows = pa.Table.from_pylist([{"id": number, "region": "r"}], schema=SCHEMA)
            table.append(rows, snapshot_properties=summary)
            current = table.current_snapshot()
        assert current is not None
        return current.snapshot_id

    def change(self, table_id: str, work: Callable[[Table], Any]) -> Any:
        """Do something to the table through pyiceberg."""
        with self._catalog() as catalog:
            return work(_load(catalog, table_id))

    def rows(self, table_id: str) -> list[int]:
        return sorted(self.change(table_id, lambda t: t.scan().to_arrow())["id"].to_pylist())

    def rows_at(self, table_id: str, snapshot_id: int | None) -> list[int]:
        return sorted(
            self.change(table_id, lambda t: t.scan(snapshot_id=snapshot_id).to_arrow())[
                "id"
            ].to_pylist()
        )

    def metadata(self, table_id: str) -> TableMetadata:
        name = TableName.parse(table_id)
        lake = open_catalog("lake", self.config.catalogs["lake"])
        return read_metadata(lake.metadata_location(name))

    def propose(self, table_id: str, kind: Kind = Kind.COMPACT, **given: Any) -> Action:
        """A proposal whose plan is of the table as it is."""
        lookout = Lookout(self.config, self.clock)
        try:
            look = lookout.look(table_id)
        finally:
            lookout.close()
        name, now = TableName.parse(table_id), self.clock()
        table = LakeTable(
            table_id=table_id,
            catalog=name.catalog,
            namespace=".".join(name.namespace),
            table_name=name.name,
            seen_at=now,
            table_uuid=look.metadata.table_uuid,
        )
        parameters = given.pop("parameters", {})
        plan = build_plan(kind, table, look.metrics, self.config, parameters=parameters)
        times = {"evidence_at": now, "proposed_at": now, "updated_at": now}
        proposed = action(
            kind=kind,
            table_id=table_id,
            plan=plan,
            plan_hash=plan_hash(plan),
            expires_at=now + timedelta(days=7),
            predicted=(),
            **times,
        )
        return self.ledger.propose(replace(proposed, **given))

    def approve(self, table_id: str, kind: Kind = Kind.COMPACT, **given: Any) -> Action:
        """The same, approved by somebody."""
        by = given.pop("decided_by", "ana")
        proposed = self.propose(table_id, kind, **given)
        return self.ledger.move(
            proposed, State.APPROVED, by=by, decided_by=by, decided_at=self.clock()
        )

    def now(self, one: Action) -> Action:
        return self.ledger.get(one.action_id)

    def _job(
        self, folder: RunFolder, plan: dict[str, Any], is_stopping: Callable[[], bool]
    ) -> JobEnd:
        self.jobs.append([one["action_id"] for one in plan["actions"]])
        self.plans.append(plan)
        actions: list[dict[str, Any]] = []
        for one in plan["actions"]:
            dies = self.fate.proof if one["proves"] else self.fate.dies
            if dies == "before":
                return self._die()
            is_stopping()
            if folder.stop_file.exists():
                actions.append({"action_id": one["action_id"], "outcome": "stopped", "checks": []})
            elif one["proves"]:
                actions.append(self._prove(one))
            else:
                self.fate.before_commit()
                actions.append(self._work(one))
            if dies == "after_commit":
                return self._die()
            folder.files.report.write_text(json.dumps({"error": None, "actions": actions}))
            if dies == "after_report":
                return self._die()
        return JobEnd(0)

    def _die(self) -> JobEnd:
        if self.fate.kills_agents:
            raise Killed
        return JobEnd(-9)

    def _work(self, one: dict[str, Any]) -> dict[str, Any]:
        claims = self.fate.claims
        summary = {
            "lakehelm.operation-id": one["operation_id"],
            "lakehelm.action-id": one["action_id"],
            "lakehelm.lease-token": str(one["lease_token"]),
        }
        if claims.get("outcome", "done") == "done":
            self.change(
                one["plan"]["table_id"],
                lambda t: t.overwrite(t.scan().to_arrow(), snapshot_properties=summary),
            )
        return {
            "action_id": one["action_id"],
            "outcome": "done",
            "error": None,
            "checks": [{"name": "rows", "expected": 1, "found": 1, "ok": True}],
            "rolled_back": False,
            **claims,
        }

    def _prove(self, one: dict[str, Any]) -> dict[str, Any]:
        """Compare the rows that the commits have made with those before them."""
        table_id, ours = one["plan"]["table_id"], set(one["proves"])
        found = [s for s in self.metadata(table_id).history if s.snapshot_id in ours]
        before, after = (
            self.rows_at(table_id, n) for n in (found[-1].parent_id, found[0].snapshot_id)
        )
        is_same = before == after
        check = {"name": "content", "expected": before, "found": after, "ok": is_same}
        return {
            "action_id": one["action_id"],
            "outcome": "done" if is_same else "failed",
            "error": None if is_same else "Rows changed",
            "checks": [check],
            "compared": sorted(ours),
            "rolled_back": False,
            **self.fate.finds,
        }

    def _catalog(self) -> closing[Catalog]:
        return closing(open_catalog("lake", self.config.catalogs["lake"]).iceberg())


def _load(catalog: Catalog, table_id: str) -> Table:
    name = TableName.parse(table_id)
    return catalog.load_table((*name.namespace, name.name))
