"""What would change if …: questions to what was measured in a window, answered per month."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeGuard

from lakehouse_core.domain.errors import FilterError
from lakehouse_core.finops.spend import whole_hour
from lakehouse_core.finops.whatif import (
    LEAST_SPANS,
    Change,
    IdleTime,
    NoAnswer,
    Profile,
    moved,
    scaled,
    shut_down,
)
from lakehouse_core.views.costs import ZERO, CostFilters
from lakehouse_core.views.window import Window, parse_window

if TYPE_CHECKING:
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

Answer = Change | NoAnswer
_HOUR = timedelta(hours=1)
LEAST_RATIOS = 3  # verified actions that say how predictions come true

# Since when anything was charged: an hour after it without a charge cost nothing.
FIRST_SQL = """
SELECT min(hour_at) AS first_at FROM charge
WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
"""
HOURS_SQL = """
SELECT currency, hour_at, sum(cost) AS cost FROM charge
WHERE engine_id = $engine::VARCHAR AND hour_at >= $start::TIMESTAMPTZ
  AND hour_at < $end::TIMESTAMPTZ AND basis NOT IN ('unpriced', 'pending')
GROUP BY ALL ORDER BY hour_at
"""
PROFILES_SQL = """
SELECT engine_id, currency, hour_at, sum(cost) AS cost, sum(queries)::BIGINT AS queries
FROM cost_hour JOIN cost_label USING (label_id, engine_id)
WHERE template_id = $template::VARCHAR AND hour_at >= $start::TIMESTAMPTZ
  AND hour_at < $end::TIMESTAMPTZ AND kind = 'query' AND runs > 0
GROUP BY ALL ORDER BY ALL
"""
BY_TIME_SQL = """
SELECT DISTINCT engine_id FROM charge
WHERE method IN ('seconds', 'credits', 'cpu')
  AND hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
