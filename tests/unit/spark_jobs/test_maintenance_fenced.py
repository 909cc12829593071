"""A lease that is lost right before the commit: nothing is committed, what was written goes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from spark_jobs.maintenance.fenced import commit_fenced
from spark_jobs.maintenance.outcome import LeaseLostError


@dataclass
class Transaction:
    """As Iceberg's: commits, or raises."""

    fault: Exception | None = None
    commits: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def commitTransaction(self) -> None:  # noqa: N802 Java's name
        if self.fault is not None:
            raise self.fault
        self.commits.append("done")

    def run(self, *, is_lost: bool = False, may_live: bool = False) -> None:
        def check() -> None:
            if is_lost:
                raise LeaseLostError("taken over")

        commit_fenced(
            self,
            check=check,
            may_live=lambda _: may_live,
            discard=lambda: self.gone.append("files"),
        )


def test_while_the_lease_holds_it_is_committed() -> None:
    transaction = Transaction()
    transaction.run()
    assert (transaction.commits, transaction.gone) == (["done"], [])


def test_a_lost_lease_commits_nothing_and_leaves_nothing() -> None:
    transaction = Transaction()
    with pytest.raises(LeaseLostError):
        transaction.run(is_lost=True)
    assert (transaction.commits, transaction.gone) == ([], ["files"])


@pytest.mark.parametrize("may_live", [False, True])
def test_what_a_failed_commit_wrote_goes_unless_it_may_live(may_live: bool) -> None:
    transaction = Transaction(fault=RuntimeError("conflict"))
    with pytest.raises(RuntimeError):
        transaction.run(may_live=may_live)
    assert transaction.gone == ([] if may_live else ["files"])
