"""Lines of an event log: which event it is, and its fields, without parsing more than is wanted.

Nine of ten lines are about tasks. Of these only a few numbers are wanted: msgspec steps over the
rest without making objects of it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from collectors.torn import decoded

_NAME_START = b'{"Event":"'
_NAME_AT = len(_NAME_START)


class Bytes(msgspec.Struct, frozen=True, gc=False):
    """What a task read."""

    size: int = msgspec.field(name="Bytes Read", default=0)
    rows: int = msgspec.field(name="Records Read", default=0)


class Written(msgspec.Struct, frozen=True, gc=False):
    """What a task wrote."""

    size: int = msgspec.field(name="Bytes Written", default=0)
    rows: int = msgspec.field(name="Records Written", default=0)


class Metrics(msgspec.Struct, frozen=True, gc=False):
    """What was measured about a task."""

    cpu_ns: int = msgspec.field(name="Executor CPU Time", default=0)
    spilled: int = msgspec.field(name="Disk Bytes Spilled", default=0)
    read: Bytes | None = msgspec.field(name="Input Metrics", default=None)
    written: Written | None = msgspec.field(name="Output Metrics", default=None)


class TaskStart(msgspec.Struct, frozen=True, gc=False):
    """A task begins."""

    stage: int = msgspec.field(name="Stage ID")


class TaskEnd(msgspec.Struct, frozen=True, gc=False):
    """A task ended, in whatever way."""

    stage: int = msgspec.field(name="Stage ID")
    metrics: Metrics | None = msgspec.field(name="Task Metrics", default=None)


class StageInfo(msgspec.Struct, frozen=True, gc=False):
    """Which stage it is."""

    stage: int = msgspec.field(name="Stage ID")


class StageSubmitted(msgspec.Struct, frozen=True):
    """A stage begins; its properties name the query it works for."""

    info: StageInfo = msgspec.field(name="Stage Info")
    properties: dict[str, Any] | None = msgspec.field(name="Properties", default=None)


TYPED: dict[str, type[msgspec.Struct]] = {
    "SparkListenerTaskStart": TaskStart,
    "SparkListenerTaskEnd": TaskEnd,
    "SparkListenerStageSubmitted": StageSubmitted,
}
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    name: msgspec.json.Decoder(kind) for name, kind in TYPED.items()
}
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
BAD_LINE = (KeyError, TypeError, ValueError, AttributeError, msgspec.MsgspecError)


def event_name(line: bytes) -> str:
    """The event's class without its package.

    Raises:
        ValueError, MsgspecError: the line is not a JSON object with an `Event`.
    """
    if line.startswith(_NAME_START) and line.endswith(b"}"):
        name = line[_NAME_AT : line.index(b'"', _NAME_AT)].decode("utf-8", "replace")
    else:
        event = decoded(_ANY, line)
        found = event.get("Event") if isinstance(event, dict) else None
        if not isinstance(found, str):
            raise ValueError("not an event")
        name = found
    return name.rpartition(".")[2]


def decode(name: str, line: bytes) -> Any:
    """The event: one of the types above for these, else a dictionary.

    Raises:
        MsgspecError, ValueError: it is no JSON, no UTF-8, or lacks what such an event always has.
    """
    return decoded(_DECODERS.get(name, _ANY), line)
