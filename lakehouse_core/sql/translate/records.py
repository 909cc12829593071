"""What is asked of a translation and what it answers."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.sql.translate.hooks import Hook

Mode = Literal["strict", "best_effort"]


class Outcome(StrEnum):
    """How a translation went.

    IDENTICAL: the text is the one that was given. TRANSLATED: every construct in it is known to
    mean the same on both sides. DOUBTFUL: there is a text, but something in it may mean something
    else there. FAILED: there is no text.
    """

    IDENTICAL = "identical"
    TRANSLATED = "translated"
    DOUBTFUL = "doubtful"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Translation:
    """A text in another dialect.

    Attributes:
        sql: the text; the one that was given when it failed.
        outcome: how it went.
        reason: why it is doubtful or failed; empty otherwise.
    """

    sql: str
    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a translation needs to know besides the text.

    Attributes:
        mode: strict: what the target cannot say fails. best_effort: it is left as it is, doubtful.
        catalogs: what the target calls the catalogs of the source, by the source's names.
        catalog: completes table names that lack theirs; None: they stay as they are.
        schema: as above.
        types: table → column → type, as far as known; without it a division is doubtful.
        hooks: run after parsing or on the finished text, in order.
    """

    mode: Mode = "strict"
    catalogs: Mapping[str, str] = field(default_factory=dict)
    catalog: str | None = None
    schema: str | None = None
    types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    hooks: tuple[Hook, ...] = ()


def diff(before: str, after: str) -> str:
    """What a translation changed, as a unified diff of lines."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "sent", "run", lineterm="", n=1
    )
    return "\n".join(lines)
