from __future__ import annotations

from typing import TYPE_CHECKING

from agents.progress import ProgressBoard
from tests.factories import NOW

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore


def test_only_the_last_word_of_jobs_that_still_run_is_written(store: OwnerStore) -> None:
    board = ProgressBoard(store, lambda: NOW)
    slow, quick = board.reporter("slow", "rows"), board.reporter("quick", "rows")
    for done in range(1_000):
        slow(done, 1_000)
    quick(5, None)
    assert board.flush({"slow"}) == 1
    (row,) = store.read("FROM agent_progress").to_pylist()
    assert (row["agent"], row["done"], row["total"], row["unit"]) == ("slow", 999, 1_000, "rows")
    assert board.flush({"slow", "quick"}) == 0
