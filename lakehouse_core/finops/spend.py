"""What was spent, as a relation: costs of a span of time with the names people ask by.

Hours come from `cost_hour`; whole days of a long span from `cost_day`, as long as their total is
that of the day's charges. Every statement here begins with `placed`, the labels of queries with the
number of the first workload rule that matches them, and `spend`, one row per piece of cost:

    asked = Spend.of(store, rules, start=…, end=…)
    store.read(asked.sql("SELECT {engine}, sum(cost) FROM spend GROUP BY 1"), **asked.params)
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import FilterError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.finops.groups import GroupRules
    from lakehouse_core.store.port import TelemetryStore

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LONG = timedelta(days=2)  # up to here the hours are few enough
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Days that cannot be read from `cost_day`: not added up yet, or not as their charges are now.
DIRTY_SQL = """
WITH charged AS (
  SELECT make_timestamptz(epoch_us(hour_at) // 86400000000 * 86400000000) AS day_at, currency,
    sum(cost) AS cost
  FROM charge WHERE hour_at >= $first::TIMESTAMPTZ AND hour_at < $last::TIMESTAMPTZ GROUP BY ALL
)
SELECT DISTINCT day_at FROM charged ANTI JOIN cost_day_total USING (day_at, currency, cost)
UNION
SELECT DISTINCT day_at FROM cost_day_total ANTI JOIN charged USING (day_at, currency)
WHERE day_at >= $first::TIMESTAMPTZ AND day_at < $last::TIMESTAMPTZ AND cost <> 0
ORDER BY day_at
"""

_FIELDS = """engine_id, resource, meter, kind, label_id, currency, basis, is_provisional, queries,
    failed, execution_us, list_cost, contracted_cost, cost, failed_cost"""
# Scans of their own rather than one with OR: each prunes row groups by its own span.
_SPEND = f"""
placed AS MATERIALIZED (
  SELECT label_id, template_id, user_name, source, statement_kind, {{number}} AS number
  FROM cost_label
), spend AS (
  SELECT hour_at AS spent_at, {_FIELDS} FROM cost_hour
  WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $first_day::TIMESTAMPTZ AND runs > 0
  UNION ALL
  SELECT hour_at, {_FIELDS} FROM cost_hour
  WHERE hour_at >= $last_day::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ AND runs > 0
  UNION ALL
  SELECT hour_at, {_FIELDS} FROM cost_hour
  WHERE hour_at >= $dirty_from::TIMESTAMPTZ AND hour_at < $dirty_to::TIMESTAMPTZ AND runs > 0
    AND make_timestamptz(epoch_us(hour_at) // 86400000000 * 86400000000)
      IN (SELECT unnest($dirty::TIMESTAMPTZ[]))
  UNION ALL
  SELECT day_at, {_FIELDS} FROM cost_day
  WHERE day_at >= $first_day::TIMESTAMPTZ AND day_at < $last_day::TIMESTAMPTZ
    AND NOT list_contains($dirty::TIMESTAMPTZ[], day_at)
)"""  # noqa: S608 constants of this module

# What spend can be asked by. A cost that is no query's keeps its own name in every dimension: idle,
# unallocated, or the meter of what is not split (storage).
_NOT_A_QUERY = "WHEN kind = 'resource' THEN meter WHEN kind <> 'query' THEN kind"


def _of_query(expression: str) -> str:
    return f"CASE {_NOT_A_QUERY} ELSE coalesce(nullif({expression}, ''), 'unknown') END"


_PLAIN = {
    "engine": "engine_id",
    "kind": "kind",
    "meter": "meter",
    "resource": "coalesce(nullif(resource, ''), engine_id)",
    "basis": "coalesce(basis, 'unknown')",
    "user": _of_query("user_name"),
    "source": _of_query("source"),
    "template": _of_query("template_id"),
    "statement": _of_query("statement_kind"),
}
DIMENSIONS = (*_PLAIN, "workload", "team", "cost_center", "table")
OF_QUERIES = ("user", "source", "template", "statement", "workload", "team", "cost_center", "table")


def dimension_sql(rules: GroupRules) -> dict[str, str]:
    """Dimension → its expression over `spend LEFT JOIN placed USING (label_id)`.

    `table` is not among them: a template touches several (`costs` divides its cost).
    """
    named = rules.column_sql("number")
    return _PLAIN | {
        "workload": _of_query(named["workload"]),
        "team": f"CASE {_NOT_A_QUERY} ELSE coalesce({named['team']}, 'no team') END",
        "cost_center": f"CASE {_NOT_A_QUERY} ELSE coalesce({named['cost_center']}, 'none') END",
    }


def check_dimensions(names: Iterable[str]) -> None:
    """Refuse what nobody can ask by.

    Raises:
        FilterError: names the known ones.
    """
    for name in names:
        if name not in DIMENSIONS:
            known = ", ".join(DIMENSIONS)
            raise FilterError(f"Dimension {name!r} is not known. Known are: {known}.")


def whole_hour(at: datetime) -> datetime:
    """The start of the hour a moment lies in."""
    return at - (at - _EPOCH) % HOUR


@dataclass(frozen=True, slots=True)
class Spend:
    """The relation of a span of time under a rule set: the head of statements, their parameters."""

    head: str
    params: dict[str, Any]
    dimensions: dict[str, str]

    @classmethod
    def of(
        cls,
        store: TelemetryStore,
        rules: GroupRules,
        start: datetime,
        end: datetime,
        cuts: Iterable[datetime] = (),
    ) -> Spend:
        """Costs from `start` up to, not including, `end`.

        Args:
            store: where they are.
            rules: what makes a workload.
            start: moved back to a whole hour.
            end: its hour counts as far as it is known.
            cuts: moments that rows must not reach across, e.g. where the window before ends.
        """
        first, last = _days(whole_hour(start), end)
        dirty: list[datetime] = []
        if first < last:
            found = store.read(DIRTY_SQL, first=first, last=last)
            dirty = found.column("day_at").to_pylist()
            # A day that is cut is read by its hours, as if it were not added up.
            cut = {day for at in cuts if (day := at - (at - _EPOCH) % DAY) != at}
            dirty = sorted({*dirty, *(day for day in cut if first <= day < last)})
        return cls(
            head=f"WITH {_SPEND.format(number=rules.number_sql)}",
            params={
                **rules.params,
                "start": whole_hour(start),
                "end": end,
                "first_day": first,
                "last_day": last,
                "dirty": dirty,
                "dirty_from": dirty[0] if dirty else first,
                "dirty_to": dirty[-1] + DAY if dirty else first,
            },
            dimensions=dimension_sql(rules),
        )

    def sql(self, rest: str, **names: str) -> str:
        """A statement over the relation; `{name}` stands for a dimension or one of `names`."""
        text = rest
        for name, expression in {**self.dimensions, **names}.items():
            text = text.replace(f"{{{name}}}", expression)
        return f"{self.head}\n{text}"


def _days(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """The first whole day of a long span, and the one after the last; both `end`: none."""
    if end - start <= LONG:
        return end, end
    first = start + (_EPOCH - start) % DAY
    return first, end - (end - _EPOCH) % DAY
