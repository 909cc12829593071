"""The Nth operation fails, for N = 1, 2, 3 … until a run meets no fault: SQLite's way of testing.

Operations are reads of the catalog, reads and writes of files, writes to the store, and the start
of the job, all on the path from an approved action to its proof. After every fault the next rounds
run undisturbed, and the invariants must hold: rows as before (I1), every reachable file there (I2),
nothing deleted (I3), one outcome and at most one commit per approved action (I4).
"""

from __future__ import annotations

import errno
import sqlite3
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.catalog import contents
from lakehouse_core.catalog.avro_reader import AvroReader
from lakehouse_core.catalog.contents import losses, reachable_files
from lakehouse_core.catalog.location import local_path
from lakehouse_core.domain.errors import StoreUnavailableError
from lakehouse_core.domain.maintenance import FINAL
from lakehouse_core.maintenance.verify import OPERATION
from lakehouse_core.store.owner import OwnerStore
from tests.integration.maintenance.world import quick
from tests.unit.maintenance.yard import Yard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import DemoConfig

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
MOST_POINTS = 400


class Faults:
    """Counts operations and fails one of them: once, or from then on until the run is over."""

    def __init__(self, nth: int, *, is_lasting: bool) -> None:
        self._nth, self._is_lasting = nth, is_lasting
        self.count = 0
        self.failed: str | None = None
        self.is_armed = False

    def step(self, what: str, error: Exception) -> None:
        if not self.is_armed:
            return
        self.count += 1
        if self.count == self._nth or (self._is_lasting and self.count > self._nth):
            self.failed = self.failed or what
            raise error

    @contextmanager
    def armed(self) -> Iterator[None]:
        self.is_armed = True
        try:
            yield
        finally:
            self.is_armed = False


@contextmanager
def injected(faults: Faults) -> Iterator[None]:
    """Every operation asks first."""

    def guarded(real: Callable[..., Any], what: str, error: Exception) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            faults.step(what, error)
            return real(*args, **kwargs)

        return call

    disk = OSError(errno.EIO, "Input/output error")
    full = OSError(errno.ENOSPC, "No space left on device")
    silent = StoreUnavailableError("the store does not answer")
    places: list[tuple[Any, str, str, Exception]] = [
        (sqlite3, "connect", "catalog", sqlite3.OperationalError("disk I/O error")),
        (Path, "read_bytes", "file read", disk),
        (Path, "read_text", "file read", disk),
        (Path, "write_text", "file write", full),
        (contents, "file_size", "file look", disk),
        (OwnerStore, "upsert", "store write", silent),
        (OwnerStore, "upsert_together", "store write", silent),
        (Yard, "_work", "job", OSError(errno.EAGAIN, "cannot start a process")),
    ]
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, what, error in places:
            patch.setattr(owner, name, guarded(getattr(owner, name), what, error))
        yield


def files_of(yard: Yard, table_id: str) -> set[Path]:
    return set(local_path(yard.metadata(table_id).table_location).rglob("*.*"))


@pytest.mark.parametrize("is_lasting", [False, True], ids=["once", "lasting"])
def test_every_point_of_failure_keeps_the_invariants(
    load_demo_config: DemoConfig,
    tmp_path: Path,
    is_lasting: bool,
    tell: Callable[[str], None],
) -> None:
    config = quick(load_demo_config(tmp_path / "home"))
    points: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    avro = AvroReader()
    with OwnerStore.open(config.store) as store:
        yard = Yard(config, store)
        for nth in range(1, MOST_POINTS):
            table_id = yard.create(files=2)  # a history that grows would add points for ever
            rows, before = yard.rows(table_id), files_of(yard, table_id)
            approved = yard.approve(table_id)
            faults = Faults(nth, is_lasting=is_lasting)
            maintainer = yard.new_maintainer()
            with injected(faults), faults.armed():
                try:
                    maintainer.run_once()
                except Exception as error:  # noqa: BLE001 the schedule records it and goes on
                    outcomes[type(error).__name__] += 1
            maintainer.close()
            yard.maintainer.close()
            yard.maintainer = restarted = yard.new_maintainer()
            for _ in range(4):
                if yard.now(approved).state in FINAL:
                    break
                yard.clock.turn(hours=1)
                restarted.run_once()
            done = yard.now(approved)
            assert done.state in FINAL, (nth, faults.failed, done.state, done.explanation)  # I4
            outcomes[done.state.value] += 1
            assert yard.rows(table_id) == rows, (nth, faults.failed)  # I1
            assert losses(reachable_files(avro, yard.metadata(table_id))) == []  # I2
            assert before <= files_of(yard, table_id)  # I3
            ours = {
                one.summary[OPERATION]
                for one in yard.metadata(table_id).snapshots
                if one.summary.get("lakehelm.action-id") == approved.action_id
            }
            assert len(ours) <= 1, (nth, faults.failed)  # I4
            if faults.failed is None:
                break
            points[faults.failed] += 1
        else:
            pytest.fail(f"a run still met faults after {MOST_POINTS} points")
        yard.maintainer.close()
    avro.close()
    assert sum(points.values()) >= 20
    kind = "lasting" if is_lasting else "passing"
    tell(f"{sum(points.values())} {kind} faults: {dict(points)}; ends: {dict(outcomes)}")
