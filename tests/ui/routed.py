"""Statements that came through a gateway, as it would record them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.routed import RoutedQuery
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore

MISSED = ("rule", "routers[0] header", "no match", "")
WRITES = ("rule", "routers[1] queryRegex", "group batch", "rules[0]")
FALLBACK = ("fallback", "routingFallback", "group interactive", "no rule claims it")
CHOSEN = ("strategy", "interactive", "duckdb", "latencyOptimized: no profile yet, first member")


def statement(gateway_id: str, at: datetime, *steps: tuple[str, ...], **given: Any) -> RoutedQuery:
    """One statement with the steps of its decision."""
    names = ("stage", "subject", "result", "detail")
    values: dict[str, Any] = {
        "protocol": "trinoHttp",
        "status": "finished",
        "source_dialect": "trino",
        "target_dialect": "duckdb",
        "translation": "translated",
        "attempts": 1,
        "user_name": "ana",
        "cluster_group": "interactive",
        "member": "duckdb",
        "engine_id": "duckdb",
        "decision_ms": 0.21,
        "queue_ms": 0.04,
        "engine_ms": 84.0,
        "fetch_ms": 12.5,
        "rows_sent": 120,
        "bytes_sent": 48_000,
    }
    trace = json.dumps([dict(zip(names, step, strict=False)) for step in steps])
    return RoutedQuery(
        gateway_id=gateway_id,
        submitted_at=at,
        ended_at=at + timedelta(milliseconds=100),
        trace=trace,
        **values | given,
    )


def fill(store: TelemetryStore, now: datetime) -> None:
    """Some minutes of statements: read, written, refused."""
    found = [
        statement(
            f"gw-read-{n}",
            now - timedelta(minutes=n + 1),
            MISSED,
            FALLBACK,
            CHOSEN,
            user_name=("ana", "analyst")[n % 2],
        )
        for n in range(12)
    ]
    found += [
        statement(
            f"gw-write-{n}",
            now - timedelta(minutes=3 * n + 2),
            MISSED,
            WRITES,
            cluster_group="batch",
            member="spark",
            engine_id="spark",
            user_name="etl_nightly",
        )
        for n in range(4)
    ]
    refused = {"status": "failed", "denial": "guard", "denial_rule": "read_only", "attempts": 0}
    found.append(
        statement(
            "gw-refused", now - timedelta(minutes=4), MISSED, WRITES, engine_id=None, **refused
        )
    )
    store.upsert("routing_decision", to_arrow("routing_decision", found))
