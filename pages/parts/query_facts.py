"""What is known of one query, as small facts beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.views import formatting as f
from pages.parts import cards

if TYPE_CHECKING:
    from lakehouse_core.views.queries import QueryDetail

REPORTERS = {
    "inferred": "worked out by us",
    "gateway": "our gateway",
    "history": "the engine's history",
    "listener": "the engine, as it happened",
}
JOINED = ", and others"


def measures(seen: QueryDetail) -> None:
    """Times, amounts, and who said so."""
    event = seen.event
    cards.facts(
        [
            ("Submitted", f.moment(event.submitted_at)),
            ("User, source", f"{event.user_name or f.UNKNOWN}, {event.source or f.UNKNOWN}"),
            ("Tags", ", ".join(event.tags) or "none"),
            ("Statement", event.statement_kind or f.UNKNOWN),
            ("Duration", f.duration(event.elapsed_ms)),
            ("Queued", f.duration(event.queued_ms)),
            ("Planning", f.duration(event.planning_ms)),
            ("Execution", f.duration(event.execution_ms)),
            ("Scanned", f.amount(event.bytes_scanned, event.rows_scanned)),
            ("Returned", f.amount(None, event.rows_returned)),
            ("Written", f.amount(event.bytes_written, event.rows_written)),
            (
                "CPU / peak memory",
                f"{f.duration(event.cpu_ms)} / {f.size(event.peak_memory_bytes)}",
            ),
            ("Spilled", f.size(event.spilled_bytes)),
            ("Snapshots read", ", ".join(map(str, event.snapshot_ids)) or f.UNKNOWN),
            ("Gateway id", event.gateway_id or "not through our gateway"),
            ("Reported by", REPORTERS[event.reporter] + (JOINED if seen.is_joined else "")),
        ]
    )
