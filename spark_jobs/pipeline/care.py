"""Care for our own tables: few files per partition, few snapshots, a bounded share of each run.

They are ordinary tables of the lake, so health and maintenance see them too; this only keeps what
the pipeline itself leaves behind small.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_jobs.pipeline.lake import Lake
    from spark_jobs.pipeline.progress import Stage


def tidy(lake: Lake, stage: Stage) -> None:
    """Compact and expire what the plan names."""
    care = lake.plan.care
    for names, work in ((care.compact, _compact), (care.expire, _expire)):
        for name in names:
            if lake.exists(name):
                lake.commits.run(lake.full_name(name), partial(work, lake, name))
                stage.tables.append(name)
    stage.facts = {"compacted": list(care.compact), "expired": list(care.expire)}


def _compact(lake: Lake, name: str) -> None:
    care = lake.plan.care
    lake.spark.sql(
        f"CALL {lake.plan.catalog}.system.rewrite_data_files(table => :name, options => map("
        "'min-input-files', :least, 'delete-file-threshold', '1', "
        "'remove-dangling-deletes', 'true', 'max-concurrent-file-group-rewrites', '2', "
        "'partial-progress.enabled', 'true', 'partial-progress.max-commits', :most))",
        args={
            "name": f"{lake.plan.namespace}.{name}",
            "least": str(care.min_files),
            "most": str(care.most_groups),
        },
    ).collect()


def _expire(lake: Lake, name: str) -> None:
    care = lake.plan.care
    lake.spark.sql(
        f"CALL {lake.plan.catalog}.system.expire_snapshots("
        "table => :name, older_than => :older, retain_last => :last)",
        args={
            "name": f"{lake.plan.namespace}.{name}",
            "older": datetime.now(UTC) - timedelta(hours=care.keep_hours),
            "last": care.keep_snapshots,
        },
    ).collect()
