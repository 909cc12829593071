"""One template in full: its figures per engine, the columns it uses, and its newest query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.views.queries import ColumnRoles
from lakehouse_core.views.rows import records
from lakehouse_core.views.workloads import Workload, WorkloadFilters, one_workload

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.processed import Coverage
    from lakehouse_core.views.window import Window

# Under whichever defaults it ran; what is open under some is left to the detail of a query.
USAGE_SQL = """
SELECT table_name, column_name, list(DISTINCT role ORDER BY role) AS roles
FROM column_usage WHERE template_id = $template::VARCHAR AND table_name <> ''
GROUP BY table_name, column_name ORDER BY table_name, column_name
"""

SAMPLE_SQL = """
SELECT engine_id, query_id, submitted_at, user_name, status, sql_text FROM query_event
WHERE submitted_at >= $start::TIMESTAMPTZ AND submitted_at < $end::TIMESTAMPTZ
  AND template_id = $template::VARCHAR
ORDER BY submitted_at DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The newest query of a template in the window, with its literals."""

    engine_id: str
    query_id: str
    submitted_at: datetime
    user_name: str | None
    status: str
    sql_text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateDetail:
    """All that is known of one template in the window.

    Attributes:
        total: over all engines.
        engines: the same per engine; its name is the one entry of `engines`.
        step_seconds: how long one step of a trend is.
        sample: None when the history has none of its queries any more.
    """

    window: Window
    coverage: Coverage
    step_seconds: float
    total: Workload
    engines: tuple[Workload, ...]
    columns: tuple[ColumnRoles, ...]
    sample: Sample | None


def show_template(
    store: TelemetryStore, template_id: str, filters: WorkloadFilters, clock: Clock
) -> TemplateDetail:
    """One template in full.

    Raises:
        NotFoundError: it did not run in the window.
    """
    page, engines = one_workload(store, template_id, filters, clock)
    if not page.rows:
        raise NotFoundError(
            f"Template {template_id!r} did not run in {page.window.phrase}: choose a longer window."
        )
    sample = store.read(
        SAMPLE_SQL, template=template_id, start=page.window.start, end=page.window.end
    )
    return TemplateDetail(
        window=page.window,
        coverage=page.coverage,
        step_seconds=page.step_seconds,
        total=page.rows[0],
        engines=engines,
        columns=records(ColumnRoles, store.read(USAGE_SQL, template=template_id)),
        sample=next(iter(records(Sample, sample)), None),
    )
