"""A completed event without its bulk: plans, stages and operators are most of it, and not ours.

A completed event of Trino has 15 to 900 kB, of which a row needs two. The bulk is cut out where its
names stand. That is safe: inside a JSON string every quote has a backslash before it, so `,"name":`
is always structure. What is left is parsed like anything else.
"""

from __future__ import annotations

from typing import NamedTuple

_PLAN = b',"plan":"'
# Searching skips by up to the length of what it looks for, and the plan before it is long.
_STATISTICS = b'},"statistics":{"cpuTime":'
_BULK = b',"stageGcStatistics":'
_CONTEXT = b'},"context":{'
_NOTHING_WRITTEN = b',"writtenBytes":0,'
# Operators are JSON inside strings: one level of quoting.
_WRITTEN = rb"\"physicalWrittenDataSize\":\""


class Excerpt(NamedTuple):
    """What is left of a body.

    Attributes:
        body: JSON; the body itself when it has not the form we know.
        written_bytes: what the operators wrote, which only the bulk tells; None: not said.
    """

    body: bytes
    written_bytes: int | None = None


def excerpt(body: bytes) -> Excerpt:
    """Cut the bulk out of a completed event as Trino writes it."""
    if not body.startswith(b'{"metadata":{'):
        return Excerpt(body)
    statistics = body.find(_STATISTICS)
    bulk = body.find(_BULK, statistics)
    context = body.rfind(_CONTEXT)
    if not 0 < statistics < bulk < context:
        return Excerpt(body)
    plan = body.find(_PLAN, 0, statistics)
    if plan < 0:
        plan = statistics
    kept = b"".join((body[:plan], body[statistics:bulk], body[context:]))
    if body.find(b',"updateType":', 0, plan) < 0:
        return Excerpt(kept)
    if body.find(_NOTHING_WRITTEN, statistics, bulk) > 0:
        return Excerpt(kept, 0)
    return Excerpt(kept, _written(body, bulk, context))


def _written(body: bytes, start: int, end: int) -> int | None:
    """What the operators between two places wrote; most wrote nothing, and say so shortly."""
    operators = body[start:end].split(_WRITTEN)[1:]
    total = 0
    for told in operators:
        if not told.startswith(b"0B"):
            size = told[: told.find(b"B")]
            if not size.isdigit():
                return None
            total += int(size)
    return total if operators else None
