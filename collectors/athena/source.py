"""Athena's query history: ListQueryExecutions → BatchGetQueryExecution, workgroup by workgroup."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from collectors.athena.client import AthenaApi
from collectors.athena.faults import ForbiddenError, RefusedRequestError
from collectors.athena.position import AthenaPosition, WorkgroupPosition
from collectors.athena.workgroup import Haul, WorkgroupReader
from collectors.base import Batch, SourceCapabilities
from collectors.understanding import TABLES, Understanding
from lakehouse_core.domain.agent import Watermark
from lakehouse_core.domain.clock import Clock, utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from collectors.athena.config import AthenaSettings
    from lakehouse_core.domain.errors import SourceError


class AthenaSource:
    """Reads what is new since the last time; each query's final form once."""

    def __init__(
        self, settings: AthenaSettings, understanding: Understanding, clock: Clock = utc_now
    ) -> None:
        self.name = str(settings.engine_id)
        self.capabilities = SourceCapabilities(
            tables=TABLES, freshness_lag=timedelta(seconds=5), overlap=settings.overlap
        )
        self._settings = settings
        self._understanding = understanding
        self._clock = clock

    def pull(self, since: Watermark | None) -> Iterator[Batch]:
        """Yield new and changed queries; a workgroup that is refused does not stop the others.

        Raises:
            SourceUnavailableError: Athena does not answer or asks us to slow down.
            SourceError: it refuses us, or one of the workgroups.
        """
        position = AthenaPosition.parse(since.position if since else None)
        newest_at = since.event_at if since else None
        refused: SourceError | None = None
        with AthenaApi(self._settings) as api:
            for name in self._settings.workgroups:
                own = position.workgroups.setdefault(name, WorkgroupPosition())
                reader = WorkgroupReader(
                    name, self._settings, own, self._understanding, self._clock()
                )
                try:
                    for haul in reader.read(api):
                        newest_at = _newest(newest_at, haul)
                        yield self._batch(haul, position, newest_at)
                except (RefusedRequestError, ForbiddenError) as error:
                    refused = refused or error
        if refused is not None:
            raise refused

    def _batch(self, haul: Haul, position: AthenaPosition, newest_at: datetime | None) -> Batch:
        return Batch(
            rows=self._understanding.rows(haul.observed),
            dead_letters=tuple(haul.letters),
            watermark=Watermark(
                source=self.name,
                position=position.dump(),
                event_at=newest_at,
                updated_at=self._clock(),
            ),
        )


def _newest(known: datetime | None, haul: Haul) -> datetime | None:
    times = [o.event.ended_at or o.event.submitted_at for o in haul.observed]
    return max([*times, *([known] if known else [])], default=None)
