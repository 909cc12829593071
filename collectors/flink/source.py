"""Flink's jobs and checkpoints, pulled from the JobManager's REST interface."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from collectors.base import BadRowError, Batch, SourceCapabilities
from collectors.flink.mapping import (
    JobPayloads,
    lost,
    status_of,
    to_checkpoints,
    to_event,
    to_job,
)
from collectors.flink.payload import number
from collectors.flink.position import FlinkPosition, RunningJob
from collectors.flink.slots import Held, held_slots
from collectors.letters import dead_letter, gap_letter
from collectors.rest import RestApi
from collectors.understanding import Observed, Understanding
from lakehouse_core.domain.agent import DeadLetter, Watermark
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.errors import SourceError, SourceUnavailableError
from lakehouse_core.domain.flink import SlotTime
from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from collectors.flink.config import FlinkSettings

TABLES = ("query_event", "flink_job", "flink_slot_time", "flink_checkpoint")
_ENDED_COUNTS = ("jobs-finished", "jobs-cancelled", "jobs-failed")

Listed = dict[str, dict[str, Any]]


@dataclass(slots=True)
class _Haul:
    """What one batch gathers."""

    observed: list[Observed] = field(default_factory=list)
    more: dict[str, list[object]] = field(default_factory=dict)
    letters: list[DeadLetter] = field(default_factory=list)

    def add(self, table: str, *records: object) -> None:
        self.more.setdefault(table, []).extend(records)


class FlinkSource:
    """Looks at every job that is not over, and once more at each one that ended."""

    def __init__(
        self, settings: FlinkSettings, understanding: Understanding, clock: Clock = utc_now
    ) -> None:
        self.name = str(settings.engine_id)
        self.capabilities = SourceCapabilities(
            tables=TABLES, freshness_lag=timedelta(seconds=1), overlap=timedelta(0)
        )
        self._settings = settings
        self._understanding = understanding
        self._clock = clock

    def pull(self, since: Watermark | None) -> Iterator[Batch]:
        """Yield new and changed jobs, oldest first.

        Raises:
            SourceUnavailableError: the JobManager does not answer, is starting, or is busy.
            SourceError: it refuses us, or is none.
        """
        position = FlinkPosition.parse(since.position if since else None, self._clock())
        newest_at = since.event_at if since else None
        first = _Haul()
        with RestApi(self._settings.server) as api:
            # Counted before listed: a job that ends in between is seen, not missed.
            counted, leader = self._ended_jobs(api), _leader(api)
            is_restarted = position.is_restarted(leader, counted)
            if is_restarted:
                self._note_restart(position, leader, first)
            listed = self._list(api, first)
            wanted = [i for i in _oldest_first(listed) if i not in position.settled]
            if first.letters:
                yield self._batch(first, position, newest_at)
            for ids in _chunks(wanted, self._settings.batch_jobs):
                haul = _Haul()
                for job_id in ids:
                    self._take(api, listed[job_id], position, haul)
                newest_at = _newest(newest_at, haul.observed)
                yield self._batch(haul, position, newest_at)
        last = _Haul()
        self._close_the_lost(position, listed, last, is_restarted=is_restarted)
        # The details of a job are cached: it may still run there when the list knows its end.
        pending = sum(_is_over(listed[i]) for i in position.running)
        missed = position.finish_listing(leader, counted, listed, pending=pending)
        if missed:
            self._note_missed(position, missed, last)
        yield self._batch(last, position, newest_at)

    def _ended_jobs(self, api: RestApi) -> int:
        overview = api.answer("/overview", dict)
        try:
            return sum(number(overview, name) or 0 for name in _ENDED_COUNTS)
        except BadRowError as error:
            url = self._settings.server.url
            raise SourceError(f"{url}/overview cannot be understood ({error})") from error

    def _list(self, api: RestApi, haul: _Haul) -> Listed:
        answer = api.answer("/jobs/overview", dict)
        jobs = answer.get("jobs")
        if not isinstance(jobs, list):
            raise SourceError(
                f"{self._settings.server.url}/jobs/overview holds no list of jobs; check that the "
                f"address is that of {self._settings.server.name}"
            )
        listed: Listed = {}
        for job in jobs:
            job_id = job.get("jid") if isinstance(job, dict) else None
            if isinstance(job_id, str) and job_id:
                listed[job_id] = job
            else:
                haul.letters.append(self._letter(job, "an entry of the job list has no jid"))
        return listed

    def _take(
        self, api: RestApi, entry: Mapping[str, Any], position: FlinkPosition, haul: _Haul
    ) -> None:
        known = position.running.get(str(entry["jid"]))
        job = JobPayloads(listed=entry)
        try:
            job = _ask(api, entry)
            event = to_event(
                self._settings.engine_id,
                self._settings.server.url,
                job,
                known.event if known else None,
                self._clock(),
            )
            held = held_slots(known.held if known else None, job.detail) if job.detail else []
            self._gather(job, held, haul)
        except BadRowError as error:
            haul.letters.append(self._letter(entry, f"job {job.job_id}: {error}"))
            if _is_over(entry):  # it does not get better; one that runs is looked at again
                position.settle(job.job_id)
            return
        observed = Observed(event)
        haul.observed.append(observed)
        if event.status.revision == QueryStatus.FINISHED.revision:
            position.settle(job.job_id)
        else:
            still = held[-1] if held else (known.held if known else None)
            position.running[job.job_id] = RunningJob(self._understanding.event(observed), still)

    def _gather(self, job: JobPayloads, held: Sequence[Held], haul: _Haul) -> None:
        """Rows beside the event; nothing is gathered of a job that cannot be understood."""
        engine_id = self._settings.engine_id
        row = to_job(engine_id, job, self._clock())
        checkpoints = list(to_checkpoints(engine_id, job))
        haul.add("flink_job", row)
        haul.add("flink_checkpoint", *checkpoints)
        haul.add(
            "flink_slot_time",
            *(
                SlotTime(
                    engine_id=engine_id,
                    job_id=job.job_id,
                    started_at=stretch.started_at,
                    ended_at=stretch.ended_at,
                    slots=stretch.slots,
                )
                for stretch in held
            ),
        )

    def _note_restart(self, position: FlinkPosition, leader: str | None, haul: _Haul) -> None:
        gap_id = f"leader:{position.leader}:{leader}:{position.counted}"
        reason = (
            "the JobManager was restarted since it was last read: jobs that came and went in "
            "between are lost; let it archive them (jobmanager.archive.fs.dir) to look them up"
        )
        haul.letters.append(gap_letter(self.name, gap_id, reason, self._clock()))
        position.begin(leader)

    def _note_missed(self, position: FlinkPosition, missed: int, haul: _Haul) -> None:
        reason = (
            f"{missed} job(s) ended and were dropped before they were read; collect more often, or "
            "raise jobstore.expiration-time and jobstore.max-capacity in Flink"
        )
        gap_id = f"missed:{position.leader}:{position.ended}"
        haul.letters.append(gap_letter(self.name, gap_id, reason, self._clock()))

    def _close_the_lost(
        self, position: FlinkPosition, listed: Listed, haul: _Haul, *, is_restarted: bool
    ) -> None:
        """Jobs Flink no longer knows: their end is recorded as what it is, not known."""
        now = self._clock()
        reason = "Flink forgot this job before its end was read; how it ended is not known"
        if is_restarted:
            reason = "the JobManager was restarted while this job ran, and did not take it up again"
        for job_id in [i for i in position.running if i not in listed]:
            haul.observed.append(Observed(lost(position.running[job_id].event, reason)))
            haul.letters.append(gap_letter(self.name, job_id, f"{job_id}: {reason}", now))
            del position.running[job_id]
            position.ended += not is_restarted  # a new JobManager does not count it

    def _batch(self, haul: _Haul, position: FlinkPosition, newest_at: datetime | None) -> Batch:
        rows = self._understanding.rows(haul.observed)
        rows |= {table: to_arrow(table, found) for table, found in haul.more.items() if found}
        return Batch(
            rows=rows,
            dead_letters=tuple(haul.letters),
            watermark=Watermark(
                source=self.name,
                position=position.dump(),
                event_at=newest_at,
                updated_at=self._clock(),
            ),
        )

    def _letter(self, payload: object, reason: str) -> DeadLetter:
        text = json.dumps(payload, sort_keys=True, ensure_ascii=False)
        return dead_letter(self.name, text, reason, self._clock())


def _ask(api: RestApi, entry: Mapping[str, Any]) -> JobPayloads:
    """Everything about one job; what Flink has dropped meanwhile is missing."""
    path = f"/jobs/{quote(str(entry['jid']), safe='')}"
    detail = api.item(path, dict)
    if detail is None:
        return JobPayloads(listed=entry)
    has_failed = detail.get("state") == "FAILED"
    return JobPayloads(
        listed=entry,
        detail=detail,
        checkpoints=api.item(f"{path}/checkpoints", dict),
        checkpoint_config=api.item(f"{path}/checkpoints/config", dict),
        exceptions=api.item(f"{path}/exceptions", dict) if has_failed else None,
    )


def _is_over(entry: Mapping[str, Any]) -> bool:
    try:
        return status_of(entry).revision == QueryStatus.FINISHED.revision
    except BadRowError:
        return False


def _leader(api: RestApi) -> str | None:
    """What tells one start of the JobManager from another: a folder it makes for itself."""
    try:
        settings = api.item("/jobmanager/config", list)
    except SourceUnavailableError:
        raise
    except SourceError:
        return None  # not everybody may read the configuration
    for setting in settings or ():
        if isinstance(setting, dict) and setting.get("key") == "web.tmpdir":
            return hashlib.sha256(str(setting.get("value")).encode()).hexdigest()[:16]
    return None


def _oldest_first(listed: Listed) -> list[str]:
    def began(job_id: str) -> tuple[int, str]:
        start = listed[job_id].get("start-time")
        return (start if isinstance(start, int) else 0, job_id)

    return sorted(listed, key=began)


def _newest(known: datetime | None, observed: Sequence[Observed]) -> datetime | None:
    times = [o.event.ended_at or o.event.submitted_at for o in observed]
    return max([*times, *([known] if known else [])], default=None)


def _chunks(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
