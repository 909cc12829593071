"""Dead letters: payloads that could not be understood, with the reason, without secrets."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from lakehouse_core.domain.agent import DeadLetter
from lakehouse_core.sql.redaction import is_suspicious

if TYPE_CHECKING:
    from datetime import datetime

MAX_PAYLOAD = 4_000


def dead_letter(source: str, payload: str, reason: str, seen_at: datetime) -> DeadLetter:
    """A letter whose id is the hash of its payload, so that a re-read does not double it.

    A payload that cannot be understood cannot be redacted either: one that might hold a secret
    is described instead of kept.
    """
    digest = hashlib.sha256(payload.encode("utf-8", "surrogatepass")).hexdigest()
    kept = payload[:MAX_PAYLOAD]
    if is_suspicious(payload):
        kept = f"({len(payload)} characters, not kept: may hold a secret)"
    return DeadLetter(
        source=source, letter_id=digest[:32], seen_at=seen_at, reason=reason, payload=kept
    )


def gap_letter(source: str, gap_id: str, reason: str, seen_at: datetime) -> DeadLetter:
    """A letter for history that was gone before it was read: shown and counted, no silent zero."""
    digest = hashlib.sha256(f"gap:{gap_id}".encode()).hexdigest()
    return DeadLetter(
        source=source, letter_id=digest[:32], seen_at=seen_at, reason=reason, payload=gap_id
    )
