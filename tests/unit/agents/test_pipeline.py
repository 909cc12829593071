from __future__ import annotations

from typing import TYPE_CHECKING

from agents import pipeline
from agents.watch import Lease
from lakehouse_core.pipeline.job import job_files
from lakehouse_core.pipeline.landing import Landing
from lakehouse_core.store.owner import OwnerStore
from tests.factories import NOW

if TYPE_CHECKING:
    from lakehouse_core.config import Config


def test_an_empty_store_starts_no_job(demo_config: Config) -> None:
    with OwnerStore.open(demo_config.store) as store:
        result = pipeline.run_once(store, demo_config, lambda: NOW, Lease())
    assert (result.rows, result.outcome) == (0, "ok")
    assert not job_files(demo_config).log.exists()
    assert Landing(demo_config.pipeline.landing).exports() == ()
