"""Engines: what one can do, what state we want it in, what state we see it in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from lakehouse_core.domain.query import EngineId


class ConfiguredState(StrEnum):
    """The state a person or the configuration asked for."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    MAINTENANCE = "maintenance"


class ObservedState(StrEnum):
    """The state our probe saw; only HEALTHY may receive traffic."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    PENDING = "pending"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCapabilities:
    """What generic code may ask of an engine instead of asking for its name.

    Attributes:
        dialect: sqlglot dialect name of its SQL.
        can_write: whether INSERT/MERGE/DDL on Iceberg tables work through the adapter.
        can_cancel: whether a running statement can be stopped from outside.
        reports_bytes: whether its history says how many bytes a query scanned.
        has_own_history: False when we must record its queries ourselves.
    """

    dialect: str
    can_write: bool
    can_cancel: bool
    reports_bytes: bool
    has_own_history: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProbe:
    """One look at an engine; a row of `engine_probe`."""

    engine_id: EngineId
    probed_at: datetime
    observed: ObservedState
    detail: str | None = None
    version: str | None = None
    latency_ms: float | None = None
    running_queries: int | None = None
    queued_queries: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """The state somebody wants an engine to be in; a row of `engine_request`."""

    request_id: str
    asked_at: datetime
    engine_id: EngineId
    configured: str
    actor: str
    reason: str | None
    state: Literal["waiting", "done", "refused"]
    answered_at: datetime | None = None
    answer: str | None = None
