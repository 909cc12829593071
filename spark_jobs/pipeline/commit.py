"""Commits that meet other writers: planned again, tried again, given up by name."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# Classes of Iceberg and of its JDBC catalog. A session on a server has their names only as text.
CONFLICTS = (
    "CommitFailedException",
    "CommitStateUnknownException",
    "ValidationException",
    "AlreadyExistsException",
    "SQLITE_BUSY",
)
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 20.0


class CommitConflictError(Exception):
    """Raised when a table could not be committed to because other writers were always faster."""


@dataclass(slots=True)
class Commits:
    """Runs writes; counts how often one had to be repeated."""

    attempts: int
    retries: int = 0
    pause: Callable[[float], None] = time.sleep
    luck: random.Random = field(default_factory=random.Random)

    def run(self, table: str, write: Callable[[], T]) -> T:
        """The result of `write`, which is called again from the start after a conflict.

        `write` must find out itself what there is left to do: a commit whose outcome is unknown
        may have happened.

        Raises:
            CommitConflictError: every attempt met a conflict; names table and conflict.
        """
        for attempt in range(1, self.attempts + 1):
            try:
                return write()
            except Exception as error:
                conflict = conflict_in(error)
                if conflict is None:
                    raise
                if attempt == self.attempts:
                    raise CommitConflictError(
                        f"Table {table} could not be committed to: {self.attempts} attempts met "
                        f"{conflict}. Another writer changes the same rows; stop it or run again "
                        "later"
                    ) from error
                self.retries += 1
                print(f"conflict on {table}, attempt {attempt}: {conflict}", flush=True)
                longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**attempt)
                self.pause(self.luck.uniform(longest / 2, longest))
        raise AssertionError("unreachable: the last attempt returns or raises")


def conflict_in(error: BaseException) -> str | None:
    """The conflict an error stands for, in one line; None when it is something else."""
    text = str(error)
    for name in CONFLICTS:
        if name in text:
            line = next(line for line in text.splitlines() if name in line)
            return " ".join(line.split())[:300]
    return None
