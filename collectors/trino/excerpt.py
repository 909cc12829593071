"""A completed event without its bulk: plans, stages and operators are most of it, and not ours.

A completed event of Trino has 15 to 900 kB, of which a row needs two. The bulk is cut out where its
names stand. That is safe: inside a JSON string every quote has a backslash before it, so `,"name":`
is always structure. What is left is parsed like anything else.
"""

from __future__ import annotations

from dataclasses import dataclass

_PLAN = b',"plan":"'
_STATISTICS = b'},"statistics":{'
_BULK = b',"stageGcStatistics":'
_CONTEXT = b'},"context":{'
# Operators are JSON inside strings: one level of quoting.
_WRITTEN = rb"\"physicalWrittenDataSize\":\""


@dataclass(frozen=True, slots=True)
class Excerpt:
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
    kept = body[:plan] + body[statistics:bulk] + body[context:]
    if body.find(b',"updateType":', 0, plan) < 0:
        return Excerpt(kept)
    return Excerpt(kept, _written(body[bulk:context]))


def _written(bulk: bytes) -> int | None:
    sizes = [piece[: piece.find(b"B")] for piece in bulk.split(_WRITTEN)[1:]]
    return sum(map(int, sizes)) if sizes and all(size.isdigit() for size in sizes) else None
