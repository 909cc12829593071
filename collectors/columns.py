"""The columns of the lake's tables, for whoever reads SQL texts: kept, and asked anew at times."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import StoreError
from lakehouse_core.sql.schema import Schema
from lakehouse_core.store.columns import known_columns

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

_log = structlog.get_logger(__name__)

ASK_EVERY = timedelta(minutes=1)


class LakeColumns:
    """Gives an `Understanding` what the store knows of the lake's tables; safe between threads.

    While the store is away the last answer stands: columns change rarely, and texts must go on
    being understood.
    """

    def __init__(self, store: TelemetryStore, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock
        self._asked_at: datetime | None = None
        self._tables: dict[str, list[str]] = {}
        self._known: Schema | None = None
        self._lock = threading.Lock()

    def __call__(self) -> Schema | None:
        """What is known; None when no table was collected yet."""
        with self._lock:
            now = self._clock()
            if self._asked_at is None or now - self._asked_at >= ASK_EVERY:
                self._asked_at = now
                self._ask()
            return self._known

    def _ask(self) -> None:
        try:
            found = known_columns(self._store)
        except StoreError as error:
            _log.warning("columns_not_read", error=str(error), kept_tables=len(self._tables))
            return
        if found != self._tables:
            self._tables = found
            self._known = Schema(found) if found else None
