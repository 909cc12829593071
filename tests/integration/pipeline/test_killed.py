"""The job in a process of its own, killed in the middle: the next run brings the same rows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.pipeline.errors import PipelineStoppedError
from lakehouse_core.pipeline.job import job_files
from lakehouse_core.pipeline.service import Surroundings, run_pipeline
from tests.factories import NOW
from tests.integration.pipeline.test_stages import check, some_events

if TYPE_CHECKING:
    from lakehouse_core.runtime.jobs import Progress
    from tests.integration.pipeline.conftest import NewPipeline
    from tests.integration.pipeline.lakes import Pipeline

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def run_until(pipeline: Pipeline, stage: str | None) -> None:
    """Run the real job; kill it when it begins a stage."""
    begun: list[str] = []

    def note(progress: Progress) -> None:
        begun.append(progress.what)

    run_pipeline(
        pipeline.config,
        pipeline.store,
        Surroundings(
            machine=pipeline.machine,
            clock=lambda: NOW + timedelta(minutes=1),
            on_progress=note,
            is_stopping=lambda: stage in begun,
        ),
    )


def test_a_run_killed_at_any_point_is_completed_by_the_next(
    pipeline: Pipeline, new_pipeline: NewPipeline
) -> None:
    pipeline.add(*some_events(120, seed=1))
    for stage in ("texts", "gold.template_hour"):
        with pytest.raises(PipelineStoppedError, match="carried on by the next run"):
            run_until(pipeline, stage)
        assert not job_files(pipeline.config).report.exists()
    run_until(pipeline, None)
    check(pipeline)
    bronze = pipeline.rows("query_event_bronze", "SELECT query_id FROM gold")
    assert bronze.num_rows == 120  # the export arrived once, over three runs
    whole = pipeline.content()
    straight = new_pipeline(beside=pipeline)
    straight.run()
    assert straight.content() == whole
