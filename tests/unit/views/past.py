"""Runs of templates on engines with what they cost, put into a store by a few words."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.query import EngineId, QueryStatus, TemplateId
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, query_event, unique
from tests.ui.scenario import rows_of
from tests.unit.spend.ledger import HOUR, Ledger, Part

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore


def ran(
    store: TelemetryStore,
    template: str,
    engine: str,
    seconds: Sequence[float],
    *,
    failed: int = 0,
    until: datetime = NOW,
    estimated_bytes: int | None = None,
    estimated_files: int | None = None,
    queue_ms: float = 0.0,
    protocol: str = "trinoHttp",
    group: str | None = None,
    trace: str = "[]",
    **given: Any,
) -> None:
    """Runs of a template, one every minute before `until`; the first of them fail."""
    events, routed = [], []
    for number, each in enumerate(seconds):
        at = until - timedelta(minutes=1 + number)
        is_routed = estimated_bytes is not None or queue_ms or protocol == "shadow" or group
        gateway_id = unique("g") if is_routed else None
        values = {
            "engine_id": EngineId(engine),
            "template_id": TemplateId(template),
            "submitted_at": at,
            "elapsed_ms": each * 1_000,
            "status": QueryStatus.FAILED if number < failed else QueryStatus.FINISHED,
            "gateway_id": gateway_id,
        }
        event = query_event(**{**values, **given})
        events.append(event)
        if event.gateway_id is not None:
            routed.append(
                decided(event.gateway_id, at, template, engine)
                | {"estimated_bytes": estimated_bytes, "estimated_files": estimated_files}
                | {"queue_ms": queue_ms}
                | {"engine_ms": each * 1_000, "fetch_ms": 0.0, "protocol": protocol}
                | {"cluster_group": group, "trace": trace}
            )
    store.upsert("query_event", to_arrow("query_event", events))
    if routed:
        store.upsert("routing_decision", rows_of("routing_decision", routed))


def decided(gateway_id: str, at: datetime, template: str, engine: str) -> dict[str, Any]:
    """A row of the gateway about a statement."""
    return {
        "gateway_id": gateway_id,
        "submitted_at": at,
        "ended_at": at + timedelta(seconds=1),
        "protocol": "trinoHttp",
        "status": "finished",
        "engine_id": engine,
        "template_id": template,
        "attempts": 1,
        "source_dialect": "trino",
        "user_name": "ana",
        "trace": "[]",
    }


def cost(
    store: TelemetryStore, prices: dict[tuple[str, str], str], *, until: datetime = NOW
) -> None:
    """What a run of a template cost on an engine, in each of the last hours."""
    ledger = Ledger()
    for number in range(6):
        at = until.replace(minute=0, second=0, microsecond=0) - number * HOUR
        for (template, engine), price in prices.items():
            ledger.charge(
                at,
                engine,
                Part(cost=price, user="ana", template=template),
                meter=f"uptime-{template}",
            )
    ledger.write(store)
