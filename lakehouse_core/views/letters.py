"""What could not be understood, by source and reason; and history that was gone before we came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore

# A letter about a gap has the gap's name as its payload and that name's hash as its id
# (collectors/letters.py): nothing else can look so.
_IS_GAP = "letter_id = left(sha256('gap:' || payload), 32)"

LETTERS_SQL = f"""
SELECT source, letter_id, seen_at, reason, left(payload, 2000) AS payload, {_IS_GAP} AS is_gap
FROM dead_letter
WHERE ($source::VARCHAR IS NULL OR source = $source::VARCHAR)
  AND ($kind::VARCHAR IS NULL OR CASE WHEN {_IS_GAP} THEN 'gap' ELSE 'letter' END = $kind::VARCHAR)
ORDER BY seen_at DESC LIMIT $limit::BIGINT
"""  # noqa: S608 constants of this module

# Texts in reasons differ in numbers and names; what is quoted or counted is left out of the group.
REASONS_SQL = f"""
SELECT source,
  regexp_replace(regexp_replace(reason, '''[^'']*''|"[^"]*"', '…', 'g'), '[0-9]+', '#', 'g')
    AS kind_of_reason,
  any_value(reason) AS reason, count(*) AS letters, min(seen_at) AS first_at,
  max(seen_at) AS last_at, arg_max(left(payload, 2000), seen_at) AS payload
FROM dead_letter WHERE NOT ({_IS_GAP})
GROUP BY source, kind_of_reason ORDER BY letters DESC, last_at DESC LIMIT $limit::BIGINT
"""  # noqa: S608 constants of this module


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterRow:
    """A payload that could not be understood, or a gap; long payloads are cut."""

    source: str
    letter_id: str
    seen_at: datetime
    reason: str
    payload: str
    is_gap: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterGroup:
    """Letters of one source with one kind of reason.

    Attributes:
        kind_of_reason: the reason without what differs between letters.
        reason: one of them in full.
        payload: the newest, cut.
    """

    source: str
    kind_of_reason: str
    reason: str
    letters: int
    first_at: datetime
    last_at: datetime
    payload: str


def dead_letters(
    store: TelemetryStore, *, source: str | None = None, limit: int = 50
) -> tuple[DeadLetterRow, ...]:
    """What could not be understood or was gone, newest first."""
    found = store.read(LETTERS_SQL, source=source, kind=None, limit=limit)
    return records(DeadLetterRow, found)


def gaps(store: TelemetryStore, *, limit: int = 50) -> tuple[DeadLetterRow, ...]:
    """History that was gone before it was read, newest first."""
    return records(DeadLetterRow, store.read(LETTERS_SQL, source=None, kind="gap", limit=limit))


def letter_groups(store: TelemetryStore, *, limit: int = 50) -> tuple[LetterGroup, ...]:
    """Dead letters by source and kind of reason, most frequent first; gaps are left out."""
    return records(LetterGroup, store.read(REASONS_SQL, limit=limit))
