"""A store and a namespace of the lake of its own, carried through the real Spark stages."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lakehouse_core import duck
from lakehouse_core.catalog.location import local_path
from lakehouse_core.pipeline.service import PipelineReport, Surroundings, run_pipeline
from lakehouse_core.pipeline.state import read_state
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from lakehouse_core.config import Config
    from lakehouse_core.config.environment import Machine
    from lakehouse_core.domain.query import QueryEvent
    from lakehouse_core.store.owner import OwnerStore

# Which export brought a row says nothing about what it says.
ABOUT_THE_WAY = ("export_id", "exported_at", "learned_from")
# Of the texts of a shape whichever came first in its batch tells of the shape.
TOLD_BY_ONE = {"sql_text": ("template", "tables", "usage")}


@dataclass
class Pipeline:
    """One store, one landing folder, one namespace."""

    config: Config
    machine: Machine
    store: OwnerStore
    spark: SparkSession
    minutes: int = 0
    plans: list[dict[str, Any]] = field(default_factory=list)

    def add(self, *events: QueryEvent) -> None:
        self.store.upsert("query_event", to_arrow("query_event", events))

    def run(self) -> PipelineReport:
        """One run of the pipeline, its Spark stages in this process."""
        self.minutes += 1
        return run_pipeline(
            self.config,
            self.store,
            Surroundings(
                machine=self.machine,
                clock=lambda: NOW + timedelta(minutes=self.minutes),
                spark=self.run_plan,
            ),
        )

    def run_plan(self, document: dict[str, Any]) -> dict[str, Any]:
        from spark_jobs.pipeline.plan import parse_plan  # noqa: PLC0415 needs pyspark
        from spark_jobs.pipeline.progress import Progress, Report  # noqa: PLC0415 as above
        from spark_jobs.pipeline.run import STAGES, run  # noqa: PLC0415 as above

        self.plans.append(document)
        report = Report(run_id=document["run_id"])
        run(self.spark, parse_plan(document), Progress(report, STAGES))
        return asdict(report)

    def table(self, name: str) -> str:
        return f"{self.config.pipeline.catalog}.{self.config.pipeline.namespace}.{name}"

    def rows(self, name: str, sql: str = "SELECT * FROM gold") -> pa.Table:
        """A table of the lake, read by DuckDB."""
        metadata = read_state(self.config).tables[name]
        with duck.connect(extensions=("iceberg",)) as connection:
            scan = f"iceberg_scan('{local_path(metadata.location)}')"
            return connection.execute(sql.replace("gold", scan)).to_arrow_table()

    def content(self, leave_out: Sequence[str] = ABOUT_THE_WAY) -> dict[str, str]:
        """A hash of every table's rows, in whatever order they lie."""
        found = {}
        for name in sorted(read_state(self.config).tables):
            table = self.rows(name)
            left = {*leave_out, *(TOLD_BY_ONE.get(name, ()) if leave_out else ())}
            kept = table.drop_columns([n for n in left if n in table.column_names])
            lines = sorted(repr(row) for row in kept.to_pylist())
            found[name] = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        return found

    def files(self, name: str) -> int:
        """How many data and delete files a table has."""
        current = read_state(self.config).tables[name].current
        summary = current.summary if current else {}
        return sum(int(summary.get(f"total-{kind}-files", 0)) for kind in ("data", "delete"))

    def snapshots(self) -> dict[str, str]:
        """Where every table's metadata is: a commit moves it."""
        return {name: table.location for name, table in read_state(self.config).tables.items()}
