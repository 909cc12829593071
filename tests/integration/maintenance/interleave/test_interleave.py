"""Writers append, delete and merge while maintenance of every kind runs: every row stays right.

A seed fixes what is written and at which moments: before an action, at each of its steps, and
between its planning and its commit. Where Iceberg's own procedure leaves no such moment, a writer
of its own works beside it. What was written is also kept in a model; the table must equal it.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import EqualTo

from lakehouse_core.domain.maintenance import Kind
from tests.integration.maintenance.job.lakes import MERGE_ON_READ, Lake, stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table

    from lakehouse_core.domain.table import TableName

pytestmark = [
    pytest.mark.timeout(900),  # of a busy machine
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Delete operation did not match any records"),
    pytest.mark.filterwarnings("ignore:Merge on read is not yet supported"),
]
SEEDS = range(3)
ROUNDS = 5
DAYS = (20758, 20759, 20760)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("day", pa.date32()),
        pa.field("kind", pa.string()),
        pa.field("amount", pa.float64()),
    ]
)


class Writer:
    """Writes to a table as other engines do, and keeps what the table must hold."""

    def __init__(self, lake: Lake, table: TableName, luck: random.Random) -> None:
        catalog = lake.config.catalogs["lake"]
        self._catalog = SqlCatalog(
            "lake", uri=f"sqlite:///{catalog.path}", warehouse=f"file://{catalog.warehouse}"
        )
        self._lake, self._name, self._luck = lake, table, luck
        self._lock = threading.Lock()
        self.model: dict[int, tuple[int, str]] = {}
        self.done: Counter[str] = Counter()
        self.failures = 0
        self._next = 1_000

    def act(self, most: int = 2) -> None:
        """A few operations, as luck has it."""
        for _ in range(self._luck.randint(0, most)):
            kinds = ("append", "append", "delete", "merge")
            self._one(self._luck.choice(kinds))

    def act_in_spark(self) -> None:
        """Rows deleted by position, as Spark leaves them in a merge-on-read table."""
        if self.model:
            victim = self._luck.choice(sorted(self.model))
            self._lake.sql(f"DELETE FROM {{t}} WHERE id = {victim}", self._name)  # noqa: S608
            del self.model[victim]
            self.done["delete by position"] += 1

    def _one(self, kind: str) -> None:
        with self._lock:
            table = self._catalog.load_table((*self._name.namespace, self._name.name))
            try:
                getattr(self, f"_{kind}")(table)
                self.done[kind] += 1
            except (CommitFailedException, ValidationException):
                self.failures += 1  # somebody was faster; nothing of it was written

    def _append(self, table: Table) -> None:
        rows = {self._next + n: (self._luck.choice(DAYS), "new") for n in range(3)}
        self._next += 3
        table.append(_arrow(rows))
        self.model |= rows

    def _delete(self, table: Table) -> None:
        if not self.model:
            return
        victim = self._luck.choice(sorted(self.model))
        table.delete(EqualTo("id", victim))
        del self.model[victim]

    def _merge(self, table: Table) -> None:
        if not self.model:
            return
        changed = self._luck.choice(sorted(self.model))
        row = {changed: (self.model[changed][0], f"merged {self._luck.random():.6f}")}
        table.overwrite(_arrow(row), overwrite_filter=EqualTo("id", changed))
        self.model |= row

    def close(self) -> None:
        self._catalog.engine.dispose()


def _arrow(rows: dict[int, tuple[int, str]]) -> pa.Table:
    days = pa.array([day for day, _ in rows.values()], pa.int32()).cast(pa.date32())
    kinds = [kind for _, kind in rows.values()]
    amounts = [float(one) for one in rows]
    return pa.Table.from_arrays([pa.array(list(rows)), days, pa.array(kinds), pa.array(amounts)],
                                schema=SCHEMA)  # fmt: skip


@contextlib.contextmanager
def beside(writer: Writer) -> Iterator[None]:
    """A writer at work for as long as something else is."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.2):  # a rhythm of its own, as a stream has
            writer.act()

    thread = threading.Thread(target=work, name="writer")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def found(lake: Lake, table: TableName) -> Counter[tuple[int, str]]:
    rows = lake.sql("SELECT id, kind FROM {t}", table)
    return Counter((row.id, row.kind) for row in rows)


def request(lake: Lake, table: TableName, luck: random.Random) -> tuple[Any, bool]:
    """An action of any kind, and whether its commit can be met at a moment of our choice."""
    options = {"min-input-files": "2"}
    deletes = options | {"delete-file-threshold": "1", "remove-dangling-deletes": "true"}
    now = datetime.now(UTC)
    kinds: list[tuple[Kind, list[Any], dict[str, Any]]] = [
        (Kind.COMPACT, [stage("compact_files", options=options)], {}),
        (Kind.COMPACT, [stage("compact_files", options=options)], {}),
        (Kind.COMPACT, [stage("rewrite_data_files", options=deletes)], {}),
        (Kind.SORT, [stage("rewrite_data_files", strategy="sort", sort_order="`id` ASC",
                           options=options | {"rewrite-all": "true"})], {}),
        (Kind.REWRITE_MANIFESTS, [stage("rewrite_manifests", use_caching=False)], {}),
        (Kind.REWRITE_POSITION_DELETES,
         [stage("rewrite_position_delete_files", options={"rewrite-all": "true"})], {}),
        (Kind.EXPIRE_SNAPSHOTS,
         [stage("expire_snapshots", older_than=now.isoformat(), retain_last=1)],
         {"older_than": now, "min_snapshots": 2}),
    ]  # fmt: skip
    kind, stages, guards = luck.choice(kinds)
    made = lake.request(table, kind, stages, **guards)
    return made, stages[0].procedure == "compact_files"


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_is_lost_doubled_or_back(
    lake: Lake, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    from spark_jobs.maintenance.commit import commit_groups  # noqa: PLC0415 needs pyspark
    from spark_jobs.maintenance.work import Tools  # noqa: PLC0415 as above

    luck = random.Random(seed)  # noqa: S311 a seed that can be run again
    table = lake.table(partition=luck.choice(["", "day"]), **MERGE_ON_READ)
    writer = Writer(lake, table, luck)
    outcomes: Counter[str] = Counter()

    def commit(*given: Any) -> None:
        writer.act(most=3)
        commit_groups(*given)

    for _ in range(4):
        writer._one("append")
    try:
        for _ in range(ROUNDS):
            writer.act(most=3)
            if luck.random() < 0.3:
                writer.act_in_spark()
            action, is_met = request(lake, table, luck)
            tools = Tools(commit=commit, pause=lambda _: None)
            with contextlib.nullcontext() if is_met else beside(writer):
                report = lake.run(action, tools)
            outcomes[f"{action.plan.kind} {report.outcome}"] += 1
            assert report.outcome in {"done", "nothing", "conflict"}, (report.outcome, report.error)
            expected = Counter((one, kind) for one, (_, kind) in writer.model.items())
            assert found(lake, table) == expected
            lake.assert_whole(table)
    finally:
        writer.close()
    assert sum(writer.done.values()) >= ROUNDS
    with capsys.disabled():
        written = ", ".join(f"{count} {kind}" for kind, count in sorted(writer.done.items()))
        print(f"\nseed {seed}: {written}, {writer.failures} refused; {dict(outcomes)}")  # noqa: T201
