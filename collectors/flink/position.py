"""How far Flink's history has been read: which jobs are settled, which still run.

A JobManager keeps ended jobs for an hour by default, and only since it became the leader. It counts
all that ended, also those it has forgotten: the difference to what was seen is what was missed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collectors.events import from_json, parse_time, to_json
from collectors.flink.slots import Held
from collectors.positions import dump, load

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from lakehouse_core.domain.query import QueryEvent

_VERSION = 1


@dataclass(slots=True)
class RunningJob:
    """A job that was not over when last seen."""

    event: QueryEvent
    held: Held | None = None


@dataclass(slots=True)
class FlinkPosition:
    """What has been read; changed job by job, written down with each batch.

    Attributes:
        leader: which start of the JobManager this is about; None when it does not tell.
        counted: how many ended jobs it counted when last asked; None before the first time.
        ended: how many of them were seen or written off.
        settled: ended jobs that are in the store and still remembered by Flink.
    """

    leader: str | None = None
    counted: int | None = None
    ended: int = 0
    settled: set[str] = field(default_factory=set)
    running: dict[str, RunningJob] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None, now: datetime) -> FlinkPosition:
        """Read a stored position.

        Raises:
            SourceError: it was not written by this source.
        """
        if text is None:
            return cls()

        def build(data: dict[str, Any]) -> FlinkPosition:
            running = {jid: _running(job, now) for jid, job in data["running"].items()}
            return cls(
                data["leader"], data["counted"], int(data["ended"]), set(data["settled"]), running
            )

        return load(text, _VERSION, "Flink", build)

    def dump(self) -> str:
        """The position as text."""
        return dump(
            _VERSION,
            leader=self.leader,
            counted=self.counted,
            ended=self.ended,
            settled=sorted(self.settled),
            running={jid: _dump(job) for jid, job in self.running.items()},
        )

    def is_restarted(self, leader: str | None, counted: int) -> bool:
        """Whether another JobManager answers than the last time."""
        if self.counted is None:
            return False
        if leader is not None and self.leader is not None:
            return leader != self.leader
        return counted < self.counted

    def begin(self, leader: str | None) -> None:
        """Start anew with another JobManager: it has forgotten what the last one knew."""
        self.leader, self.counted, self.ended = leader, 0, 0
        self.settled.clear()

    def settle(self, job_id: str) -> None:
        """Note that an ended job was taken."""
        if job_id not in self.settled:
            self.settled.add(job_id)
            self.ended += 1
        self.running.pop(job_id, None)

    def finish_listing(
        self, leader: str | None, counted: int, listed: Collection[str], *, pending: int = 0
    ) -> int:
        """Note that a whole listing was read; returns how many ended jobs were never seen.

        `pending` ended jobs are listed, but will be settled later.
        """
        is_first = self.counted is None
        missed = max(0, counted - self.ended - pending)
        self.leader, self.counted = leader, counted
        self.ended += missed
        self.settled.intersection_update(listed)
        return 0 if is_first else missed


def _dump(job: RunningJob) -> dict[str, Any]:
    data: dict[str, Any] = {"event": to_json(job.event)}
    if job.held is not None:
        held = job.held
        data["held"] = [held.started_at.isoformat(), held.ended_at.isoformat(), held.slots]
    return data


def _running(data: dict[str, Any], now: datetime) -> RunningJob:
    held = None
    if "held" in data:
        start, end, slots = data["held"]
        held = Held(parse_time(start), parse_time(end), int(slots))
    return RunningJob(from_json(data["event"], now), held)
