"""Whole days of the templates' hourly figures, summed up again whenever the pipeline loaded some.

The mark says until which day there are sums, and of which load they are: views read days only while
no later load has changed their hours.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lakehouse_core.domain.agent import Watermark
from lakehouse_core.finops.spend import DAY
from lakehouse_core.store.literals import bind
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.processed import DAYS_SOURCE, read_processed

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore

_DAY = "make_timestamptz(epoch_us(hour_at) // 86400000000 * 86400000000)"
_SUMS = """
  sum(runs)::BIGINT AS runs, sum(finished)::BIGINT AS finished, sum(failed)::BIGINT AS failed,
  sum(cancelled)::BIGINT AS cancelled, sum(unfinished)::BIGINT AS unfinished,
  sum(bytes_scanned)::BIGINT AS bytes_scanned, sum(rows_returned)::BIGINT AS rows_returned
"""
_TIMES = "round(sum(elapsed_ms))::BIGINT AS elapsed_ms, round(sum(cpu_ms))::BIGINT AS cpu_ms"
# Days whose sums are not those of their hours.
CHANGED_SQL = f"""
WITH hours AS (
  SELECT {_DAY} AS day_at, {_SUMS}, {_TIMES} FROM template_hour
  WHERE runs > 0 AND hour_at < $until::TIMESTAMPTZ GROUP BY ALL
), days AS (
  SELECT day_at, {_SUMS}, {_TIMES} FROM template_day WHERE day_at < $until::TIMESTAMPTZ GROUP BY ALL
)
SELECT DISTINCT day_at FROM (
  (SELECT * FROM hours EXCEPT SELECT * FROM days)
  UNION ALL (SELECT * FROM days EXCEPT SELECT * FROM hours)
) ORDER BY day_at
"""  # noqa: S608 constants of ours
_DROP = "DELETE FROM template_day WHERE day_at = $day::TIMESTAMPTZ"
_FILL = f"""
INSERT INTO template_day BY NAME
WITH hours AS (
  SELECT {_DAY} AS day_at, * FROM template_hour
  WHERE runs > 0 AND hour_at >= $day::TIMESTAMPTZ AND hour_at < $until::TIMESTAMPTZ
), sums AS (
  SELECT day_at, template_id, engine_id, {_SUMS}, sum(elapsed_ms) AS elapsed_ms,
    sum(cpu_ms) AS cpu_ms, max(users) AS users, max(hour_at) AS last_hour_at
  FROM hours GROUP BY day_at, template_id, engine_id
), buckets AS (
  SELECT day_at, template_id, engine_id, part.bucket AS bucket, sum(part.runs)::BIGINT AS runs
  FROM (SELECT day_at, template_id, engine_id, unnest(elapsed_sketch) AS part FROM hours)
  GROUP BY ALL
), sketches AS (
  SELECT day_at, template_id, engine_id,
    list({{'bucket': bucket, 'runs': runs}} ORDER BY bucket) AS elapsed_sketch
  FROM buckets GROUP BY ALL
), names AS (
  SELECT day_at, template_id, engine_id, list(DISTINCT name ORDER BY name) AS user_names
  FROM (SELECT day_at, template_id, engine_id, unnest(user_names) AS name FROM hours) GROUP BY ALL
)
SELECT sums.*, elapsed_sketch, user_names FROM sums
LEFT JOIN sketches USING (day_at, template_id, engine_id)
LEFT JOIN names USING (day_at, template_id, engine_id)
"""  # noqa: S608 constants of ours


class TemplateDays:
    """Remembers, for one process, the load it has summed up."""

    def __init__(self, store: OwnerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._summed: datetime | None = None

    def run_once(self) -> int:
        """Bring the days up to the pipeline's last load; returns how many changed."""
        processed = read_processed(self._store)
        if processed.loaded_at is None or processed.loaded_at == self._summed:
            return 0
        until = processed.whole_days_until
        days = self._store.read(CHANGED_SQL, until=until).column("day_at").to_pylist()
        for day in days:  # one at a time: sketches of a month do not fit into the store's memory
            values = {"day": day, "until": min(day + DAY, until)}
            statements = [bind(_DROP, {"day": day}), bind(_FILL, values)]
            self._store.transact("template_day", statements)
        mark = Watermark(
            source=DAYS_SOURCE,
            position=json.dumps({"loaded_at": processed.loaded_at.isoformat()}),
            event_at=until,
            updated_at=self._clock(),
        )
        self._store.upsert("watermark", to_arrow("watermark", [mark]))
        self._summed = processed.loaded_at
        return len(days)