"""
# Gaps between runs, in pieces of at most an hour; `off` lies behind the minutes of patience.
IDLE_SQL = """
WITH runs AS (
  SELECT coalesce(started_at, submitted_at) AS begun_at,
    coalesce(ended_at, CASE WHEN status = 'running' THEN collected_at END, started_at,
      submitted_at) AS ended_at
  FROM query_event
  WHERE engine_id = $engine::VARCHAR AND origin = 'real' AND submitted_at < $end::TIMESTAMPTZ
    AND coalesce(ended_at, CASE WHEN status = 'running' THEN collected_at END, submitted_at)
      >= $start::TIMESTAMPTZ
), edges AS (
  SELECT begun_at, max(ended_at) OVER (
    ORDER BY begun_at, ended_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until
  FROM runs
  UNION ALL SELECT $end::TIMESTAMPTZ, (SELECT max(ended_at) FROM runs)
), gaps AS (
  SELECT greatest(coalesce(busy_until, $start::TIMESTAMPTZ), $start::TIMESTAMPTZ) AS from_at,
    least(begun_at, $end::TIMESTAMPTZ) AS to_at
  FROM edges WHERE begun_at > coalesce(busy_until, $start::TIMESTAMPTZ)
), pieces AS (
  SELECT from_at, to_at, from_at + to_microseconds($patience_us::BIGINT) AS off_at,
    unnest(generate_series(date_trunc('hour', from_at), to_at, INTERVAL 1 HOUR)) AS hour_at
  FROM gaps
), idle_time AS (
  SELECT hour_at,
    sum(greatest(epoch_us(least(to_at, hour_at + INTERVAL 1 HOUR))
      - epoch_us(greatest(from_at, hour_at)), 0)) AS idle_us,
    sum(greatest(epoch_us(least(to_at, hour_at + INTERVAL 1 HOUR))
      - epoch_us(greatest(off_at, hour_at)), 0)) AS off_us
  FROM pieces GROUP BY hour_at
), idle_cost AS (
  SELECT hour_at, currency, sum(cost) AS cost FROM cost_hour
  WHERE engine_id = $engine::VARCHAR AND kind = 'idle' AND runs > 0
    AND hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
  GROUP BY ALL
)
SELECT currency, sum(cost) AS idle_cost,
  sum(cost::DOUBLE * least(coalesce(off_us / nullif(idle_us, 0), 0), 1)) AS spared,
  (SELECT count(*) FROM gaps
    WHERE epoch_us(to_at) - epoch_us(from_at) > $patience_us::BIGINT) AS shutdowns
FROM idle_cost LEFT JOIN idle_time USING (hour_at) GROUP BY currency ORDER BY 2 DESC
"""
HOUR_COST_SQL = """
SELECT sum(cost) / count(DISTINCT hour_at) AS cost FROM charge
WHERE engine_id = $engine::VARCHAR AND currency = $currency::VARCHAR
  AND method IN ('seconds', 'credits', 'cpu')
  AND hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
"""
REALISED_SQL = """
SELECT coalesce(sum(usd_month), 0) AS saved, count(*) AS templates,
  coalesce(sum(usd_month) FILTER (least(runs_before, runs_after) >= 10), 0) AS sure,
  coalesce(sum(runs_before + runs_after), 0)::BIGINT AS runs, count(DISTINCT action_id) AS actions
FROM savings WHERE usd_month IS NOT NULL AND measured_at >= $since::TIMESTAMPTZ
  AND NOT starts_with(action_id, 'route-')
"""
UPKEEP_SQL = """
SELECT coalesce(sum(cost_usd), 0) AS cost FROM action
WHERE state = 'verified' AND ended_at >= $since::TIMESTAMPTZ
"""
RATIOS_SQL = """
SELECT sum(savings.usd_month)::DOUBLE / nullif(any_value(gain_usd_month), 0)::DOUBLE AS ratio
FROM savings JOIN action USING (action_id)
WHERE savings.usd_month IS NOT NULL AND gain_usd_month > 0 GROUP BY action_id
"""
PROMISED_SQL = """
SELECT coalesce(sum(gain_usd_month), 0) AS gain, count(*) AS actions FROM action
WHERE state IN ('proposed', 'snoozed') AND gain_usd_month > 0
"""


def is_answered(answer: Answer) -> TypeGuard[Change]:
    """Whether there is an answer, or only a reason why not."""
    return isinstance(answer, Change)


def why_not(answer: Answer) -> str:
    """Why there is no answer."""
    return answer.reason if isinstance(answer, NoAnswer) else ""


def _counted(span: Window) -> str:
    """The hours that are asked; the running one has figures already, but not all of them."""
    return f"the whole hours of {span.phrase}; the running hour counts when it is over"


def price_change(
    store: TelemetryStore, filters: CostFilters, clock: Clock, *, engine: str, percent: Decimal
) -> Answer:
    """An engine at another price: everything it charges grows or shrinks by so many percent."""
    question = f"the price of {engine} changed by {percent:+g} %"
    span = parse_window(filters.window, clock())
    bounds = {"start": whole_hour(span.start), "end": whole_hour(span.end)}
    rows = store.read(HOURS_SQL, engine=engine, **bounds).to_pylist()
    if not rows:
        reason = f"{engine} was charged nothing in {_counted(span)}"
        return NoAnswer(question=question, reason=reason)
    currency = filters.currency or rows[0]["currency"]
    charged = {row["hour_at"]: row["cost"] for row in rows if row["currency"] == currency}
    first = store.read(FIRST_SQL, **bounds).column("first_at")[0].as_py()
    length = (bounds["end"] - first) // _HOUR
    hours = {at: charged.get(at, ZERO) for at in (first + n * _HOUR for n in range(length))}
    days: dict[object, Decimal] = {}
    for at, cost in hours.items():
        day = at.astimezone(UTC).date()
        days[day] = days.get(day, ZERO) + cost
    whole = [days[day] for day in sorted(days, key=str)[1:-1]]  # its ends may be cut
    ratio = percent / 100
    if len(whole) >= LEAST_SPANS:
        return scaled(question, currency, whole, 24, ratio, "days")
    return scaled(question, currency, list(hours.values()), 1, ratio, "hours")


def template_elsewhere(
    store: TelemetryStore, filters: CostFilters, clock: Clock, *, template: str, to: str
) -> Answer:
    """All runs of a template on another engine, where it has run already."""
    span = parse_window(filters.window, clock())
    start, end = whole_hour(span.start), whole_hour(span.end)
    rows = store.read(PROFILES_SQL, template=template, start=start, end=end).to_pylist()
    question = f"template {template} on {to}"
    elsewhere = [row for row in rows if row["engine_id"] != to]
    here = filters.engine or max(
        (row["engine_id"] for row in elsewhere),
        key=lambda name: sum(row["queries"] for row in elsewhere if row["engine_id"] == name),
        default=None,
    )
    if here is None or here == to:
        reason = f"it did not run on any other engine in {_counted(span)}"
        return NoAnswer(question=question, reason=reason)
    currency = filters.currency or next(r["currency"] for r in rows if r["engine_id"] == here)
    mine = [row for row in rows if row["currency"] == currency]

    def profile(engine: str) -> Profile:
        return _profile(engine, [row for row in mine if row["engine_id"] == engine])

    timed = set(store.read(BY_TIME_SQL, start=start, end=end).column("engine_id").to_pylist())
    caveats = tuple(
        f"{name} is paid by time: its bill changes only when it runs for fewer or more hours; what "
        "is moved is its share of that time."
        for name in (here, to)
        if name in timed
    )
    hours = Decimal((end - start) // _HOUR)
    return moved(
        f"{question} instead of {here}", currency, profile(here), profile(to), hours, caveats
    )


def _profile(engine: str, rows: list[dict[str, Any]]) -> Profile:
    """What a run cost; an hour in which none began goes on with those of the hour before it."""
    costs: list[Decimal] = []
    runs: list[int] = []
    for row in sorted(rows, key=lambda one: one["hour_at"]):
        if row["queries"]:
            costs.append(row["cost"])
            runs.append(row["queries"])
        elif costs:  # what began before the window is not counted, and not charged here
            costs[-1] += row["cost"]
    return Profile(
        engine_id=engine,
        queries=sum(runs),
        cost=sum(costs, ZERO),
        per_query=tuple(cost / n for cost, n in zip(costs, runs, strict=True)),
    )


def idle_shutdown(
    store: TelemetryStore,
    filters: CostFilters,
    clock: Clock,
    *,
    engine: str,
    minutes: int,
    restart_minutes: Decimal = Decimal(2),
) -> Answer:
    """An engine that is shut down after so many minutes without a query."""
    question = f"{engine} shut down after {minutes} idle minutes"
    span = parse_window(filters.window, clock())
    start, end = whole_hour(span.start), whole_hour(span.end)
    bounds = {"engine": engine, "start": start, "end": end}
    patience = timedelta(minutes=minutes) // timedelta(microseconds=1)
    rows = store.read(IDLE_SQL, **bounds, patience_us=patience).to_pylist()
    if not rows:
        reason = f"no idle time of {engine} was charged in {_counted(span)}"
        return NoAnswer(question=question, reason=reason)
    row = rows[0]
    (cost,) = store.read(HOUR_COST_SQL, **bounds, currency=row["currency"]).to_pylist()
    idle = IdleTime(
        idle_cost=row["idle_cost"],
        spared=Decimal(str(row["spared"] or 0)),
        shutdowns=row["shutdowns"],
        hour_cost=Decimal(str(cost["cost"] or 0)),
        hours=Decimal((end - start) // _HOUR),
    )
    return shut_down(question, row["currency"], idle, restart_minutes)


def maintenance_switched(store: TelemetryStore, clock: Clock, *, to: str) -> Answer:
    """Maintenance switched off: what it has saved is lost. On: what is proposed, as it comes true.

    Raises:
        FilterError: it can be switched on or off only.
    """
    if to not in ("on", "off"):
        raise FilterError(f"Maintenance is switched on or off, not {to!r}.")
    since = clock() - timedelta(days=30)
    return _switched_off(store, since) if to == "off" else _switched_on(store)


def _switched_off(store: TelemetryStore, since: object) -> Answer:
    question = "maintenance switched off"
    (seen,) = store.read(REALISED_SQL, since=since).to_pylist()
    (upkeep,) = store.read(UPKEEP_SQL, since=since).to_pylist()
    if not seen["templates"]:
        reason = "no saving of a verified action was measured yet (lakehelm maintain list)"
        return NoAnswer(question=question, reason=reason)
    saved, sure, cost = (Decimal(str(one)) for one in (seen["saved"], seen["sure"], upkeep["cost"]))
    ends = sorted((sure - cost, saved - cost))
    return Change(
        question=question,
        currency="USD",
        now=-saved,
        low=ends[0],
        expected=saved - cost,
        high=ends[1],
        n=seen["runs"],
        n_of=f"runs before and after {seen['actions']} actions",
        method="savings measured in the last 30 days, less what maintenance cost; from templates "
        "with at least ten runs on both sides to all of them",
        caveats=("Tables get worse only slowly: the loss would take time to arrive.",),
    )


def _switched_on(store: TelemetryStore) -> Answer:
    question = "maintenance: everything that is proposed carried out"
    ratios = [Decimal(str(r)) for r in store.read(RATIOS_SQL).column("ratio").to_pylist()]
    (promised,) = store.read(PROMISED_SQL).to_pylist()
    if len(ratios) < LEAST_RATIOS:
        return NoAnswer(
            question=question,
            reason=f"{len(ratios)} verified actions have a measured saving to compare their "
            f"prediction with; at least {LEAST_RATIOS} are needed",
        )
    gain = Decimal(str(promised["gain"]))
    answer = scaled(question, "USD", [gain * one for one in ratios], 730, Decimal(-1), "actions")
    return (
        answer
        if isinstance(answer, NoAnswer)
        else replace(
            answer,
            now=gain,
            n_of="verified actions",
            method="predicted gain of the open proposals times what predictions came to so far; "
            "range of that ratio's mean at 80 %",
        )
    )
