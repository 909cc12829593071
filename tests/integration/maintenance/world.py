"""The whole loop by hand: collect, judge, propose, decide, carry out, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents import health, recommend
from agents.collect import run_once as collect_once
from agents.decide import Decisions
from agents.jobs import release
from collectors.registry import build_source, collect_settings
from lakehouse_core.catalog.avro_reader import AvroReader
from lakehouse_core.catalog.contents import losses, reachable_files
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.health import HealthState
from lakehouse_core.maintenance.execute import Maintainer, Surroundings
from lakehouse_core.maintenance.records import actions_of
from lakehouse_core.pipeline.job import FOR_FEW_ROWS
from lakehouse_core.runtime.spark_job import SHORT_JVM
from lakehouse_core.store.rows import to_arrow
from tests.factories import decision_request
from tests.unit.maintenance.yard import Yard

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.maintenance import Action

HEALTH_SQL = """
SELECT state, score FROM health WHERE table_id = $table ORDER BY assessed_at DESC LIMIT 1
"""


def quick(config: Config, **maintenance: Any) -> Config:
    """No waiting for quiet; a small heap, and nothing compiled twice for a few rows."""
    given = {"quiet_period": "0s", "lease": "20s", "max_attempts": 3, **maintenance}
    settings = type(config.maintenance).model_validate(config.maintenance.model_dump() | given)
    conf = {"spark.driver.extraJavaOptions": SHORT_JVM} | FOR_FEW_ROWS
    spark = config.spark.model_copy(update={"driver_memory": 2**30, "conf": conf})
    return config.model_copy(update={"maintenance": settings, "spark": spark})


class World(Yard):
    """A yard whose jobs are real, with the agents at hand."""

    def new_maintainer(self, **config: Any) -> Maintainer:
        around = Surroundings(machine=read_machine(), clock=self.clock)
        return Maintainer(self.config.model_copy(update=config), self.store, around)

    def collect(self) -> None:
        source = build_source("iceberg", self.config, self.store, self.clock)
        timeout = collect_settings(self.config, "iceberg").timeout
        report = collect_once(source, self.store, self.clock, timeout=timeout)
        release(source)
        assert report.error is None, report.error
        health.run_once(self.store, self.config.health, self.clock)

    def recommend(self) -> list[Action]:
        """What is proposed now."""
        recommend.run_once(self.store, self.config, self.clock)
        found = self.store.read(
            "SELECT * FROM action WHERE state = 'proposed' ORDER BY priority DESC"
        )
        return list(actions_of(found))

    def decide(self, action: Action, verb: str = "approve", **given: Any) -> Action:
        wish = decision_request(
            action_id=action.action_id,
            verb=verb,
            actor="ana",
            plan_hash=action.plan_hash,
            asked_at=self.clock(),
            state="waiting",
            **{"answered_at": None, "answer": None, **given},
        )
        self.store.upsert("decision_request", to_arrow("decision_request", [wish]))
        Decisions(self.store, self.config.maintenance, self.clock).take_up()
        return self.now(action)

    def score(self, table_id: str) -> tuple[HealthState, float]:
        row = self.store.read(HEALTH_SQL, table=table_id).to_pylist()[0]
        return HealthState(row["state"]), row["score"]

    def is_whole(self, table_id: str) -> bool:
        """I2: every file that any snapshot reaches is there with its recorded size."""
        avro = AvroReader()
        try:
            return not losses(reachable_files(avro, self.metadata(table_id)))
        finally:
            avro.close()
