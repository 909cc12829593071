# ruff: noqa: N815 the names are Trino's
"""The parts of Trino's query events that we read, with their types; everything else is skipped.

Field names are Trino's. Durations are seconds, moments ISO 8601 in UTC. JSON has no cycles, so the
garbage collector need not look at these records.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Metadata(msgspec.Struct, gc=False):
    """What was asked, and how it ended."""

    queryId: str
    query: str
    queryState: str
    updateType: str | None = None


class Statistics(msgspec.Struct, gc=False):
    """What it took; a query that was refused at once has zeros and no execution time."""

    cpuTime: float | None = None
    queuedTime: float | None = None
    planningTime: float | None = None
    executionTime: float | None = None
    physicalInputBytes: int | None = None
    physicalInputRows: int | None = None
    outputRows: int | None = None
    writtenRows: int | None = None
    peakUserMemoryBytes: int | None = None
    spilledBytes: int | None = None
    operatorSummaries: list[str] = []


class Context(msgspec.Struct, gc=False):
    """Who asked, and from where."""

    user: str | None = None
    source: str | None = None
    clientTags: list[str] = []
    traceToken: str | None = None
    catalog: str | None = None
    schema: str | None = None
    queryType: str | None = None


class Input(msgspec.Struct, gc=False):
    """A table that was read; each connector has its own information about it."""

    connectorInfo: Any = None


class InputsAndOutput(msgspec.Struct, gc=False):
    """The tables."""

    inputs: list[Input] = []


class ErrorCode(msgspec.Struct, gc=False):
    """Trino's name for an error, and whose fault it is."""

    name: str
    type: str


class Failure(msgspec.Struct, gc=False):
    """Why it failed."""

    errorCode: ErrorCode
    failureMessage: str | None = None


class Event(msgspec.Struct, gc=False):
    """A created event (no statistics) or a completed one."""

    metadata: Metadata
    context: Context
    createTime: str
    statistics: Statistics | None = None
    ioMetadata: InputsAndOutput | None = None
    failureInfo: Failure | None = None
    executionStartTime: str | None = None
    endTime: str | None = None


class Operator(msgspec.Struct, gc=False):
    """An operator summary, which comes as JSON inside a text."""

    physicalWrittenDataSize: str | None = None
