"""Writers append, delete and merge while maintenance of every kind runs: every row stays right.

A seed fixes what is written and in which order the kinds run. Rewrites of data files are met right
before and right after their commit; where Iceberg's procedure leaves no such moment, a writer works
beside it without a rest. The stages of the job are called as the job calls them, without its own
checks, so that they are cheap: what the writer wrote is kept in a model that the table must equal
after each. One action of each table is run whole, with its verification.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.maintenance import Kind
from tests.integration.maintenance.job.lakes import MERGE_ON_READ, Lake, stage
from tests.integration.maintenance.writers import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse_core.domain.maintenance import Stage
    from lakehouse_core.domain.table import TableName
    from spark_jobs.maintenance.plan import ActionRequest
    from spark_jobs.maintenance.work import Tools

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(2400),  # of a busy machine
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Delete operation did not match any records"),
    pytest.mark.filterwarnings("ignore:Merge on read is not yet supported"),
]
# One takes minutes: 20 actions with some 100 writes inside them; hundreds of meetings with commits
# alone are in `test_interleave_commits`.
SEEDS = range(int(os.environ.get("LAKEHELM_TEST_SEEDS", "1")))
TABLES = 2  # of a seed: a history that grows makes every round dearer
WHOLE = 0  # the place of the action of each table that is run with its checks
GOOD_ENDS = {"done", "nothing", "conflict"}


def kinds() -> list[tuple[Kind, Stage, dict[str, Any]]]:
    """What may be done, with its guards; our own compaction most often."""
    few = {"min-input-files": "2"}
    deletes = few | {"delete-file-threshold": "1", "remove-dangling-deletes": "true"}
    all_files = few | {"rewrite-all": "true"}
    now = datetime.now(UTC)
    ours: tuple[Kind, Stage, dict[str, Any]] = (
        Kind.COMPACT,
        stage("compact_files", options=few),
        {},
    )
    return [
        *[ours] * 4,
        (Kind.COMPACT, stage("rewrite_data_files", options=deletes), {}),
        (
            Kind.SORT,
            stage("rewrite_data_files", strategy="sort", sort_order="`id`", options=all_files),
            {},
        ),
        (
            Kind.HILBERT,
            stage("rewrite_data_files", sort_order="hilbert(id, amount)", options=all_files),
            {},
        ),
        (Kind.REWRITE_MANIFESTS, stage("rewrite_manifests", use_caching=False), {}),
        (
            Kind.REWRITE_POSITION_DELETES,
            stage("rewrite_position_delete_files", options={"rewrite-all": "true"}),
            {},
        ),
        (
            Kind.EXPIRE_SNAPSHOTS,
            stage("expire_snapshots", older_than=now.isoformat(), retain_last=1),
            {"older_than": now, "min_snapshots": 2},
        ),
    ]


def stages_alone(lake: Lake, request: ActionRequest, tools: Tools) -> str:
    """How the stages of an action end, without figures and checks."""
    from spark_jobs.maintenance.outcome import EndedError  # noqa: PLC0415 needs pyspark
    from spark_jobs.maintenance.runner import STAGES  # noqa: PLC0415 as above
    from spark_jobs.maintenance.stop import Stop  # noqa: PLC0415 as above
    from spark_jobs.maintenance.work import Work  # noqa: PLC0415 as above

    work = Work(lake.spark, lake.open(request.table), request, Stop(lake.spark, None), tools)
    try:
        results = [STAGES[one.procedure](work, one) for one in request.plan.stages]
    except EndedError as ended:
        return ended.outcome
    return "done" if any(one.is_changed for one in results) else "nothing"


class Meeting:
    """Actions on one table, each met by a writer."""

    def __init__(self, lake: Lake, table: TableName, writer: Writer, luck: random.Random) -> None:
        self.lake, self.table, self.writer, self.luck = lake, table, writer, luck
        self.outcomes: Counter[str] = Counter()
        self.met = self.inside = 0

    def tools(self) -> Tools:
        from spark_jobs.maintenance.commit import commit_groups  # noqa: PLC0415 needs pyspark
        from spark_jobs.maintenance.work import Tools as Made  # noqa: PLC0415 as above

        def commit(*given: Any) -> None:
            self.writer.act(least=1)
            commit_groups(*given)
            self.writer.act(most=1)

        return Made(commit=commit, pause=lambda _: None)

    def action(self, choice: Sequence[Any], *, is_whole: bool) -> None:
        kind, step, guards = choice
        for _ in range(3 if kind is Kind.REWRITE_POSITION_DELETES else 0):
            self.writer.delete_by_position()
        request = self.lake.request(self.table, kind, [step], **guards)
        is_ours = step.procedure in ("compact_files", "rewrite_data_files")
        before = self.writer.operations
        with contextlib.nullcontext() if is_ours else self.writer.beside():
            if is_whole:
                report = self.lake.run(request, self.tools())
                assert report.outcome in GOOD_ENDS, (kind, report.outcome, report.error)
                assert all(check.ok for check in report.checks), report.checks
                outcome = str(report.outcome)
            else:
                outcome = stages_alone(self.lake, request, self.tools())
                assert outcome in GOOD_ENDS, (kind, outcome)
        self.inside += self.writer.operations - before
        self.met += self.writer.operations > before
        self.outcomes[f"{kind} {outcome}"] += 1
        assert self.writer.found() == self.writer.expected(), (kind, outcome)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_is_lost_doubled_or_back(lake: Lake, seed: int, tell: Callable[[str], None]) -> None:
    luck = random.Random(seed)  # noqa: S311 a seed that can be run again
    started = time.monotonic()
    outcomes: Counter[str] = Counter()
    written: Counter[str] = Counter()
    met = inside = refused = 0
    for number in range(TABLES):
        table = lake.table(partition=("", "day")[number % 2], **MERGE_ON_READ)
        writer = Writer(lake, table, luck)
        meeting = Meeting(lake, table, writer, luck)
        try:
            for _ in range(3):
                writer.one("append")
            deck = kinds()
            luck.shuffle(deck)
            for place, choice in enumerate(deck):
                writer.act(least=1)
                meeting.action(choice, is_whole=place == WHOLE)
            lake.assert_whole(table)
        finally:
            writer.close()
        outcomes += meeting.outcomes
        written += writer.done
        met, inside = met + meeting.met, inside + meeting.inside
        refused += writer.refused
    took = time.monotonic() - started
    tell(
        f"seed {seed}: {inside} writes inside {met} of {sum(outcomes.values())} actions, "
        f"{took:.0f} s; {dict(written)}, {refused} refused; {dict(sorted(outcomes.items()))}"
    )
    assert met >= sum(outcomes.values()) / 2
    assert inside >= 20 * TABLES
    assert {one.rpartition(" ")[0] for one in outcomes} == {str(kind) for kind, *_ in kinds()}
