"""How long a job held how many slots, put together from one look after the other. Pure.

Flink tells the present state and when it was entered. Between two looks a job may have restarted or
changed its parallelism; what cannot be known then is left out, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collectors.flink.mapping import slots_of, status_of
from collectors.flink.payload import moment, section

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Held:
    """A stretch of time with a constant number of slots."""

    started_at: datetime
    ended_at: datetime
    slots: int


def held_slots(before: Held | None, detail: Mapping[str, Any]) -> list[Held]:
    """The stretches that are new or longer than `before`, oldest first; the last one goes on.

    Raises:
        BadRowError: a value does not fit.
    """
    since, until = moment(section(detail, "timestamps"), "RUNNING"), _until(detail)
    slots = slots_of(detail)
    if since is None or until is None or not slots:
        return []
    if before is None or before.started_at < since:  # it (re)started since the last look
        closed = [_closed(before, detail, since)] if before is not None else []
        return [*closed, Held(since, max(since, until), slots)]
    if before.slots != slots:
        return [Held(before.ended_at, max(before.ended_at, until), slots)]
    return [Held(before.started_at, max(before.ended_at, until), slots)]


def _until(detail: Mapping[str, Any]) -> datetime | None:
    """Until when its slots are known to be held."""
    if status_of(detail).revision == 2:
        return moment(detail, "end-time")
    if detail.get("state") == "RESTARTING":  # they are given back meanwhile
        return moment(section(detail, "timestamps"), "RESTARTING")
    return moment(detail, "now")


def _closed(before: Held, detail: Mapping[str, Any], since: datetime) -> Held:
    """The stretch before a restart, as long as is known."""
    restarted = moment(section(detail, "timestamps"), "RESTARTING")
    if restarted is not None and before.ended_at < restarted <= since:
        return Held(before.started_at, restarted, before.slots)
    return before
