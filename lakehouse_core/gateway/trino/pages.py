"""Answers of the statement resource: one page of a result, as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from lakehouse_core.gateway.flight import Flight
    from lakehouse_core.gateway.trino.errors import TrinoError

_DONE_COLUMNS: list[dict[str, Any]] = [
    {
        "name": "result",
        "type": "boolean",
        "typeSignature": {"rawType": "boolean", "arguments": []},
    }
]
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True, kw_only=True)
class Page:
    """What one answer tells.

    Attributes:
        query_id: the id the client knows.
        base: where the client reaches us.
        next_path: where it asks next; None: this is the last page.
        columns: known from the first page with rows on.
        data: rows as JSON.
        headers: what the client is to remember.
    """

    query_id: str
    base: str
    state: str
    next_path: str | None = None
    columns: list[dict[str, Any]] | None = None
    data: bytes | None = None
    stats: dict[str, Any] = field(default_factory=dict)
    error: TrinoError | None = None
    update_type: str | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)

    def put_done(self, update_type: str) -> None:
        """Say of a statement without rows that it is done, as Trino does: drivers want columns."""
        self.update_type, self.columns, self.data = update_type, _DONE_COLUMNS, b"[[true]]"

    def encode(self) -> bytes:
        """The page in the order in which Trino writes it."""
        document: dict[str, Any] = {
            "id": self.query_id,
            "infoUri": f"{self.base}/ui/query.html?{self.query_id}",
        }
        if self.next_path is not None:
            document["nextUri"] = f"{self.base}{self.next_path}"
        if self.columns is not None:
            document["columns"] = self.columns
        if self.data is not None:
            document["data"] = msgspec.Raw(self.data)
        document["stats"] = _stats(self.state, self.stats)
        if self.error is not None:
            document["error"] = self.error.to_json()
        document["warnings"] = []
        if self.update_type is not None:
            document["updateType"] = self.update_type
        return _encode(document)


def flight_stats(flight: Flight, now: float) -> dict[str, Any]:
    """What is known of a query that an engine of ours serves."""
    cost = flight.cost
    end = flight.ended or now
    queued_until = flight.admitted or end
    return {
        "queuedTimeMillis": int((queued_until - flight.submitted) * 1_000),
        "elapsedTimeMillis": int((end - flight.submitted) * 1_000),
        "wallTimeMillis": int((end - flight.submitted) * 1_000),
        "cpuTimeMillis": int(cost.cpu_ms or 0) if cost else 0,
        "processedRows": (cost.rows_scanned if cost else None) or flight.rows_sent or 0,
        "processedBytes": (cost.bytes_scanned if cost else None) or 0,
        "physicalInputBytes": (cost.bytes_scanned if cost else None) or 0,
        "peakMemoryBytes": (cost.peak_memory_bytes if cost else None) or 0,
    }


def _stats(state: str, known: dict[str, Any]) -> dict[str, Any]:
    is_over = state in ("FINISHED", "FAILED")
    return {
        "state": state,
        "queued": state == "QUEUED",
        "scheduled": state != "QUEUED",
        "progressPercentage": 100.0 if state == "FINISHED" else 0.0,
        "runningPercentage": 0.0 if is_over else 100.0,
        "nodes": 1,
        "totalSplits": 1,
        "queuedSplits": int(state == "QUEUED"),
        "runningSplits": int(state == "RUNNING"),
        "completedSplits": int(is_over),
        "planningTimeMillis": 0,
        "analysisTimeMillis": 0,
        "finishingTimeMillis": 0,
        "physicalInputTimeMillis": 0,
        "physicalWrittenBytes": 0,
        "internalNetworkInputBytes": 0,
        "spilledBytes": 0,
        **known,
    }
