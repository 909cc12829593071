"""Hundreds of ways in which writers and the commit of a rewrite may meet: every row stays right.

Planning and writing new files is what takes Spark its time, and it reads files that never change.
So each kind of rewrite plans and writes once, and what it wrote is committed to many copies of the
table, each changed by a writer in another way meanwhile: appends, deletes, merges, deletes by
position, before the commit, at the very same time and after it. What the writer wrote is kept in a
model that the copy must equal. `test_interleave` runs whole stages beside writers.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.maintenance import Kind
from tests.integration.maintenance.job.lakes import FEW, MERGE_ON_READ, Lake, stage
from tests.integration.maintenance.writers import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.domain.maintenance import Stage

pytestmark = [
    pytest.mark.timeout(1200),  # of a busy machine
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Delete operation did not match any records"),
    pytest.mark.filterwarnings("ignore:Merge on read is not yet supported"),
]
MEETINGS = int(os.environ.get("LAKEHELM_TEST_MEETINGS", "60"))  # of each kind
AT_THE_SAME_TIME, BY_POSITION = 0.2, 0.06  # the share of meetings with a race, and with Spark
ALL = FEW | {"rewrite-all": "true"}
KINDS: dict[str, tuple[Kind, Stage]] = {
    "compact": (Kind.COMPACT, stage("compact_files", options=FEW)),
    "apply deletes": (
        Kind.COMPACT,
        stage("rewrite_data_files", options=FEW | {"delete-file-threshold": "1"}),
    ),
    "sort": (
        Kind.SORT,
        stage("rewrite_data_files", strategy="sort", sort_order="`id`", options=ALL),
    ),
    "zorder": (
        Kind.ZORDER,
        stage("rewrite_data_files", strategy="sort", sort_order="zorder(id, amount)", options=ALL),
    ),
    "hilbert": (
        Kind.HILBERT,
        stage("rewrite_data_files", sort_order="hilbert(id, amount)", options=ALL),
    ),
}


@dataclass
class Held:
    """A rewrite that has written its files and waits with its commit."""

    commits: list[tuple[Any, ...]] = field(default_factory=list)

    def commit(self, *given: Any) -> None:
        self.commits.append(given)
        # What may have been committed is not tidied away: the new files stay.
        raise RuntimeError("CommitStateUnknownException: held back")


def held_back(lake: Lake, writer: Writer, kind: Kind, step: Stage) -> tuple[int, Any, Any]:
    """Snapshot, groups and summary of a rewrite's only commit, which is not made."""
    from spark_jobs.maintenance.outcome import UnknownCommitError  # noqa: PLC0415 needs pyspark
    from spark_jobs.maintenance.runner import STAGES  # noqa: PLC0415 as above
    from spark_jobs.maintenance.stop import Stop  # noqa: PLC0415 as above
    from spark_jobs.maintenance.work import Tools, Work  # noqa: PLC0415 as above

    held = Held()
    request = lake.request(writer.name, kind, [step])
    tools = Tools(commit=held.commit)
    work = Work(lake.spark, lake.open(writer.name), request, Stop(lake.spark, None), tools)
    with pytest.raises(UnknownCommitError):
        STAGES[step.procedure](work, step)
    ((_, snapshot_id, groups, properties),) = held.commits
    return snapshot_id, groups, properties


def meet(lake: Lake, writer: Writer, rewrite: tuple[int, Any, Any], luck: random.Random) -> str:
    """One copy: a writer, the commit, the writer again; how the commit ended."""
    from spark_jobs.maintenance.commit import commit_groups  # noqa: PLC0415 needs pyspark
    from spark_jobs.maintenance.outcome import conflict_of  # noqa: PLC0415 as above

    is_race = luck.random() < AT_THE_SAME_TIME
    if luck.random() < BY_POSITION:
        writer.delete_by_position()
    writer.act(least=0 if is_race else 1)
    outcome = "done"
    with writer.beside() if is_race else contextlib.nullcontext():
        try:
            commit_groups(lake.open(writer.name), *rewrite)
        except Exception as error:
            if conflict_of(error) is None:
                raise
            outcome = "conflict"
    writer.act(most=1)
    return outcome


@pytest.mark.parametrize("name", KINDS)
def test_writers_and_a_commit_may_meet_in_any_order(
    lake: Lake, name: str, tell: Callable[[str], None]
) -> None:
    luck = random.Random(name)  # noqa: S311 a seed that can be run again
    started = time.monotonic()
    kind, step = KINDS[name]
    place = list(KINDS).index(name)
    table = lake.table(partition=("", "day")[place % 2], **MERGE_ON_READ)
    writer = Writer(lake, table, luck)
    outcomes: Counter[str] = Counter()
    written: Counter[str] = Counter()
    try:
        for _ in range(5):
            writer.one("append")
        if name == "apply deletes":
            writer.delete_by_position()
        rewrite = held_back(lake, writer, kind, step)
        for number in range(MEETINGS):
            copy = writer.on_copy(number)
            outcomes[meet(lake, copy, rewrite, luck)] += 1
            assert copy.found() == copy.expected(), (name, number)
            written += copy.done
    finally:
        writer.close()
    tell(
        f"{name}: {MEETINGS} meetings with {sum(written.values())} writes "
        f"{dict(written)}: {dict(outcomes)}, {time.monotonic() - started:.0f} s"
    )
    assert outcomes["done"] > 0
    assert outcomes["conflict"] > 0
    assert sum(written.values()) > MEETINGS
