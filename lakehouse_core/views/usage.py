"""Usage of a table: which columns, in which role, on which engine, how often, by whom.

Whole days up to the pipeline's last export come from gold, later ones live (`processed`): from the
history and the columns that templates use under the defaults of the sessions that ran them. A query
counts once per column and role, whatever became of it; bytes are all that those queries scanned,
not of the column alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse_core.views.processed import Coverage, by_days, read_processed
from lakehouse_core.views.window import DEFAULT_WINDOW, Window, parse_window

if TYPE_CHECKING:
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

TABLE_ROLE = "table"  # the query touches the table at all, columns or not

_PARTS = """
  SELECT template_id, default_catalog, default_namespace, column_name, role
  FROM column_usage WHERE table_name = $table::VARCHAR
  UNION
  SELECT template_id, default_catalog, default_namespace, '' AS column_name, 'table' AS role
  FROM (SELECT * FROM template_table UNION ALL BY NAME SELECT * EXCLUDE (column_name, role)
    FROM column_usage)
  WHERE table_name = $table::VARCHAR
"""
_LIVE = """
  SELECT column_name, role, engine_id, count(*) AS runs,
    sum(bytes_scanned)::BIGINT AS bytes_scanned,
    list(DISTINCT user_name) FILTER (user_name <> '') AS names, 0 AS named
  FROM query_event q JOIN parts p ON p.template_id = q.template_id
    AND p.default_catalog = coalesce(q.default_catalog, '')
    AND p.default_namespace = coalesce(q.default_namespace, '')
  WHERE submitted_at >= $live_from::TIMESTAMPTZ AND submitted_at < $end::TIMESTAMPTZ
    AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
    AND ($user::VARCHAR IS NULL OR user_name = $user::VARCHAR)
  GROUP BY ALL
"""
_GOLD = """
  SELECT column_name, role, engine_id, runs, bytes_scanned, user_names AS names, users AS named
  FROM usage_day
  WHERE table_name = $table::VARCHAR AND "day" >= $start::TIMESTAMPTZ::DATE
    AND "day" < $gold_until::TIMESTAMPTZ::DATE AND "day" < $end::TIMESTAMPTZ::DATE + 1 AND runs > 0
    AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
"""
# usage_day names users, it does not count per user. One user's runs are read live as far back as
# the history reaches, before that from sums per template: those do not tell a session's defaults.
_GOLD_OF_USER = """
  SELECT column_name, role, engine_id, runs, bytes_scanned, [user_name] AS names, 1 AS named
  FROM workload_hour JOIN (SELECT DISTINCT template_id, column_name, role FROM parts)
    USING (template_id)
  WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
    AND hour_at < $gold_until::TIMESTAMPTZ AND runs > 0 AND user_name = $user::VARCHAR
    AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
"""
HISTORY_SQL = "SELECT min(submitted_at) AS first_at FROM query_event"
USAGE_SQL = """
WITH parts AS ({parts}), facts AS ({gold} UNION ALL {live})
SELECT column_name, role, engine_id, sum(runs)::BIGINT AS runs,
  sum(bytes_scanned)::BIGINT AS bytes_scanned,
  list_sort(list_distinct(flatten(list(names)))) AS user_names, max(named)::BIGINT AS named
FROM facts GROUP BY ALL ORDER BY runs DESC, column_name, role, engine_id
"""

# Literals are gold only: conditions are read out of texts by the pipeline.
LITERALS_SQL = """
SELECT column_name, operator, literal_kind, engine_id, sum(runs)::BIGINT AS runs,
  sum(literals)::BIGINT AS literals,
  CASE WHEN literal_kind = 'number' THEN arg_min(min_literal, try_cast(min_literal AS DOUBLE))
    ELSE min(min_literal) END AS min_literal,
  CASE WHEN literal_kind = 'number' THEN arg_max(max_literal, try_cast(max_literal AS DOUBLE))
    ELSE max(max_literal) END AS max_literal,
  max(distinct_literals)::BIGINT AS distinct_literals,
  list_sort(list_distinct([one.literal for one in flatten(list(sample))]))[:20] AS sample
FROM literal_day
WHERE table_name = $table::VARCHAR AND "day" >= $start::TIMESTAMPTZ::DATE
  AND "day" <= $end::TIMESTAMPTZ::DATE AND runs > 0
  AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
