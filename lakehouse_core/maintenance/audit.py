"""The audit chain: every step of every action, each row bound to the one before it by a hash.

The newest row's number and hash are also kept in a file beside the store, so that rows cut off the
end are missed too. A store that was put back from an older copy goes on behind the number in that
file: the gap stays, and the check names its first row for ever.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import MaintenanceError
from lakehouse_core.domain.maintenance import AuditEntry
from lakehouse_core.store.durable import sync

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

GENESIS = "0" * 64
AUDIT_SQL = """
SELECT seq, noted_at, actor, verb, action_id, detail, prev_hash, "hash" FROM audit ORDER BY seq
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest row of a chain."""

    seq: int
    hash: str


EMPTY = Head(seq=0, hash=GENESIS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainVerdict:
    """Whether a chain is whole.

    Attributes:
        is_intact: nothing was changed, taken out, put in or cut off.
        entries: rows that were looked at.
        head: the newest row.
        first_bad: number of the first row that is not what it was; None when all are.
        problem: what is wrong with it, in words.
    """

    is_intact: bool
    entries: int
    head: Head
    first_bad: int | None = None
    problem: str | None = None


def canonical(document: Mapping[str, Any]) -> str:
    """A document as the one JSON text that stands for it."""
    return json.dumps(
        document, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=_plain
    )


def entry_hash(entry: AuditEntry) -> str:
    """What binds a row: all it says, its number, and the hash before it."""
    return hashlib.sha256(
        canonical(
            {
                "seq": entry.seq,
                "noted_at": entry.noted_at.astimezone(UTC),
                "actor": entry.actor,
                "verb": entry.verb,
                "action_id": entry.action_id,
                "detail": entry.detail,
                "prev_hash": entry.prev_hash,
            }
        ).encode()
    ).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is to be written down: who did what to which action."""

    actor: str
    verb: str
    action_id: str
    detail: Mapping[str, Any]


def chain(head: Head, notes: Iterable[Note], noted_at: datetime) -> list[AuditEntry]:
    """The rows that follow a head."""
    found: list[AuditEntry] = []
    for note in notes:
        draft = AuditEntry(
            seq=head.seq + 1,
            noted_at=noted_at,
            actor=note.actor,
            verb=note.verb,
            action_id=note.action_id,
            detail=canonical(note.detail),
            prev_hash=head.hash,
            hash="",
        )
        head = Head(seq=draft.seq, hash=entry_hash(draft))
        found.append(replace(draft, hash=head.hash))
    return found


def verify_chain(entries: Iterable[AuditEntry], kept: Head | None) -> ChainVerdict:
    """Check every row against the one before it, and the end against the head that was kept.

    Args:
        entries: the rows in the order of their numbers.
        kept: the head in the file beside the store; None when there is no such file.
    """
    head, count = EMPTY, 0
    for entry in entries:
        found = _problem(entry, head)
        if found is None and kept is not None and entry.seq == kept.seq != 0:
            is_same = entry.hash == kept.hash
            found = (
                None if is_same else (entry.seq, "or one before it was replaced, with all hashes")
            )
        if found is not None:
            return _broken(found[0], f"Row {found[0]} {found[1]}", head, count)
        head, count = Head(seq=entry.seq, hash=entry.hash), count + 1
    if kept is not None and kept.seq > head.seq:
        missing = head.seq + 1
        problem = f"Row {missing} is missing: the chain was cut off before row {kept.seq}"
        return _broken(missing, problem, head, count)
    if kept is None and count:
        return _broken(
            head.seq + 1, f"Whether rows after {head.seq} were cut off cannot be told: the file "
            "with the head of the chain is gone", head, count,
        )  # fmt: skip
    return ChainVerdict(is_intact=True, entries=count, head=head)


def head_file(store_file: Path) -> Path:
    """Where the head of the chain is kept, beside the store."""
    return store_file.with_name(f"{store_file.name}.audit-head")


def read_head(store_file: Path) -> Head | None:
    """The head as last written; None when there was none yet.

    Raises:
        MaintenanceError: the file is not what was written; names it.
    """
    file = head_file(store_file)
    try:
        document = json.loads(file.read_text(encoding="ascii"))
        return Head(seq=int(document["seq"]), hash=str(document["hash"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MaintenanceError(
            f"The head of the audit chain cannot be read from {file}: {error}. Nothing is decided "
            "before it is back, because rows cut off the chain would not be missed"
        ) from error


def write_head(store_file: Path, head: Head) -> None:
    """Keep the head; durable when it returns."""
    file = head_file(store_file)
    partial = file.with_name(f"{file.name}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as out:
        out.write(canonical({"seq": head.seq, "hash": head.hash}))
    sync(partial)
    partial.replace(file)
    sync(file.parent)


def _problem(entry: AuditEntry, head: Head) -> tuple[int, str] | None:
    """The first row that is not what it was, and what is wrong with it."""
    if entry.seq <= head.seq:
        return entry.seq, "is there twice"
    if entry.seq > head.seq + 1:
        return head.seq + 1, "is missing"
    if entry.hash != entry_hash(entry):
        return entry.seq, "was changed after it was written"
    if entry.prev_hash != head.hash:
        # This row is sound in itself: the one before it was changed and given a new hash.
        return max(head.seq, 1), "was replaced: the row after it was written to follow another"
    return None


def _broken(seq: int, problem: str, head: Head, count: int) -> ChainVerdict:
    return ChainVerdict(is_intact=False, entries=count, head=head, first_bad=seq, problem=problem)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value)
