"""What of an action is in its table: its commits, whether their rows were compared, what is left.

Nothing leaves RUNNING while a commit of it stands that nobody has compared with what was before:
whatever the job said, and however it died.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse_core.maintenance.verify import OPERATION, commits_of, parts_left, parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.catalog.metadata import TableMetadata
    from lakehouse_core.domain.maintenance import Action
    from lakehouse_core.maintenance.before import Before
    from lakehouse_core.maintenance.job import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What an action has done to its table so far.

    Attributes:
        commits: of its last run, newest first; those that are in the table's history.
        uncompared: those of them whose rows nobody has compared with the rows before.
        parts: how many parts it is done in; 0 when it is done at once.
        left: how many of them are not committed, by this run or an earlier one.
        taken_back: a commit of its last run, when none of them is in the history any more.
        gone: why there is no such table, when there is none.
    """

    commits: tuple[int, ...] = ()
    uncompared: tuple[int, ...] = ()
    parts: int = 0
    left: int = 0
    taken_back: int | None = None
    gone: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether nothing of it is left to do."""
        return bool(self.commits or self.parts) and not self.left

    def in_words(self) -> str:
        """What of it stands, as the end of a sentence."""
        if self.gone:
            return "the table is gone"
        done = self.parts - self.left
        if self.left and done:
            return (
                f"{done} of its {self.parts} parts are committed and stay; their rows were "
                "compared with those before and are the same"
            )
        return "the table is as it was"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """Commits that stand and have to be compared by a job of their own.

    Attributes:
        folder: of the run that made them.
    """

    action: Action
    folder: RunFolder
    commits: tuple[int, ...]


def standing_of(
    action: Action,
    told: Mapping[str, Any] | None,
    metadata: TableMetadata,
    before: Before,
    *,
    is_remote: bool,
) -> Standing:
    """What the table says of an action.

    Args:
        action: after its job.
        told: what the job says of it, or a later one that compared its commits.
        metadata: of the table now.
        before: the table before the job.
        is_remote: its commits do not carry its operation.
    """
    said = told or {}
    base = before.refs.get("main")
    commits = tuple(commits_of(action, told, metadata, is_remote=is_remote, base=base))
    compared = {int(one) for one in said.get("compared") or ()}
    # A difference that was found is the last word; what came after it is not looked at.
    is_judged = any(not one.get("ok", True) for one in said.get("checks") or ())
    made = (
        one.snapshot_id
        for one in metadata.snapshots
        if one.summary.get(OPERATION) == action.operation_id
    )
    return Standing(
        commits=commits,
        uncompared=() if is_judged else tuple(one for one in commits if one not in compared),
        parts=len(parts_of(action)),
        left=parts_left(action, metadata),
        taken_back=None if commits else next(made, None),
    )
