"""The Nth operation of the real job fails, for N = 1, 2, 3 … until a run meets no fault.

Operations are what the job asks Java for that touches the catalog or files (and what its own tasks
do with files), once refused before they happen, once with their answer lost after they did. After
every fault the action is run again undisturbed, as the agents would, and the invariants must hold:
rows as before (I1), every reachable file there (I2), nothing deleted (I3), one commit (I4).
"""

from __future__ import annotations

import importlib
import random
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.maintenance import Kind
from tests.integration.maintenance.job.lakes import FEW, Lake, stage
from tests.integration.maintenance.writers import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse_core.domain.table import TableName

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
MOST_POINTS = 200
# Methods of Java that read or write the catalog or files, as the job calls them.
READS = {
    "loadIcebergTable": "catalog read",
    "refresh": "catalog read",
    "plan": "manifests read",
    "planFiles": "manifests read",
    "collectToPython": "rows read",
    "count": "rows read",
}
WRITES = {
    "commitFileGroups": "catalog commit",
    "collectAndServe": "files written",
    "execute": "catalog commit",
    "deleteFile": "file deleted",
}


class InjectedError(Exception):
    """What an operation raises whose turn it is."""


class Faults:
    """Counts operations, and fails one of them."""

    def __init__(self, nth: int, *, is_after: bool) -> None:
        self._nth, self._is_after = nth, is_after
        self._count = 0
        self.failed: str | None = None

    def run(self, method: str, work: Callable[[], Any]) -> Any:
        """An operation; only what changes something can have done so when its answer is lost."""
        kind = WRITES.get(method) or (None if self._is_after else READS.get(method))
        if kind is None:
            return work()
        self._count += 1
        if self._count != self._nth:
            return work()
        self.failed = f"{kind} ({method})"
        if self._is_after:
            work()
        raise InjectedError("Input/output error")


@contextmanager
def injected(faults: Faults) -> Iterator[None]:
    """Everything that is asked of Java goes by the faults."""
    gateway: Any = importlib.import_module("py4j.java_gateway")  # it has no types
    client = gateway.GatewayClient

    real = client.send_command

    def send(self: Any, command: str, *args: Any, **kwargs: Any) -> Any:
        parts = command.split("\n", 3)
        method = parts[2] if parts[0] == "c" and len(parts) > 2 else ""
        return faults.run(method, lambda: real(self, command, *args, **kwargs))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "send_command", send)
        yield


def files_of(lake: Lake, table: TableName) -> set[Path]:
    from spark_jobs.maintenance.arrow_files import local_path  # noqa: PLC0415 needs pyspark

    return set(Path(str(local_path(lake.open(table).metadata().location))).rglob("*.*"))


def made(lake: Lake) -> tuple[TableName, Writer]:
    """A table of three small files."""
    table = lake.table()
    writer = Writer(lake, table, random.Random(1))  # noqa: S311 no secret
    for _ in range(3):
        writer.one("append")
    return table, writer


def our_commits(lake: Lake, table: TableName) -> list[int]:
    from spark_jobs.maintenance.table import OPERATION  # noqa: PLC0415 needs pyspark

    found = lake.open(table).metadata().snapshots.values()
    return [one.snapshot_id for one in found if OPERATION in one.summary]


@pytest.mark.parametrize("is_after", [False, True], ids=["refused", "answer lost"])
def test_every_point_of_failure_keeps_the_invariants(
    lake: Lake, is_after: bool, tell: Callable[[str], None]
) -> None:
    points: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for nth in range(1, MOST_POINTS):
        table, writer = made(lake)
        before = files_of(lake, table)
        faults = Faults(nth, is_after=is_after)
        request = lake.request(table, Kind.COMPACT, [stage("compact_files", options=FEW)])
        with injected(faults):
            report = lake.run(request)
        ends[str(report.outcome)] += 1
        if not our_commits(lake, table):  # as the agents find out before they run it again
            again = lake.compact(table)
            assert again.outcome == "done", (nth, faults.failed, again.error)
        assert writer.found() == writer.expected(), (nth, faults.failed)  # I1
        lake.assert_whole(table)  # I2
        assert before <= files_of(lake, table), (nth, faults.failed)  # I3
        assert len(our_commits(lake, table)) == 1, (nth, faults.failed)  # I4
        writer.close()
        if faults.failed is None:
            assert report.outcome == "done"
            break
        points[faults.failed] += 1
    else:
        pytest.fail(f"a run still met faults after {MOST_POINTS} points")
    assert sum(points.values()) >= (2 if is_after else 10)
    tell(f"{sum(points.values())} points: {dict(points)}; the disturbed run: {dict(ends)}")