GROUP BY column_name, operator, literal_kind, engine_id ORDER BY runs DESC, column_name, operator
"""
MOST_NAMES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFilters:
    """What to look at: window (its start moved back to a whole day), engine, user."""

    window: str = DEFAULT_WINDOW
    engine: str | None = None
    user: str | None = None

    def __post_init__(self) -> None:
        """An empty text filters nothing."""
        for name in ("engine", "user"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value or "").strip() or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageCell:
    """A column in one role on one engine.

    Attributes:
        users: how many, as far as engines said; at least so many when `users_is_least`.
    """

    column_name: str
    role: str
    engine_id: str
    runs: int
    bytes_scanned: int | None
    users: int
    users_is_least: bool
    user_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralStats:
    """The literals that conditions on a column compare with.

    Attributes:
        runs: queries with such a condition, as far as the pipeline has read them.
        literals: values compared with, lists counted in full.
        distinct_literals: on the day that had most.
        sample: some of the values.
    """

    column_name: str
    operator: str
    literal_kind: str
    engine_id: str
    runs: int
    literals: int | None
    min_literal: str | None
    max_literal: str | None
    distinct_literals: int | None
    sample: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUsage:
    """All that is known of the use of one table in the window.

    Attributes:
        queries: per engine, queries that read or write the table at all (role `table`).
        cells: columns by role and engine, most used first.
        literals: what their conditions compare with; without the live part.
    """

    table_id: str
    window: Window
    coverage: Coverage
    queries: tuple[UsageCell, ...]
    cells: tuple[UsageCell, ...]
    literals: tuple[LiteralStats, ...]

    @property
    def runs(self) -> int:
        """Queries that touched the table."""
        return sum(cell.runs for cell in self.queries)

    @property
    def engines(self) -> tuple[str, ...]:
        """Engines that touched it, by name."""
        return tuple(sorted({cell.engine_id for cell in (*self.queries, *self.cells)}))

    def matrix(self) -> dict[str, dict[str, dict[str, int]]]:
        """Column → engine → role → runs, columns most used first."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        for cell in self.cells:
            by_engine = found.setdefault(cell.column_name, {})
            by_engine.setdefault(cell.engine_id, {})[cell.role] = cell.runs
        return found


def table_usage(
    store: TelemetryStore, table_id: str, filters: UsageFilters, clock: Clock
) -> TableUsage:
    """The use of a table.

    Args:
        store: where the figures are.
        table_id: the table as statements name it in full, e.g. `lake.demo.events`
            (`views.names.resolve_table` completes what a person typed).
        filters: what to look at.
        clock: the time.

    Raises:
        FilterError: the window is not known.
    """
    window = parse_window(filters.window, clock())
    coverage = by_days(window, read_processed(store))
    if filters.user is not None:
        (first,) = store.read(HISTORY_SQL).column("first_at").to_pylist()
        coverage = coverage.live_since(first)
    params = {
        "table": table_id,
        "start": coverage.start,
        "end": coverage.end,
        "gold_until": coverage.gold_until,
        "live_from": coverage.live_from,
        "engine": filters.engine,
        "user": filters.user,
    }
    gold = _GOLD if filters.user is None else _GOLD_OF_USER
    sql = USAGE_SQL.replace("{parts}", _PARTS).replace("{gold}", gold).replace("{live}", _LIVE)
    cells = [_cell(row) for row in store.read(sql, **params).to_pylist()]
    literals = store.read(LITERALS_SQL, **params).to_pylist() if filters.user is None else []
    return TableUsage(
        table_id=table_id,
        window=window,
        coverage=coverage,
        queries=tuple(cell for cell in cells if cell.role == TABLE_ROLE),
        cells=tuple(cell for cell in cells if cell.role != TABLE_ROLE),
        literals=tuple(
            LiteralStats(**row | {"sample": tuple(row["sample"] or ())}) for row in literals
        ),
    )


def _cell(row: dict[str, Any]) -> UsageCell:
    names, named = row.pop("user_names") or [], row.pop("named") or 0
    return UsageCell(
        **row,
        users=max(len(names), named),
        users_is_least=named > MOST_NAMES,
        user_names=tuple(names[:MOST_NAMES]),
    )
